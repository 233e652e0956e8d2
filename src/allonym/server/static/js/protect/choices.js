// The middle pane: the policy, how sure a finding has to be, what replaces each label, who looks, and where it is kept.

import { button, checkbox, errorState, field, fill, h, iconButton, input, notice, describeError, select, skeleton } from "../ui.js";
import { paint, readable } from "../families.js";
import { counts } from "./marks.js";

const OPERATOR_WORDS = {
  tag: "Numbered tag", sanitize: "Tag without brackets", pseudonym: "Realistic substitute", suppress: "Take it out", mask: "Stars", hash: "Keyed hash",
  encrypt: "Encrypted", generalise: "More general", shift_dates: "Shifted date", wild_tag: "Tag with a hash", keep: "Keep as it is", seq2seq: "Trained rewriter", llm: "Language model",
};
const DETECTOR_WORDS = {
  rules: "Patterns and checksums", spoken: "Spoken numbers and addresses", lexicon: "Your own word lists", speakers: "Speaker names", tagger: "The built-in model",
  ensemble: "Several models together", flair: "Flair", gliner: "GLiNER", llm: "A language model", mitie: "MITIE", presidio: "Presidio", spacy: "spaCy", transformers: "Transformers", word_tagger: "A small tagger",
};

const OFF = "\u0000off"; // no operator has this name

/** The pane's part with the choices. */
export class Choices {
  constructor(desk) {
    this.desk = desk;
    this.element = h("div", { class: "stack wide choices" }, skeleton(8));
    desk.on("choice", () => this.keeping(() => this.draw()));
    desk.on("marks preview document", () => this.rows && this.keeping(() => this.drawRows()));
  }

  failed(error, retry) {
    fill(this.element, errorState(error, retry));
  }

  /** Once it is known what can be chosen. */
  ready() {
    const { desk } = this;
    const named = (p) => ({ value: p.name, label: p.name });
    const groups = [{ group: "Presets", options: desk.policies.filter((p) => p.preset).map(named) }];
    const stored = desk.policies.filter((p) => !p.preset);
    if (stored.length) groups.unshift({ group: "Your organisation's", options: stored.map(named) });
    this.policy = select(groups, { value: desk.space.choice.name, onchange: () => this.choose({ name: this.policy.value }) });
    this.wrong = h("div", { class: "stack", hidden: true });
    this.says = h("p", { class: "small muted says" });
    this.overall = select([], { onchange: () => this.operator("*", this.overall.value) });
    this.bar = h("input", { type: "range", class: "slider", min: "0", max: "100", step: "5", "aria-label": "Confidence" });
    this.barSays = h("output", { class: "small numbers" });
    this.bar.addEventListener("input", () => this.barMoved());
    this.bar.addEventListener("change", () => this.choose({ confidence: Number(this.bar.value) / 100 }));
    this.barReset = iconButton("undo", "As the policy says", { small: true, onclick: () => { this.bar.focus(); this.choose({ confidence: null }); } });
    this.rows = h("ul", { class: "label-rows", "aria-label": "Labels in the text" });
    this.off = h("div", { class: "row off-labels" });
    this.detectors = h("div", { class: "stack tight" });
    this.scope = input({ value: desk.space.scope, placeholder: "nowhere", maxlength: "200", spellcheck: "false", oninput: () => desk.keepUnder(this.scope.value.trim()) });
    const changed = h("div", { class: "spread" }, h("h3", {}, "What replaces it"), this.reset = button("As the policy says", { kind: "quiet", small: true, onclick: () => { this.overall.focus(); this.choose({ operators: {}, off: [] }); } }));
    fill(this.element,
      field({ label: "Policy", control: this.policy }), this.wrong, this.says,
      h("a", { class: "small", href: "#/first-policy" }, "Make one for your texts with six questions"),
      h("div", { class: "stack tight" }, h("div", { class: "spread" }, h("h3", {}, "Confidence"), h("div", { class: "row still" }, this.barSays, this.barReset)), this.bar,
        h("div", { class: "spread tiny muted" }, h("span", {}, "finds more"), h("span", {}, "only what is sure"))),
      h("div", { class: "stack" }, changed, field({ label: "For all labels", control: this.overall }), this.rows, this.off),
      h("details", { class: "fold" }, h("summary", {}, h("h3", {}, "Detectors")), this.detectors),
      field({ label: "Keep in the vault under", control: this.scope, hint: "A name for texts that belong together, such as a case. A person then has the same replacement in all of them, and originals can be restored later." }));
    this.draw();
  }

  async choose(changes) {
    this.wrong.hidden = true;
    try {
      await this.desk.choose(changes);
    } catch (error) {
      this.policy.value = this.desk.space.choice.name;
      this.wrong.hidden = false;
      fill(this.wrong, notice(`${describeError(error)} The policy stays as it was.`, { kind: "danger", actions: [button("Try again", { small: true, onclick: () => { this.policy.focus(); this.choose(changes); } })] }));
    }
  }

