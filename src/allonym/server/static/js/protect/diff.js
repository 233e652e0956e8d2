// What was replaced by what: in one text, or both beside each other.

import { fill, h, segments } from "../ui.js";
import { paint, readable } from "../families.js";

/** Pieces of a text and of what was made of it: {same} or {gone, came, label}, in order. `places` as applied() gives. */
export function pieces(original, made, places) {
  const out = [];
  let left = 0;
  for (const p of places) {
    if (p.from > left) out.push({ same: original.slice(left, p.from) });
    out.push({ gone: original.slice(p.from, p.to), came: made.slice(p.start, p.end), label: p.label });
    left = p.to;
  }
  if (left < original.length) out.push({ same: original.slice(left) });
  return out;
}

/** The pieces by lines; what is replaced across a line's end belongs to the line where it begins. */
export function lines(list) {
  const out = [[]];
  for (const piece of list) {
    if (piece.same === undefined) {
      out.at(-1).push(piece);
      continue;
    }
    piece.same.split("\n").forEach((part, i) => {
      if (i) out.push([]);
      if (part) out.at(-1).push({ same: part });
    });
  }
  return out;
}

/** The view; `draw(original, made, places)`. */
export class Differences {
  constructor() {
    this.how = segments({ label: "Differences", value: "inline", options: [{ value: "inline", label: "In one" }, { value: "beside", label: "Side by side" }], onchange: () => this.given && this.draw(...this.given) });
    this.body = h("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "Differences" });
    this.root = h("div", { class: "diff-view", hidden: true }, h("div", { class: "row diff-head" }, this.how), this.body);
  }

  draw(original, made, places) {
    this.given = [original, made, places];
    const beside = this.how.value === "beside";
    const rows = lines(pieces(original, made, places));
    this.body.classList.toggle("beside", beside);
    const gone = (p) => p.gone && paint(h("del", { title: readable(p.label) }, p.gone), p.label);
    const came = (p) => p.came && paint(h("ins", { title: readable(p.label) }, p.came), p.label);
    const side = (row, which) => h("div", { class: "diff-side" }, row.map((p) => p.same ?? which(p)), !row.length && "\u00a0");
    fill(this.body, rows.map((row) => (beside
      ? h("div", { class: "diff-line" }, side(row, gone), side(row, came))
      : h("div", { class: "diff-line" }, row.map((p) => p.same ?? [gone(p), p.gone && p.came ? " " : null, came(p)]), !row.length && "\u00a0"))));
  }
}
