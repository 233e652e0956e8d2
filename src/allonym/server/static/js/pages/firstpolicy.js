// A first policy: six questions about some texts, what the answers do to them, and the policy to download or to use.

import { post, put } from "../api.js";
import { form, showError } from "../forms.js";
import { button, download, dropZone, emptyState, errorState, field, fill, h, input, notice, pageHead, select, skeleton, stylesheet, textarea, toast } from "../ui.js";
import { ACCEPTED, readFile } from "../protect/filing.js";
import { workspace } from "../protect/workspace.js";
import { go } from "../router.js";
import { may } from "../session.js";
import { beforeAfter } from "./corpus/texts.js";
import { forgetChoices } from "./policychoice.js";
import { NAME, WRONG_NAME } from "./settings/policies.js";

const TEXTS = 10, CHARACTERS = 6000; // of the sample

export async function show(root) {
  await stylesheet("pages/pages.css");
  const given = {};
  const questions = new Map();
  let sample = [], asking = null;

  const about = h("p", { class: "small muted", role: "status" });
  const pasted = textarea({ rows: 4, spellcheck: "false" });
  const look = (texts) => {
    sample = texts.filter((one) => one.text.trim()).slice(0, TEXTS).map((one) => ({ name: one.name.slice(0, 200), text: one.text.slice(0, CHARACTERS) }));
    about.textContent = sample.length ? `Looked at: ${sample.map((one) => one.name).join(", ")}` : "";
    ask();
  };
  pasted.addEventListener("change", () => look([{ name: "your text", text: pasted.value }]));
  const zone = dropZone({
    label: "Drop some of your files here", accept: ACCEPTED, multiple: true,
    onfiles: async (files) => {
      try {
        const read = await Promise.all(files.slice(0, TEXTS).map((file) => readFile(file)));
        look(read.flatMap((file) => file.documents.map((one) => ({ name: file.name, text: one.text }))));
      } catch (error) {
        showError(error);
      }
    },
  });
  const asked = h("div", { class: "two" });
  const shown = h("div", { class: "stack", "aria-live": "polite" });
  const made = h("div", { class: "stack" });
  const parts = h("div", { class: "stack wide", hidden: true },
    h("section", { class: "card stack" }, h("h2", {}, "Six questions"), asked),
    h("section", { class: "card stack" }, h("h2", {}, "Before and after"), shown),
    h("section", { class: "card stack" }, h("h2", {}, "The policy"), made));
  root.append(
    pageHead("A first policy", "Answer six questions about your texts, see what the answers do to them, and take the policy that they make."),
    h("div", { class: "stack wide" },
      h("section", { class: "card stack" }, h("h2", {}, "Your texts"), h("div", { class: "two" }, zone, field({ label: "Or paste a text", control: pasted })), about),
      parts));

  async function ask() {
    asking?.abort();
    parts.hidden = !sample.length;
    if (!sample.length) return;
    asking = new AbortController();
    if (!questions.size) fill(asked, skeleton(4));
    fill(shown, skeleton(4));
    try {
      draw(await post("/v1/first-policy", { texts: sample, answers: given }, { signal: asking.signal }));
    } catch (error) {
      if (error.name !== "AbortError") fill(shown, errorState(error, ask));
    }
  }

  function draw(answer) {
    if (!questions.size) {
      for (const one of answer.questions) questions.set(one.name, makeQuestion(one, (value) => { given[one.name] = value; ask(); }));
      fill(asked, [...questions.values()].map((one) => one.element));
    }
    for (const one of answer.questions) questions.get(one.name).update(one);
    fill(shown, answer.warnings.map((words) => notice(words, { kind: "warn" })), answer.passages.map(beforeAfter),
      !answer.passages.length && emptyState({ title: "Nothing is replaced", body: "This policy finds nothing in these texts, or refuses them." }));
    fill(made, takeForm(answer));
  }

  const desk = workspace().works.map((work) => ({ name: work.id || "the text on your desk", text: work.draft.text }));
  look(desk);
  return () => asking?.abort();
}

/** A question with its answers: {element, update(question)}; those of language are too many for radio buttons. */
function makeQuestion({ name, words, answers }, onchange) {
  const reason = h("span", { class: "small muted" });
  const list = Object.entries(answers);
  if (name === "language") {
    const control = select(list.map(([value, label]) => ({ value, label })), { onchange: () => onchange(control.value) });
    const element = field({ label: words, control });
    element.append(reason);
    return { element, update: (now) => { control.value = now.answer; reason.textContent = now.reason; } };
  }
  const radios = list.map(([value]) => h("input", { type: "radio", name, value, onchange: () => onchange(value) }));
  const lines = list.map(([, meaning], i) => h("label", { class: "check" }, radios[i], h("span", {}, meaning.charAt(0).toUpperCase() + meaning.slice(1))));
  const element = h("fieldset", { class: "field" }, h("legend", {}, words), lines, reason);
  return { element, update: (now) => { for (const radio of radios) radio.checked = radio.value === now.answer; reason.textContent = now.reason; } };
}

/** The policy, to download; admins store it under a name and go on with it. */
function takeForm({ toml, keyed }) {
  const name = field({ label: "Name", control: input({ value: "ours", maxlength: 64, spellcheck: "false" }), check: (value) => (NAME.test(value.trim()) ? "" : WRONG_NAME) });
  const save = button("Download", { icon: "save", onclick: () => download("policy.toml", toml, "application/toml") });
  const text = [
    keyed && notice("This policy needs a key: keep texts in the vault under a name, or name a key file on the command line."),
    h("details", { class: "more" }, h("summary", {}, "Read it"), h("pre", { class: "toml", tabindex: "0" }, toml)),
  ];
  if (!may("admin")) return [text, h("p", { class: "small muted" }, "An admin can store it on this server."), h("div", { class: "row" }, save)];
  return form({
    fields: [name], beside: save, submit: { label: "Store and use", icon: "check" },
    send: async () => {
      const called = name.control.value.trim();
      await put(`/v1/policies/${encodeURIComponent(called)}`, { toml });
      forgetChoices();
      workspace().choose(called);
      toast(`${called} is stored and in force.`);
      go("protect");
    },
  }, text, h("div", { class: "narrow" }, name));
}
