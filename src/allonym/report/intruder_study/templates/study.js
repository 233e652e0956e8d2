"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const form = document.querySelector("form");
  const { form: kind, study, task, page } = form.dataset;
  const least = Number(form.dataset.least);
  const steps = all(".step", form), items = steps.filter((step) => step.dataset.step === "item");
  let at = 0, saved = true;

  const field = (step, name) => step.querySelector(`[name="${name}"]`);
  const value = (step, name) => field(step, name).value.trim();
  const length = (text) => [...text].length;
  const choice = (step) => step.querySelector("[type=radio]:checked")?.value ?? "";

  // What an item still lacks, and the field where it belongs; null where it is complete.
  const lacks = (step) => {
    if (step.dataset.step === "start") {
      const consent = field(step, "consent");
      return consent.checked ? null : ["Please tick the box if you agree to take part.", consent];
    }
    if (step.dataset.step !== "item") return null;
    if (task === "collect") {
      const n = length(value(step, "text"));
      return n >= least ? null : [`${least} characters at least are required; these are ${n}.`, field(step, "text")];
    }
    const said = choice(step);
    if (!said) return ["Please say whether you could identify the person.", step.querySelector("[type=radio]")];
    if (said === "yes" && !value(step, "name")) return ["Please say who you think it is.", field(step, "name")];
    if (said === "yes" && !value(step, "reason")) return ["Please say what revealed the identity.", field(step, "reason")];
    return null;
  };
  const complain = (step, found) => {
    const line = step.querySelector(".error");
    if (!line) return;
    line.textContent = found ? found[0] : "";
    line.hidden = !found;
    all("[aria-invalid]", step).forEach((one) => one.removeAttribute("aria-invalid"));
    if (found) {
      found[1].setAttribute("aria-invalid", "true");
      found[1].focus();
    }
  };

  const show = (next, focus = true) => {
    at = Math.max(0, Math.min(steps.length - 1, next));
    steps.forEach((step, i) => { step.hidden = i !== at; });
    document.querySelector(".progress span").style.width = `${(100 * at) / (steps.length - 1)}%`;
    const done = items.filter((step) => !lacks(step)).length;
    form.querySelector("[data-done]").textContent = `${done} of ${items.length} are answered.`;
    if (focus) {
      scrollTo(0, 0);
      steps[at].querySelector("h2").focus({ preventScroll: true });
    }
  };
  const refresh = (step) => {
    const said = choice(step);
    all("[data-when]", step).forEach((one) => { one.hidden = !said || !one.dataset.when.split(" ").includes(said); });
    const count = step.querySelector(".count");
    if (count) {
      const n = length(value(step, "text"));
      count.textContent = `${n} of ${least} characters`;
      count.classList.toggle("enough", n >= least);
    }
  };

  // Only what belongs to the choice is kept: a name that was typed before "no" was chosen is no answer.
  const answer = (step) => {
    const item = step.dataset.item;
    if (task === "collect") {
      const text = value(step, "text");
      return { item, text: length(text) >= least ? text : "" };
    }
    const identified = lacks(step) ? "" : choice(step);
    return {
      item,
      identified,
      name: identified === "yes" ? value(step, "name") : "",
      knowledge: identified === "no" ? value(step, "knowledge") : "",
      reason: identified ? value(step, "reason") : "",
    };
  };
  const collected = () => ({
    form: kind, version: 1, study, task, page: Number(page),
    participant: value(steps[0], "participant"), answers: items.map(answer),
  });
  const asJson = (all) => `${JSON.stringify(all, null, 1)}\n`;
  const asCsv = ({ answers, ...beside }) => {
    const names = ["study", "task", "page", "participant"], own = Object.keys(answers[0]);
    const cell = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const rows = answers.map((one) => [...names.map((n) => beside[n]), ...own.map((n) => one[n])]);
    return [[...names, ...own], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  };
  const tell = (text) => { form.querySelector("[data-said]").textContent = text; };
  const save = (how) => {
    const found = collected(), name = `answers-${study}-${task}-${page}.${how}`;
    const text = how === "csv" ? asCsv(found) : asJson(found);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: how === "csv" ? "text/csv" : "application/json" }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    saved = true;
    tell(`Saved as ${name}, where your browser puts downloads.`);
  };
  const copy = async () => {
    const text = asJson(collected());
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const box = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(box);
      box.select();
      const fine = document.execCommand("copy");
      box.remove();
      if (!fine) { tell("Your browser does not let this page copy. Save a file instead."); return; }
    }
    saved = true;
    tell("Copied. Paste it into a message or a file.");
  };

  form.addEventListener("click", (event) => {
    const { move, save: how } = event.target.dataset ?? {};
    if (how) return void (how === "copy" ? copy() : save(how));
    if (!move) return;
    const found = Number(move) > 0 ? lacks(steps[at]) : null;
    complain(steps[at], found);
    if (!found) show(at + Number(move));
  });
  form.addEventListener("input", (event) => {
    saved = false;
    const step = event.target.closest(".step");
    refresh(step);
    if (!step.querySelector(".error")?.hidden && !lacks(step)) complain(step, null);
  });
  // Enter in a line of text goes on; it never submits.
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input[type=text]")) {
      event.preventDefault();
      steps[at].querySelector("[data-move='1']")?.click();
    }
  });
  addEventListener("beforeunload", (event) => { if (!saved) event.preventDefault(); });
  items.forEach(refresh);
  show(0, false);
})();
