// The card of one mention: what it is taken for, and everything that can be said about it, by mouse and by keyboard.

import { button, fill, h, iconButton, select } from "../ui.js";
import { place } from "../overlay.js";
import { paint, readable } from "../families.js";
import { wordEdge } from "./marks.js";

const LONGEST = 80;
const CHOOSING = new Set(["ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]);
const FREQUENT = ["PERSON", "ORGANIZATION", "LOCATION", "STREET_ADDRESS", "DATE", "EMAIL_ADDRESS", "PHONE_NUMBER", "GENERIC_ID", "OCCUPATION", "MEDICAL_TERM", "OTHER_IDENTIFYING_ATTRIBUTE"];

/** Options for a select of labels: the frequent ones, then each family under its root. */
function labelOptions(labels) {
  const parent = new Map(labels.map((l) => [l.name, l.parent]));
  const root = (name) => {
    let at = name;
    while (parent.get(at)) at = parent.get(at);
    return at;
  };
  const groups = new Map();
  for (const { name } of labels) {
    const top = root(name);
    if (!groups.has(top)) groups.set(top, []);
    groups.get(top).push(name);
  }
  const one = (name) => ({ value: name, label: readable(name) });
  const alone = [...groups].filter(([, names]) => names.length === 1).map(([name]) => name);
  return [
    { group: "Often", options: FREQUENT.filter((n) => parent.has(n)).map(one) },
    ...[...groups].filter(([, names]) => names.length > 1).map(([top, names]) => ({ group: readable(top), options: names.map(one) })),
    { group: "More", options: alone.map(one) },
  ];
}

/**
 * The card. `owner` does what is said: accept, reject, withdraw, relabel, resize, add, merge, split (each with the mark
 * and `alike`), next(direction), back() for the focus; and knows alike(mark), becomes(mark), others(mark).
 */
export class Card {
  constructor({ owner, labels }) {
    this.owner = owner;
    this.labels = labelOptions(labels);
    this.element = h("div", { class: "mention-card", role: "dialog", "aria-label": "Mention", tabindex: "-1", hidden: true });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.mark = null;
    this.last = "PERSON";
    this.drawn = 0;
  }

  get open() {
    return !this.element.hidden;
  }

  /** Shows a mention, or with `adding` a stretch to mark; `focus`: the keyboard goes into the card. */
  show(mark, rectangle, { focus = false, adding = false } = {}) {
    if (this.leaving) {
      this.refresh(mark);
      return;
    }
    this.drawn += 1;
    this.mark = mark;
    this.adding = adding;
    this.rectangle = rectangle;
    this.element.hidden = false;
    this.element.setAttribute("aria-label", adding ? "Mark this as a mention" : `Mention: ${this.owner.words(mark).slice(0, LONGEST)}`);
    fill(this.element, adding ? this.addingParts(mark) : this.parts(mark));
    paint(this.element, mark.label ?? this.last);
    place(this.element, rectangle, 8);
    if (focus) (adding ? this.element.querySelector("select") : this.element).focus({ preventScroll: true });
  }

  close(back = false) {
    if (!this.open) return;
    const inside = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.mark = null;
    if (back || inside) this.owner.back();
  }

  words(mark) {
    const said = this.owner.words(mark);
    return said.length > LONGEST ? `${said.slice(0, LONGEST - 1)}…` : said;
  }

  head(mark, extra) {
    return h("header", { class: "spread" }, h("div", { class: "stack tight grow" }, h("strong", { class: "breaks card-words" }, this.words(mark)), extra),
      iconButton("close", "Close (Esc)", { small: true, onclick: () => this.close(true) }));
  }

  addingParts(mark) {
    const label = select(this.labels, { class: "small", value: this.last, "aria-label": "Label" });
    const count = this.owner.alikeWords(mark).length;
    const all = this.alikeBox(count, `also the ${count} other places with these words`);
    const add = () => {
      this.last = label.value;
      this.owner.add(mark, label.value, all.control.checked);
    };
    label.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        add();
      }
    });
    return [this.head(mark, h("span", { class: "tiny muted" }, "not marked")), label, count > 0 && all,
      h("div", { class: "row" }, button("Mark", { kind: "primary", small: true, icon: "plus", onclick: add }))];
  }

  alikeBox(count, words) {
    const control = h("input", { type: "checkbox", props: { checked: this.all ?? false }, onchange: () => { this.all = control.checked; } });
    return h("label", { class: "check tiny" }, control, h("span", {}, words));
  }

  /** The same mention as it stands now, after the server has answered. */
  refresh(mark) {
    this.mark = mark;
    const told = this.element.querySelector(".card-told");
    if (told) told.textContent = this.told(mark);
  }

  told(mark) {
    if (mark.verdict === "rejected") return "stays as it is: you rejected it";
    const becomes = this.owner.becomes(mark);
    return becomes === null ? "\u00a0" : becomes === "" ? "will be taken out" : `becomes ${becomes}`;
  }

  parts(mark) {
    const { owner } = this;
    const rejected = mark.verdict === "rejected";
    const label = this.picker(this.labels, "relabel", { class: "small", value: mark.label, "aria-label": "Label" });
    const alike = owner.alike(mark).length;
    const others = owner.others(mark);
    const same = this.picker([{ value: "", label: others.length ? "Same as…" : "Nobody else to merge with" }, ...others.map((o) => ({ value: String(o.id), label: o.label }))], "merge",
      { class: "small", value: "", "aria-label": "Merge with another entity", disabled: !others.length });
    const edge = (which, direction, name, words) => iconButton(name, words, { small: true, onclick: (event) => this.move(which, direction, event.shiftKey) });
    return [
      this.head(mark, h("span", { class: "tiny muted breaks card-told" }, this.told(mark))),
      h("div", { class: "row" },
        button("Accept", { small: true, icon: "check", "aria-pressed": String(mark.verdict === "accepted"), "aria-keyshortcuts": "A", onclick: () => this.do("accept") }),
        rejected
          ? button("Take it back", { small: true, icon: "undo", "aria-keyshortcuts": "R", onclick: () => this.do("withdraw") })
          : button("Reject", { small: true, icon: "close", "aria-keyshortcuts": "R", onclick: () => this.do("reject") }),
        h("span", { class: "grow" }),
        iconButton("left", "Previous mention (P)", { small: true, onclick: () => owner.next(-1, true) }),
        iconButton("right", "Next mention (N)", { small: true, onclick: () => owner.next(1, true) })),
      h("div", { class: "card-lines" },
        h("span", { class: "label" }, "Label"), label,
        !rejected && [
          h("span", { class: "label" }, "Edges"),
          h("div", { class: "row still" },
            h("span", { class: "tiny muted" }, "start"), edge("start", -1, "left", "Start one to the left (Shift: a word)"), edge("start", 1, "right", "Start one to the right (Shift: a word)"),
            h("span", { class: "tiny muted" }, "end"), edge("end", -1, "left", "End one to the left (Shift: a word)"), edge("end", 1, "right", "End one to the right (Shift: a word)")),
          h("span", { class: "label" }, "Entity"),
          h("div", { class: "row still" }, same, iconButton("split", "Split off as another entity (S)", { small: true, disabled: !owner.shared(mark), onclick: () => this.do("split") })),
        ]),
      alike > 0 && this.alikeBox(alike, alike === 1 ? "also the other mention with these words" : `also the ${alike} other mentions with these words`),
      h("p", { class: "tiny muted breaks" }, source(mark)),
    ];
  }

  /** A select whose choice counts at once by mouse; by keys with Enter or when it is left, since they go through all. */
  picker(options, what, attributes) {
    const element = select(options, attributes);
    const { drawn } = this;
    let [taken, keyed] = [element.value, false];
    const take = () => {
      if (!element.value || element.value === taken) return;
      taken = element.value;
      this.do(what, taken);
    };
    element.addEventListener("pointerdown", () => { keyed = false; });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && keyed) {
        event.preventDefault();
        take();
      } else if (event.key !== "Tab" && event.key !== "Shift") {
        keyed = !event.altKey && (CHOOSING.has(event.key) || (event.key.length === 1 && event.key !== " "));
      }
    });
    element.addEventListener("change", () => keyed || take());
    element.addEventListener("blur", () => {
      if (!this.open || this.drawn !== drawn) return;
      this.leaving = true; // what was pressed to leave it must not go
      take();
      this.leaving = false;
    });
    return element;
  }

  /** What stands chosen in a select counts now. */
  settle() {
    if (this.element.contains(document.activeElement) && document.activeElement.matches("select")) document.activeElement.blur();
  }

  do(what, ...given) {
    this.owner[what](this.mark, ...given, Boolean(this.all));
  }

  move(which, direction, word) {
    const { mark } = this;
    const text = this.owner.text();
    const step = (at) => {
      if (word) return wordEdge(text, at, direction);
      const to = at + direction;
      return /[\udc00-\udfff]/.test(text[to] ?? "") ? to + direction : to;
    };
    const [start, end] = which === "start" ? [step(mark.start), mark.end] : [mark.start, step(mark.end)];
    this.owner.resize(mark, start, end);
  }

  key(event) {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close(true);
      return;
    }
    if (event.ctrlKey || event.metaKey || this.adding || event.target.matches("select")) return;
    const arrow = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const run = arrow
      ? () => this.move(event.altKey ? "start" : "end", arrow, event.shiftKey)
      : {
          a: () => this.do("accept"), r: () => this.do(this.mark.verdict === "rejected" ? "withdraw" : "reject"), Delete: () => this.do("reject"),
          l: () => this.element.querySelector('select[aria-label="Label"]')?.focus(),
          m: () => this.element.querySelector('select[aria-label^="Merge"]')?.focus(),
          s: () => this.do("split"), n: () => this.owner.next(1, true), p: () => this.owner.next(-1, true),
        }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }
}

function source(mark) {
  if (mark.verdict === "added") return "You marked this.";
  const by = mark.source ? `Found by ${mark.source}` : "Found";
  return `${by}, confidence ${Math.round(mark.score * 100)} %.`;
}

