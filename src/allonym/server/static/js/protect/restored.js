// The text with its originals again: each with the rule by which it was known, and what stayed unknown.

import { badge, fill, h, notice } from "../ui.js";
import { paint, readable } from "../families.js";

const TOKEN = /\[[A-Z][A-Z_ ]*_\d+\]|<[A-Z][A-Z_ ]* (?:\d+|"?[0-9A-Fa-f]{6,}"?)>/g;
const MISSING = /^this text does not mention one ([A-Z_0-9]+) of the original$/;
const RULES = {
  exact: "as it was written", case: "other capitals", spacing: "other spacing", typo: "a slip of the pen", shortened: "a part of the name",
};

/** A rule for people. */
export function rule(name) {
  return name.split("+").map((r) => RULES[r] ?? r).join(", ");
}

/** The view; `draw(restored)` with what /v1/restore answered, offsets in units. */
export class RestoredView {
  constructor() {
    this.summary = h("div", { class: "stack restored-head" });
    this.body = h("div", { class: "restored-text", tabindex: "0", role: "region", "aria-label": "Restored text" });
    this.root = h("div", { class: "restored-view", hidden: true }, this.summary, this.body);
  }

  draw({ text, restored, unknown, notes, found }) {
    const rules = new Map();
    for (const f of found) rules.set(f.rule, (rules.get(f.rule) ?? 0) + 1);
    const left = [...text.matchAll(TOKEN)].map((m) => ({ start: m.index, end: m.index + m[0].length, unknown: true }))
      .filter((t) => !found.some((f) => f.start < t.end && t.start < f.end));
    fill(this.summary,
      h("div", { class: "row" }, badge(`${restored} restored`, "good"), unknown > 0 && badge(`${unknown} not restored`, "warn"),
        [...rules].filter(([name]) => name !== "exact").map(([name, n]) => badge(`${n} × ${rule(name)}`))),
      notes.length > 0 && notice(h("div", { class: "stack tight small" }, remarks(notes).map((n) => h("span", {}, n))), { kind: "warn" }),
      !restored && !unknown && notice("No replacement in this text is known here."));
    const out = [];
    let at = 0;
    for (const f of [...found, ...left].sort((a, b) => a.start - b.start)) {
      if (f.start < at) continue;
      out.push(text.slice(at, f.start));
      const words = text.slice(f.start, f.end);
      if (f.unknown) out.push(h("mark", { class: "unknown", title: "Not known here" }, words));
      else {
        const how = rule(f.rule);
        out.push(paint(h("mark", { class: "back", title: `${readable(f.label)}, ${how}` }, words), f.label));
        if (f.rule !== "exact") out.push(h("span", { class: "rule" }, how));
      }
      at = f.end;
    }
    out.push(text.slice(at));
    fill(this.body, out);
  }
}

/** Notes as sentences; what is missing is told in one. */
function remarks(notes) {
  const missing = [];
  const rest = [];
  for (const note of notes) {
    const gone = MISSING.exec(note);
    if (gone) missing.push(readable(gone[1]).toLowerCase());
    else rest.push(sentence(note));
  }
  return missing.length ? [`Not mentioned in this text: ${missing.join(", ")}.`, ...rest] : rest;
}

function sentence(words) {
  const said = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?]$/.test(said) ? said : `${said}.`;
}
