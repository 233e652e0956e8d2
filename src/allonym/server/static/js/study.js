// The page of an invited person (P3's motivated intruder test): read a text, say who it is about. No account is needed:
// the link is the key. Each answer is sent as soon as it is complete, so that nothing is lost when the page is closed.
import { h } from "./ui.js";

const token = location.pathname.split("/").filter(Boolean).pop() ?? "";
const main = document.querySelector("main");
const bar = document.querySelector("progress");
const GUESSES = 3;

async function call(method, body) {
  const sent = fetch(`/v1/study/${encodeURIComponent(token)}`, {
    method,
    headers: body ? { "Content-Type": "application/json" } : {},
    body: body ? JSON.stringify(body) : undefined,
    credentials: "omit",
    cache: "no-store",
  });
  const answer = await sent.catch(() => { throw new Error("The server cannot be reached."); });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw Object.assign(new Error(said.error?.message ?? `The server answered ${answer.status}.`), { status: answer.status });
  return said;
}

function show(...children) {
  main.replaceChildren(...children);
  scrollTo(0, 0);
  const head = main.querySelector("h1, h2");
  if (head) { head.tabIndex = -1; head.focus({ preventScroll: true }); }
}

function gone(error) {
  const closed = error.status === 404 || error.status === 410;
  bar.hidden = true;
  show(
    h("h1", {}, closed ? "This link does not work" : "The task could not be loaded"),
    h("p", {}, closed ? "It may have expired, or part of it was lost when it was copied. Please ask whoever sent it to you for another." : error.message),
    closed ? "" : h("p", { class: "study-moves" }, h("button", { type: "button", class: "button primary", onclick: begin }, "Try again")),
  );
}

async function begin() {
  let task;
  try { task = await call("GET"); } catch (error) { gone(error); return; }
  document.title = task.title ?? "Who is it?";
  const said = new Map(Object.entries(task.answers ?? {}));
  const state = { task, said, drafts: new Map(), guesses: task.guesses ?? GUESSES };
  if (task.done) { thank(state); return; }
  start(state);
}

function progress({ task, said }) {
  bar.hidden = false;
  bar.max = task.items.length;
  bar.value = said.size;
}

function start(state) {
  const { task, said } = state;
  progress(state);
  const tick = h("input", { type: "checkbox", id: "consent", checked: said.size > 0 });
  const error = h("p", { class: "study-error", role: "alert", hidden: true });
  const go = () => {
    error.hidden = tick.checked;
    error.textContent = tick.checked ? "" : "Please tick the box if you agree to take part.";
    if (!tick.checked) { tick.setAttribute("aria-invalid", "true"); tick.focus(); return; }
    const next = task.items.findIndex((one) => !said.has(one.token));
    next < 0 ? finish(state) : ask(state, next);
  };
  show(
    h("h1", {}, "Who is it?"),
    ...(task.instructions ?? []).map((line) => h("p", {}, line)),
    h("p", { class: "study-consent" }, task.consent ?? ""),
    h("p", { class: "study-tick" }, h("label", {}, tick, " I have read this and agree to take part.")),
    error,
    h("p", { class: "study-moves" }, h("button", { type: "button", class: "button primary", onclick: go }, said.size ? "Go on" : "Begin"),
      h("span", { class: "study-note" }, `${task.items.length} ${task.items.length === 1 ? "text" : "texts"}, a few minutes each`)),
  );
}

function field(label, note, control) {
  const hint = note ? h("span", { class: "study-note", id: `${control.id}-note` }, note) : "";
  if (note) control.setAttribute("aria-describedby", `${control.id}-note`);
  return h("div", { class: "study-field" }, h("label", { for: control.id }, label), hint, control);
}

