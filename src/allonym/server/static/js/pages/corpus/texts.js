// A document before and after, beside each other, with what was exchanged marked in both.

import { h } from "../../ui.js";
import { paint, readable } from "../../families.js";
import { Offsets } from "../passage.js";

/** {id, before, after, before_spans?, spans} as an article. */
export function beforeAfter(one) {
  return h("article", { class: "pair-box" },
    h("h3", { class: "breaks" }, one.id),
    h("div", { class: "pair" },
      h("div", {}, h("h4", { class: "muted" }, "Before"), marked(one.before, one.before_spans ?? [])),
      h("div", {}, h("h4", { class: "muted" }, "After"), marked(one.after, one.spans ?? []))));
}

/** A text with spans {start, end, label, kind?} marked; offsets count code points. */
export function marked(text, spans) {
  const offsets = new Offsets(text);
  const root = h("p", { class: "passage" });
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (span.start < at) continue;
    root.append(offsets.slice(at, span.start));
    const title = [readable(span.label ?? ""), span.kind].filter(Boolean).join(", ");
    const mark = h("mark", { class: `label ${span.kind && span.kind !== "swap" ? "fallen" : ""}`, title }, offsets.slice(span.start, span.end));
    root.append(paint(mark, (span.label ?? "").toUpperCase()));
    at = span.end;
  }
  root.append(offsets.slice(at, offsets.length));
  return root;
}
