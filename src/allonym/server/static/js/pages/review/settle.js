// Two readings that do not say the same: what each said, and which of them holds.

import { button, fill, h } from "../../ui.js";
import { readable } from "../../families.js";
import { many } from "../format.js";
import { MARKS } from "./panel.js";
import { keyOf, plainDecision, plainMark } from "./reading.js";

const same = (a, b) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

/** The list of differences; `.draw()` shows how each stands in the reading that will hold, `.open` is how many are undecided. */
export function differences(doc, reading, view) {
  const [a, b] = doc.others;
  const rows = [...findingRows(doc, a, b), ...markRows(a, b)].sort((x, y) => x.start - y.start);
  const element = h("section", { class: "card stack settle", "aria-label": "Differences" });
  const take = (row, whose) => {
    const decisions = [...reading.decisions.values()], settled = [...reading.settled, row.key];
    if (row.kind === "f") reading.replace({ marks: reading.marks, decisions: [...decisions, row[whose]], settled });
    else reading.replace({ marks: [...reading.marks.filter((m) => m.end <= row.start || m.start >= row.end), ...row[whose]], decisions, settled });
  };
  const all = (one, whose) => {
    const findings = rows.filter((row) => row.kind === "f").map((row) => row[whose]);
    reading.replace({ marks: one.marks, decisions: [...one.decisions, ...findings], settled: rows.map((row) => row.key) });
  };
  const stands = (row) => {
    const now = row.kind === "f" ? reading.on(row.target.span) : within(reading.marks, row);
    if (row.kind === "f" ? !now : !reading.settled.has(row.key) && same(now, row.neither)) return null;
    return ["a", "b", "neither"].find((whose) => same(now, row[whose])) ?? "own";
  };
  element.draw = () => {
    const at = [...element.querySelectorAll("button")].indexOf(document.activeElement);
    const stand = new Map(rows.map((row) => [row, stands(row)]));
    const left = rows.filter((row) => !stand.get(row)).length;
    element.open = left;
    const choice = (row, whose, words) => button(words, { small: true, "aria-pressed": String(stand.get(row) === whose), onclick: () => take(row, whose) });
    const said = (row, whose, name) => choice(row, whose, `${name}: ${row.kind === "f" ? verdictWords(row[whose]) : markWords(row[whose])}`);
    fill(element,
      h("div", { class: "spread" },
        h("div", { class: "stack tight" }, h("h2", {}, rows.length ? `${many(rows.length, "difference")}` : "No difference"),
          h("p", { class: "small muted" }, rows.length ? `${left ? `${left} open; it can be settled once all are decided. ` : "All decided. "}What both said alike is taken over.` : "Both reviewers agree.")),
        h("div", { class: "row" }, button(`All as ${a.reviewer}`, { small: true, onclick: () => all(a, "a") }), button(`All as ${b.reviewer}`, { small: true, onclick: () => all(b, "b") }))),
      rows.length > 0 && h("ol", { class: "differences" }, rows.map((row) => h("li", {},
        h("button", { type: "button", class: "link cut", onclick: () => view.show(row.target) }, view.text(row.start, row.end)),
        h("div", { class: "row" }, stand.get(row) === "own" && h("span", { class: "small muted" }, "decided otherwise"), said(row, "a", a.reviewer), said(row, "b", b.reviewer),
          row.kind === "m" && row.a.length > 0 && row.b.length > 0 && choice(row, "neither", "Neither"))))));
    if (at >= 0) element.querySelectorAll("button")[at].focus();
  };
  return element;
}

function findingRows(doc, a, b) {
  const of = (reading, span) => plainDecision(reading.decisions.find((d) => keyOf("f", d) === keyOf("f", span)) ?? { ...span, verdict: "accept" });
  return doc.spans.map((span) => ({
    kind: "f", key: keyOf("f", span), start: span.start, end: span.end, a: of(a, span), b: of(b, span), target: { type: "finding", span },
  })).filter((row) => !same(row.a, row.b));
}

/** Marks that only one made, those that touch each other together. */
function markRows({ marks: a }, { marks: b }) {
  const among = (marks, m) => marks.some((n) => same(plainMark(m), plainMark(n)));
  const only = [...a.filter((m) => !among(b, m)), ...b.filter((m) => !among(a, m))].sort((x, y) => x.start - y.start);
  const both = a.filter((m) => among(b, m));
  const groups = [];
  for (const mark of only) {
    const last = groups.at(-1);
    if (last && mark.start < last.end) last.end = Math.max(last.end, mark.end);
    else groups.push({ start: mark.start, end: mark.end });
  }
  return groups.map((g) => ({
    kind: "m", key: `m:${g.start}`, ...g, a: within(a, g), b: within(b, g), neither: within(both, g), target: { type: "selection", start: g.start, end: g.end },
  }));
}

function within(marks, g) {
  return marks.filter((m) => m.start < g.end && m.end > g.start).map(plainMark).sort((x, y) => x.start - y.start);
}

function verdictWords(decision) {
  if (decision.verdict === "accept" || decision.verdict === "reject") return decision.verdict;
  if (decision.verdict === "relabel") return readable(decision.new_label).toLowerCase();
  return "other edges";
}

function markWords(marks) {
  if (!marks.length) return "nothing missed";
  return marks.map((m) => `${MARKS[m.kind].label.toLowerCase()} ${readable(m.label).toLowerCase()}`).join(", ");
}