function ask(state, at) {
  const { task, said, drafts, guesses } = state;
  const item = task.items[at], known = drafts.get(item.token) ?? said.get(item.token) ?? {};
  progress(state);
  const radios = ["yes", "no"].map((value) => h("input", { type: "radio", name: "identified", id: `identified-${value}`, value, checked: known.identified === value }));
  const names = Array.from({ length: guesses }, (_, i) => h("input", {
    type: "text", id: `name-${i}`, maxlength: 200, autocapitalize: "words", autocomplete: "off", spellcheck: "false", value: known.names?.[i] ?? "",
  }));
  const sure = h("input", { type: "range", id: "confidence", min: 0, max: 100, step: 5, value: known.confidence ?? 50 });
  const level = h("output", { for: "confidence" }, `${sure.value} %`);
  const sureText = () => { level.textContent = `${sure.value} %`; sure.setAttribute("aria-valuetext", `${sure.value} percent`); };
  sure.addEventListener("input", sureText);
  sureText();
  const knowledge = h("textarea", { id: "knowledge", rows: 4, maxlength: 4000 });
  knowledge.value = known.knowledge ?? "";
  const reason = h("textarea", { id: "reason", rows: 3, maxlength: 4000 });
  reason.value = known.reason ?? "";
  const guessing = h("div", {},
    h("fieldset", { class: "study-names" }, h("legend", {}, guesses > 1 ? `Who do you think it is? Up to ${guesses} guesses, the likeliest first.` : "Who do you think it is?"),
      ...names.map((input, i) => h("div", { class: "study-name" }, h("label", { for: input.id }, `${["First", "Second", "Third"][i] ?? `${i + 1}.`} guess`), input)),
      h("p", { class: "study-note" }, "The full name, as well as you know it.")),
    h("div", { class: "study-field" }, h("label", { for: "confidence" }, "How sure are you?"), h("div", { class: "study-range" }, sure, level)));
  const learnt = field("What could you find out about the person?", "", knowledge);
  const reasonLabel = h("label", { for: "reason" }, "");
  const why = h("div", { class: "study-field" }, reasonLabel, reason);
  const error = h("p", { class: "study-error", role: "alert", hidden: true });
  const choice = () => radios.find((r) => r.checked)?.value ?? "";
  const refresh = () => {
    guessing.hidden = choice() !== "yes";
    learnt.hidden = choice() !== "no";
    why.hidden = !choice();
    reasonLabel.textContent = choice() === "yes" ? "Which part of the text revealed the identity?" : "Which part of the text told you so? May stay empty.";
  };
  const lacks = () => {
    if (!choice()) return ["Please say whether you could identify the person.", radios[0]];
    if (choice() === "yes" && !names[0].value.trim()) return ["Please say who you think it is.", names[0]];
    if (choice() === "yes" && !reason.value.trim()) return ["Please say what revealed the identity.", reason];
    return null;
  };
  const next = h("button", { type: "submit", class: "button primary" }, at + 1 < task.items.length ? "Send and go on" : "Send");
  const form = h("form", { autocomplete: "off", novalidate: true });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const lack = lacks();
    for (const one of form.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
    error.hidden = !lack;
    error.textContent = lack?.[0] ?? "";
    if (lack) { lack[1].setAttribute("aria-invalid", "true"); lack[1].focus(); return; }
    const yes = choice() === "yes";
    const answer = {
      item: item.token,
      identified: choice(),
      names: yes ? names.map((n) => n.value.trim()).filter(Boolean) : [],
      confidence: yes ? Number(sure.value) : 0,
      knowledge: yes ? "" : knowledge.value.trim(),
      reason: reason.value.trim(),
    };
    next.disabled = true;
    try { await call("POST", { answers: [answer], done: false }); } catch (fault) {
      error.hidden = false;
      error.textContent = `Your answer was not sent: ${fault.message} It is still here; please try again.`;
      return;
    } finally { next.disabled = false; }
    said.set(item.token, answer);
    drafts.delete(item.token);
    at + 1 < task.items.length ? ask(state, at + 1) : finish(state);
  });
  form.addEventListener("input", () => {
    drafts.set(item.token, { identified: choice(), names: names.map((n) => n.value), confidence: Number(sure.value), knowledge: knowledge.value, reason: reason.value });
    refresh();
    if (!error.hidden && !lacks()) error.hidden = true;
  });
  const back = h("button", { type: "button", class: "button", onclick: () => (at ? ask(state, at - 1) : start(state)) }, "Back");
  form.append(
    h("fieldset", { class: "study-claim" }, h("legend", {}, "Could you identify the person?"),
      ...radios.map((r) => h("label", {}, r, r.value === "yes" ? " Yes" : " No"))),
    guessing, learnt, why, error, h("p", { class: "study-moves" }, next, back),
  );
  refresh();
  show(
    h("p", { class: "study-step" }, `Text ${at + 1} of ${task.items.length}`),
    h("h1", { class: "study-title" }, "Who is this text about?"),
    h("blockquote", { class: "study-text", tabindex: 0, "aria-label": "The text" }, item.text),
    form,
  );
}

async function finish(state) {
  const { task, said } = state;
  progress(state);
  const left = task.items.findIndex((one) => !said.has(one.token));
  const error = h("p", { class: "study-error", role: "alert", hidden: true });
  const end = h("button", { type: "button", class: "button primary" }, "Finish");
  end.addEventListener("click", async () => {
    end.disabled = true;
    try { await call("POST", { answers: [], done: true }); } catch (fault) {
      end.disabled = false;
      error.hidden = false;
      error.textContent = fault.message;
      return;
    }
    thank(state);
  });
  show(
    h("h1", {}, left < 0 ? "All texts are answered" : "Some texts have no answer yet"),
    h("p", {}, left < 0 ? "You may go back and change an answer. Once you finish, your answers are final." : `${said.size} of ${task.items.length} are answered. You may finish nevertheless.`),
    error,
    h("p", { class: "study-moves" }, end, h("button", { type: "button", class: "button", onclick: () => ask(state, left < 0 ? task.items.length - 1 : left) }, "Back to the texts")),
  );
}

function thank({ task }) {
  bar.hidden = true;
  show(h("h1", {}, "Thank you"), h("p", {}, "Your answers have arrived. You may close this page."),
    h("p", { class: "study-note" }, task.study ? `Study ${task.study}` : ""));
}

begin();
