// Beside a document: what can be said of what is selected, and what is said so far.

import { badge, button, fill, h, icon, iconButton, segments } from "../../ui.js";
import { paint, readable } from "../../families.js";
import { many, share } from "../format.js";
import { facts } from "../loading.js";
import { labelSelect } from "../policychoice.js";
import { keyOf } from "./reading.js";

export const MARKS = {
  missed: { label: "Missed", key: "M", says: "all of it should have been replaced" },
  partial: { label: "Partial", key: "P", says: "a part of it was replaced, this part was not" },
  speaker: { label: "Speaker", key: "S", says: "it tells who speaks: their organisation or product" },
};
const SPEAKER = ["ORGANIZATION", "PRODUCT"];

/**
 * The panel. `view`: {doc, reading, labels, locked, text(start, end), show(target), leave(), …}; `.draw(target)` with
 * {type: "selection"|"proposal", start, end, label?}, {type: "finding", span}, {type: "mark", mark} or null.
 */
export function makePanel(view) {
  const element = h("aside", { class: "card review-panel", "aria-label": "What is selected" });
  element.draw = (target) => {
    element.dataset.type = target?.type ?? "";
    const [head, ...parts] = target ? DRAW[target.type](view, target) : overview(view);
    fill(element, h("div", { class: "stack" },
      target ? h("div", { class: "row still" }, h("div", { class: "grow" }, head), iconButton("close", "Close", { small: true, onclick: view.leave })) : head, parts));
  };
  return element;
}

const DRAW = { selection: stretch, proposal: stretch, finding, mark };

function quoted(view, start, end, label) {
  const words = view.text(start, end);
  const cut = words.length > 160 ? `${words.slice(0, 160)}…` : words;
  const element = h("span", { class: "quoted breaks" }, cut);
  return h("p", { class: "quote" }, label ? paint(element, label) : element);
}

/** A stretch that nothing covers yet: somebody's selection, or what a second reading proposes. */
function stretch(view, target) {
  const { start, end } = target;
  const head = target.type === "proposal"
    ? [h("h2", {}, "Was this missed?"), h("p", { class: "small muted" }, `A second reading proposes ${readable(target.label).toLowerCase()}, ${share(target.score, 0)} sure. Many of its proposals are no mistakes.`)]
    : [h("h2", {}, "Selected text")];
  if (view.locked) return [...head, quoted(view, start, end)];
  const label = labelSelect(view.labels, { value: target.label ?? view.lastLabel, "aria-label": "Label" });
  const press = (kind) => {
    const { label: name, key } = MARKS[kind];
    const made = button(name, { kind: kind === (target.partial ? "partial" : "missed") ? "primary" : "" , "aria-keyshortcuts": key, onclick: () => view.mark(start, end, kind, label.value) });
    made.append(h("kbd", { "aria-hidden": "true" }, key));
    return made;
  };
  view.pendingLabel = () => label.value;
  return [...head, quoted(view, start, end, target.label), h("div", { class: "field" }, h("span", { class: "label" }, "Label"), label),
    h("div", { class: "row" }, Object.keys(MARKS).map(press)), h("ul", { class: "plain small muted" }, Object.values(MARKS).map((one) => h("li", {}, h("strong", {}, one.label), ": ", one.says)))];
}

function finding(view, { span }) {
  const { reading } = view;
  const decision = reading.on(span);
  const verdict = decision?.verdict ?? null;
  const under = reading.under(span) ?? span;
  const head = [
    h("div", { class: "spread" }, h("h2", {}, "Finding"), verdictBadge(verdict)),
    quoted(view, under.start, under.end, under.label),
    facts([["Label", readable(span.label)], ["Confidence", share(span.score, 0)], ["Found by", span.source || "–"]]),
  ];
  if (view.locked) return head;
  const choice = segments({
    label: "Verdict", value: verdict === "reject" ? "reject" : verdict === "accept" ? "accept" : verdict ? "change" : "",
    options: [{ value: "accept", label: "Accept" }, { value: "reject", label: "Reject" }, ...(verdict === "relabel" || verdict === "resize" ? [{ value: "change", label: "Changed" }] : [])],
    onchange: (value) => { if (value !== "change") view.decide(span, value); },
  });
  const label = labelSelect(view.labels, { value: under.label, "aria-label": "Label of this finding" });
  label.addEventListener("change", () => view.relabel(span, label.value));
  const edge = (words, which, by) => button(words, { small: true, onclick: () => view.resize(span, which, by) });
  return [...head,
    h("div", { class: "row" }, choice, h("span", { class: "small muted keys" }, h("kbd", {}, "A"), h("kbd", {}, "X"))),
    verdict !== "reject" && h("div", { class: "field" }, h("span", { class: "label" }, "Label"), label),
    verdict !== "reject" && h("div", { class: "field" }, h("span", { class: "label" }, "Edges, by a word"),
      h("div", { class: "row" }, edge("← start", "start", -1), edge("start →", "start", 1), edge("← end", "end", -1), edge("end →", "end", 1))),
    verdict && h("div", {}, button("Take the decision back", { small: true, kind: "quiet", icon: "undo", onclick: () => view.decide(span, null) })),
    lists(view, "f", span, verdict === "reject" ? "never" : "always"),
  ];
}