  /** Draws anew, and leaves the keyboard at the same choice. */
  keeping(draw) {
    const choice = this.element.contains(document.activeElement) && document.activeElement.dataset.choice;
    draw();
    if (!choice || this.element.contains(document.activeElement)) return;
    (this.element.querySelector(`[data-choice="${CSS.escape(choice)}"]`) ?? this.overall).focus();
  }

  operator(label, value) {
    const operators = { ...this.desk.space.choice.operators };
    if (value) operators[label] = value;
    else delete operators[label];
    this.choose({ operators });
  }

  barMoved() {
    this.barSays.textContent = `${this.bar.value} %`;
  }

  draw() {
    if (!this.rows) return;
    const { desk } = this;
    const { choice } = desk.space;
    const { detail } = desk;
    this.policy.value = choice.name;
    this.says.textContent = detail.description;
    this.overall.options_(this.operatorOptions("As the policy says"));
    this.overall.value = choice.operators["*"] ?? "";
    const own = choice.confidence !== null;
    this.bar.value = String(Math.round((own ? choice.confidence : detail.rules.PERSON?.threshold ?? 0.5) * 100));
    this.barSays.textContent = own ? `${this.bar.value} %` : "as the policy says";
    this.barReset.hidden = !own;
    this.reset.hidden = !Object.keys(choice.operators).length && !choice.off.length;
    const running = new Set(desk.running);
    fill(this.detectors, desk.detectors.filter((d) => d.available || detail.detectors.includes(d.name)).map((d) => {
      const box = checkbox(h("span", {}, DETECTOR_WORDS[d.name] ?? d.name, h("span", { class: "muted small" }, ` ${d.name}`)), { checked: running.has(d.name), dataset: { choice: d.name } });
      box.control.addEventListener("change", () => {
        if (box.control.checked) running.add(d.name);
        else running.delete(d.name);
        const now = desk.detectors.map((x) => x.name).filter((name) => running.has(name));
        const same = now.length === detail.detectors.length && now.every((name) => detail.detectors.includes(name));
        this.choose({ detectors: same ? null : now });
      });
      return box;
    }), !running.size && h("p", { class: "small muted" }, "No detector is on: only what you mark is replaced."));
    fill(this.off, choice.off.length > 0 && h("span", { class: "small muted" }, "Not looked for:"), choice.off.map((label) =>
      button(readable(label), { small: true, icon: "plus", dataset: { choice: label }, "aria-label": `Look for ${readable(label)} again`, onclick: () => this.choose({ off: choice.off.filter((l) => l !== label) }) })));
    this.key = "";
    this.drawRows();
  }

  operatorOptions(first) {
    return [{ value: "", label: first }, ...this.desk.operators.filter((o) => !["llm", "seq2seq"].includes(o.name)).map((o) => ({ value: o.name, label: OPERATOR_WORDS[o.name] ?? o.name }))];
  }

  drawRows() {
    const { desk } = this;
    const list = counts(desk.draft.marks);
    const samples = new Map();
    for (const mark of desk.draft.standing) {
      if (samples.has(mark.label)) continue;
      const into = desk.becomes(mark);
      if (into !== null) samples.set(mark.label, [desk.draft.text.slice(mark.start, mark.end), into]);
    }
    const labels = list.map(([label]) => label).join(" ");
    if (labels !== this.key) {
      this.key = labels;
      this.parts = new Map(list.map(([label]) => [label, this.row(label)]));
      fill(this.rows, [...this.parts.values()].map((p) => p.element), !list.length && h("li", { class: "small muted" }, "Each label in the text can have its own operator."));
    }
    for (const [label, n] of list) this.parts.get(label).update(n, samples.get(label));
  }

  row(label) {
    const { choice } = this.desk.space;
    const rule = this.desk.detail.rules[label];
    const std = choice.operators["*"] ?? rule?.operator ?? "suppress";
    const options = [...this.operatorOptions(OPERATOR_WORDS[std] ?? std), { value: OFF, label: "Do not look for it" }];
    const pick = select(options, { class: "small", value: choice.operators[label] ?? "", dataset: { choice: label }, "aria-label": `What replaces ${readable(label)}` });
    pick.addEventListener("change", () => (pick.value === OFF ? this.choose({ off: [...this.desk.space.choice.off, label] }) : this.operator(label, pick.value)));
    const number = h("span", { class: "numbers muted" });
    const sample = h("div", { class: "sample small muted cut" });
    const element = paint(h("li", { class: "label-row" }, h("span", { class: "dot", "aria-hidden": "true" }), h("span", { class: "row still" }, h("span", { class: "cut", title: `${readable(label)} (${label})` }, readable(label)), number), pick, sample), label);
    return {
      element,
      update: (n, example) => {
        number.textContent = n;
        fill(sample, example ? [h("span", {}, example[0].slice(0, 40)), " → ", h("span", { class: "strong" }, example[1] || "nothing")] : "\u00a0");
        sample.title = example ? `${example[0]} → ${example[1]}` : "";
      },
    };
  }
}
