// A document before and after, beside each other, with what was exchanged marked in both.

import { get } from "../../api.js";
import { emptyState, fill, h } from "../../ui.js";
import { paint, readable } from "../../families.js";
import { paged } from "../loading.js";
import { Offsets } from "../passage.js";

/** The texts of a release or a level of a job, opened on request: {element, show(number)}; one that is not there is made. */
export function textsOf(job) {
  const texts = h("div", {}), failed = new Set();
  const element = h("details", { class: "card fold" }, h("summary", {}, h("h2", {}, "Texts before and after")), texts);
  const ask = (number, offset, limit, again = false) => get(`/v1/jobs/${encodeURIComponent(job.id)}/releases/${encodeURIComponent(number)}/documents`,
    { query: again ? { offset, limit, again } : { offset, limit } });
  let wanted = null, drawn = null;
  const draw = () => {
    if (!element.open || drawn === wanted) return;
    const number = drawn = wanted;
    const reader = paged({
      size: 5,
      label: "Pages of texts",
      load: async (offset, limit) => {
        try {
          let some = await ask(number, offset, limit, failed.delete(number));
          for (let wait = 500; some.ready === false && element.isConnected; wait = Math.min(3000, wait * 1.5)) {
            await new Promise((go) => { setTimeout(go, wait); });
            some = await ask(number, offset, limit);
          }
          return { rows: some.documents, total: some.total ?? some.documents.length };
        } catch (error) {
          if (error.code === "NotMade") failed.add(number);
          throw error;
        }
      },
      draw: (some) => h("div", { class: "stack" }, some.map(beforeAfter)),
      empty: emptyState({ title: "No text changed", icon: "file" }),
    });
    fill(texts, reader);
    reader.reload();
  };
  element.addEventListener("toggle", draw);
  return { element, show: (number) => { wanted = number; draw(); } };
}

/** {id, before, after, before_spans?, spans} as an article. */
export function beforeAfter(one) {
  return h("article", { class: "pair-box" },
    h("h3", { class: "breaks" }, one.id),
    h("div", { class: "pair" },
      h("div", {}, h("h4", { class: "muted" }, "Before"), marked(one.before, one.before_spans ?? [])),
      h("div", {}, h("h4", { class: "muted" }, "After"), marked(one.after, one.spans ?? []))));
}

/** A text with spans {start, end, label, kind?} marked; offsets count code points. */
function marked(text, spans) {
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
