// Two readings that do not say the same: what each said, and which of them holds.

import { button, fill, h } from "../../ui.js";
import { readable } from "../../families.js";
import { many } from "../format.js";
import { MARKS } from "./panel.js";
import { keyOf } from "./reading.js";

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** The list of differences; `.draw()` shows how each stands in the reading that will hold. */
export function differences(doc, reading, view) {
  const [a, b] = doc.others;
  const rows = [...findingRows(doc, a, b), ...markRows(a, b)].sort((x, y) => x.start - y.start);
  const element = h("section", { class: "card stack settle", "aria-label": "Differences" });
  const take = (row, whose) => {
    const decisions = [...reading.decisions.values()].filter((d) => row.kind !== "f" || keyOf("f", d) !== row.key);
    const marks = reading.marks.filter((m) => row.kind !== "m" || m.end <= row.start || m.start >= row.end);
    const said = row[whose];
    if (said && row.kind === "f") decisions.push(said);
    if (said && row.kind === "m") marks.push(...said);
    row.taken = whose;
    reading.replace({ marks, decisions });
  };
  const all = (one, whose) => {
    for (const row of rows) row.taken = whose;
    reading.replace(one);
  };
  element.draw = () => {
    const left = rows.filter((row) => !row.taken).length;
    fill(element,
      h("div", { class: "spread" },
        h("div", { class: "stack tight" }, h("h2", {}, rows.length ? `${many(rows.length, "difference")}` : "No difference"),
          h("p", { class: "small muted" }, rows.length ? `${left ? `${left} open. ` : "All decided. "}What both said alike is taken over.` : "Both reviewers said the same.")),
        h("div", { class: "row" }, button(`All as ${a.reviewer}`, { small: true, onclick: () => all(a, "a") }), button(`All as ${b.reviewer}`, { small: true, onclick: () => all(b, "b") }))),
      rows.length > 0 && h("ol", { class: "differences" }, rows.map((row) => h("li", {},
        h("button", { type: "button", class: "link cut", onclick: () => view.show(row.target) }, view.text(row.start, row.end)),
        h("div", { class: "row" }, choice(row, "a", a.reviewer), choice(row, "b", b.reviewer))))));
  };
  const choice = (row, whose, name) => button(`${name}: ${row.kind === "f" ? verdictWords(row[whose]) : markWords(row[whose])}`, { small: true, "aria-pressed": String(row.taken === whose), onclick: () => take(row, whose) });
  return { element, draw: element.draw };
}

function findingRows(doc, a, b) {
  const of = (reading, span) => reading.decisions.find((d) => keyOf("f", d) === keyOf("f", span));
  const counts = (d) => (d && d.verdict !== "accept" ? d : null);
  return doc.spans.filter((span) => !same(counts(of(a, span)), counts(of(b, span)))).map((span) => ({
    kind: "f", key: keyOf("f", span), start: span.start, end: span.end, a: of(a, span), b: of(b, span), target: { type: "finding", span },
  }));
}

/** Marks that only one made, those that touch each other together. */
function markRows(a, b) {
  const only = [...a.marks.filter((m) => !b.marks.some((n) => same(m, n))), ...b.marks.filter((m) => !a.marks.some((n) => same(m, n)))].sort((x, y) => x.start - y.start);
  const groups = [];
  for (const mark of only) {
    const last = groups.at(-1);
    if (last && mark.start < last.end) last.end = Math.max(last.end, mark.end);
    else groups.push({ start: mark.start, end: mark.end });
  }
  const within = (reading, g) => reading.marks.filter((m) => m.start < g.end && m.end > g.start);
  return groups.map((g) => ({ kind: "m", key: `m:${g.start}`, ...g, a: within(a, g), b: within(b, g), target: { type: "selection", start: g.start, end: g.end } }));
}

function verdictWords(decision) {
  if (!decision || decision.verdict === "accept") return "accept";
  if (decision.verdict === "reject") return "reject";
  if (decision.verdict === "relabel") return readable(decision.new_label).toLowerCase();
  return "other edges";
}

function markWords(marks) {
  if (!marks?.length) return "nothing missed";
  return marks.map((m) => `${MARKS[m.kind].label.toLowerCase()} ${readable(m.label).toLowerCase()}`).join(", ");
}