function mark(view, { mark: one }) {
  const head = [h("div", { class: "spread" }, h("h2", {}, "Mark"), badge(MARKS[one.kind].label.toLowerCase(), "danger")), quoted(view, one.start, one.end, one.label)];
  if (view.locked) return [...head, facts([["Label", readable(one.label)]])];
  const kind = segments({ label: "Kind", value: one.kind, options: Object.entries(MARKS).map(([value, { label }]) => ({ value, label })), onchange: (value) => view.change(one, { kind: value, label: speakerLabel(value, one.label) }) });
  const label = labelSelect(view.labels, { value: one.label, "aria-label": "Label of this mark" });
  label.addEventListener("change", () => view.change(one, { label: label.value }));
  return [...head, h("div", {}, kind), h("div", { class: "field" }, h("span", { class: "label" }, "Label"), label),
    h("div", {}, button("Remove the mark", { small: true, kind: "quiet", icon: "trash", onclick: () => view.unmark(one) })),
    lists(view, "m", one, "always")];
}

/** The label that a mark of a speaker can have: only organisations and products tell one. */
export function speakerLabel(kind, label) {
  if (kind !== "speaker" || SPEAKER.some((name) => label.startsWith(name))) return label;
  return "ORGANIZATION";
}

/** "Always find this", "Never find this": in this project, or everywhere. */
function lists(view, kind, one, which) {
  const added = view.listed.get(keyOf(kind, one));
  const words = which === "never" ? "Never find this" : "Always find this";
  if (added?.which === which) return h("p", { class: "row small" }, badge(which === "never" ? "never found" : "always found", "accent"), added.list === "all" ? "everywhere" : "in this project");
  return h("div", { class: "stack tight lists-box" }, h("span", { class: "label" }, words),
    h("div", { class: "row" },
      view.lists.map(([list, says]) => button(says, { small: true, icon: "plus", onclick: () => view.remember(kind, one, list, which) }))));
}

function verdictBadge(verdict) {
  const [words, kind] = { accept: ["accepted", "good"], reject: ["rejected", "danger"], relabel: ["relabelled", "info"], resize: ["edges moved", "info"] }[verdict] ?? ["as found", ""];
  return badge(words, kind);
}

/** Nothing is selected: what there is, why this risk, and how to go on. */
function overview(view) {
  const { doc, reading } = view;
  const { findings, rejected, changed, marks } = reading.counts();
  const open = doc.proposals.filter((p) => !covered(view, p));
  return [
    h("h2", {}, "This document"),
    facts([
      ["Findings", `${findings}${rejected ? `, ${rejected} rejected` : ""}${changed ? `, ${changed} changed` : ""}`],
      ["Marked as missed", marks],
      view.score !== null && ["Residual risk", many(view.score, "point")],
    ]),
    doc.reasons.length > 0 && h("div", { class: "stack tight" }, h("h3", {}, "Why this risk"),
      h("ul", { class: "plain small" }, doc.reasons.slice(0, 6).map((r) => h("li", {}, `${readable(r.tag.replace(/_PARTIAL$/, ""))}${r.tag.endsWith("_PARTIAL") ? ", a part" : ""}: ${many(r.points, "point")}, ${share(r.chance, 0)} sure`)))),
    open.length > 0 && h("div", { class: "stack tight" }, h("h3", {}, "Look at"),
      h("ul", { class: "look" }, open.slice(0, 12).map((p) => h("li", {}, h("button", { type: "button", class: "link cut", onclick: () => view.show({ type: "proposal", ...p }) }, view.text(p.start, p.end)), h("span", { class: "small muted" }, readable(p.label))))),
      open.length > 12 && h("p", { class: "small muted" }, `and ${open.length - 12} more`)),
    !view.locked && h("div", { class: "stack tight small muted" }, h("p", {}, "Select text that should have been replaced, or click a finding. Findings that you leave alone count as accepted."), keys()),
  ];
}

function covered(view, p) {
  return view.reading.marks.some((m) => m.start < p.end && m.end > p.start);
}

function keys() {
  const rows = [["← →", "walk by word, with ⇧ select more"], ["M P S", "missed, partial, speaker"], ["N B", "next, previous finding"], ["A X", "accept, reject"], ["L", "label"], ["Ctrl Z", "undo"], ["D", "done and next"]];
  return h("details", { class: "more" }, h("summary", {}, icon("keyboard"), "Keys"), h("dl", { class: "keylist" }, rows.map(([k, says]) => [h("dt", {}, h("kbd", {}, k)), h("dd", {}, says)])));
}
