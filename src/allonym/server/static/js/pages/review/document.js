// One document under review: the text with findings and marks, what it would become, and what can be said of it.

import { get, put } from "../../api.js";
import { announce, badge, button, busy, fill, h, icon, iconButton, notice, describeError, segments, toast } from "../../ui.js";
import { beforeLeaving, go, route } from "../../router.js";
import { may } from "../../session.js";
import { readable } from "../../families.js";
import { passage } from "../passage.js";
import { choices } from "../policychoice.js";
import { many } from "../format.js";
import { MARKS, makePanel, speakerLabel } from "./panel.js";
import { differences } from "./settle.js";
import { watchLooks } from "./looks.js";
import { keyOf, makeReading, sides } from "./reading.js";
import { STATES, riskBar } from "./queue.js";

const WORD = /[\p{L}\p{N}\p{M}]+(?:['’@._-][\p{L}\p{N}]+)*/gu;

/** Shows a document of a project at a place (see queue.js); gives a function that cleans up. */
export async function showDocument(root, place, id) {
  const path = `${place.path}/documents/${encodeURIComponent(id)}`;
  const [doc, { labels }] = await Promise.all([get(path), choices()]);
  const settling = doc.state === "disagreement" && may("adjudicate");
  const holds = doc.state === "done" ? doc.settled ?? doc.others[0] ?? doc : doc;
  const mine = settling ? startOfSettling(doc) : { marks: holds.marks, decisions: holds.decisions, version: holds.version };
  const view = {
    doc, labels, settling, score: null, listed: new Map(), lastLabel: "PERSON", target: null, seen: "",
    lists: place.lists ?? [["project", "In this project"], ...(may("adjudicate") ? [["all", "Everywhere"]] : [])],
    locked: !settling && (doc.state === "disagreement" || doc.state === "done"),
  };
  const saved = h("span", { class: "small muted saved", role: "status" });
  const failed = h("div", { hidden: true });
  let dirty = false;
  const reading = makeReading({
    ...mine, spans: doc.spans, opened: () => looks.current(),
    save: (body) => put(`${path}/${settling ? "settled" : "marks"}`, body),
    told: (what) => {
      if (what === "changed") { dirty = true; saved.textContent = "Not saved yet"; draw(); return; }
      if (what === "saving") { saved.textContent = "Saving…"; return; }
      if (what.saved) { dirty = !what.complete; take(what.saved, what.lists); return; }
      saved.textContent = "Not saved";
      fill(failed, notice(what.failed.status === 409
        ? `${what.words} Load the document again to go on.`
        : what.words, { kind: "danger", actions: [button("Load again", { small: true, onclick: () => location.reload() })] }));
      failed.hidden = false;
    },
  });
  view.reading = reading;

  const original = passage({ text: doc.text, label: "Original text", onRange: pickRange, onSelect: (a, b) => selected(a, b) });
  const looks = watchLooks(original, doc.text, doc.opened);
  view.text = (a, b) => original.offsets.slice(a, b);
  let edits = doc.edits, become = null;
  const after = h("div", { class: "after" });
  const drawAfter = (text) => {
    become?.leave();
    const map = sides(edits);
    become = passage({ text, label: "Anonymised text", onSelect: (a, b) => (a === null ? selected(null, null) : selected(...map.home(a, b))) });
    become.draw(map.steps.filter((s) => s.toEnd > s.to).map((s, i) => ({ start: s.to, end: s.toEnd, key: `e${i}`, kind: "edit", label: s.label, title: readable(s.label) })));
    fill(after, become.element);
  };

  const panel = makePanel(view);
  const undo = iconButton("undo", "Undo", { onclick: () => reading.undo() });
  const redo = iconButton("redo", "Redo", { onclick: () => reading.redo() });
  const finish = button(settling ? "Settle" : "Done, next", { kind: "primary", icon: "check", "aria-keyshortcuts": "D" });
  const panes = h("div", { class: "review-panes both" },
    h("section", { class: "pane", "aria-label": "Original" }, h("h2", { class: "pane-name" }, "Original"), original.element),
    h("section", { class: "pane after-pane", "aria-label": "Anonymised" }, h("h2", { class: "pane-name" }, "As it would be"), after));
  const layout = segments({
    label: "What is shown", value: innerWidth < 900 ? "original" : "both",
    options: [{ value: "both", label: "Both" }, { value: "original", label: "Original" }, { value: "after", label: "Anonymised" }],
    onchange: (value) => { panes.className = `review-panes ${value}`; },
  });
  panes.className = `review-panes ${layout.value}`;
  const split = settling ? differences(doc, reading, view) : null;

  Object.assign(view, {
    show(target) { setTarget(target); scrollTo_(target); },
    leave() { getSelection().removeAllRanges(); setTarget(null); original.element.focus({ preventScroll: true }); },
    mark(start, end, kind, label) {
      if (view.locked) return;
      const one = reading.mark(start, end, kind, speakerLabel(kind, label));
      view.lastLabel = label;
      getSelection().removeAllRanges();
      setTarget({ type: "mark", mark: one });
      announce(`Marked as ${MARKS[kind].label.toLowerCase()}`);
      original.element.focus({ preventScroll: true });
    },
    change(one, changes) { setTarget({ type: "mark", mark: reading.change(one, changes) }); },
    unmark(one) { reading.unmark(one); setTarget(null); },
    decide(span, verdict, more) {
      reading.decide(span, verdict, more);
      setTarget({ type: "finding", span });
      announce(verdict ? { accept: "Accepted", reject: "Rejected", relabel: "Relabelled", resize: "Edges moved" }[verdict] : "Taken back");
    },
    relabel(span, label) {
      const now = reading.on(span);
      if (now?.verdict === "resize") view.decide(span, "resize", { new_start: now.new_start, new_end: now.new_end, new_label: label });
      else if (label === span.label) view.decide(span, "accept");
      else view.decide(span, "relabel", { new_label: label });
    },
    resize(span, which, by) {
      const now = reading.under(span) ?? span;
      const to = stepped(doc.text, original.offsets, now[which], which, by);
      const next = { new_start: which === "start" ? to : now.start, new_end: which === "end" ? to : now.end };
      if (next.new_end <= next.new_start) return;
      if (next.new_start === span.start && next.new_end === span.end) view.relabel({ ...span }, now.label);
      else view.decide(span, "resize", { ...next, ...(now.label !== span.label ? { new_label: now.label } : {}) });
    },
    remember(kind, one, list, which) {
      if (place.correct) { correct(one, list, which).catch((error) => toast(describeError(error), { kind: "danger" })); return; }
      if (kind === "f" && !reading.on(one)) reading.decide(one, "accept");
      reading.remember(kind, one, list, which);
    },
  });

  const head = h("div", {});
  const element = h("div", { class: "review-doc stack" }, head, failed,
    view.locked && notice(doc.state === "done" ? "This document is settled. It cannot be changed any more." : "Both reviewers are done and disagree. An adjudicator decides."),
    split,
    h("div", { class: "with-side" }, panes, panel));
  root.append(h("a", { class: "back", href: route(place.page) }, icon("left"), place.name), element);

  drawHead();
  drawAfter(doc.anonymised);
  draw();
  panel.draw(null);

  finish.addEventListener("click", () => done());
  element.addEventListener("keydown", keyed);
  original.element.addEventListener("pointerup", () => requestAnimationFrame(uncover));
  beforeLeaving(async () => { if (dirty) await reading.send().catch(() => {}); return true; });
  return () => { reading.leave(); looks.leave(); original.leave(); become?.leave(); };

  function drawHead() {
    const [words, kind] = STATES[doc.state];
    fill(head, h("div", { class: "spread doc-head" },
      h("div", { class: "row" }, h("h1", { class: "breaks" }, place.nameDocument?.(id) ?? id), badge(words, kind), riskBar(doc)),
      h("div", { class: "row" }, saved, layout, !view.locked && [undo, redo, finish])));
  }

  function draw() {
    const ranges = [];
    for (const [i, p] of doc.proposals.entries()) ranges.push({ start: p.start, end: p.end, key: `p:${i}`, kind: "proposal", title: `Look at this: ${readable(p.label)}?` });
    for (const span of doc.spans) {
      const verdict = reading.on(span)?.verdict ?? null;
      const under = reading.under(span) ?? span;
      const state = { accept: "accepted", reject: "rejected", relabel: "relabelled", resize: "edges moved" }[verdict] ?? "as found";
      ranges.push({ start: under.start, end: under.end, key: keyOf("f", span), kind: `finding ${verdict ?? "open"}`, label: under.label, title: `${readable(under.label)}, ${state}`, tag: readable(under.label) });
    }
    for (const m of reading.marks) ranges.push({ start: m.start, end: m.end, key: keyOf("m", m), kind: `marked ${m.kind}`, label: m.label, title: `${MARKS[m.kind].label}: ${readable(m.label)}`, tag: MARKS[m.kind].label.toLowerCase() });
    const selection = original.selection();
    const focused = original.element.contains(document.activeElement) && document.activeElement.dataset?.key;
    original.draw(ranges);
    if (focused) original.find(focused)?.focus({ preventScroll: true });
    if (selection && !focused && view.target?.type === "selection") original.reselect(...selection);
    light();
    undo.disabled = !reading.undoable;
    redo.disabled = !reading.redoable;
    split?.draw();
    finish.disabled = split?.open > 0;
    if (view.target?.type !== "selection") panel.draw(view.target && stillThere(view.target));
  }

  function stillThere(target) {
    if (target.type !== "mark") return target;
    return reading.marks.some((m) => keyOf("m", m) === keyOf("m", target.mark)) ? target : (view.target = null);
  }

  function targetKey(target) {
    if (!target) return null;
    if (target.type === "finding") return keyOf("f", target.span);
    if (target.type === "mark") return keyOf("m", target.mark);
    if (target.type === "proposal") return `p:${doc.proposals.findIndex((p) => p.start === target.start && p.end === target.end)}`;
    return null;
  }

  function light() {
    for (const lit of original.element.querySelectorAll(".range.on")) lit.classList.remove("on");
    const key = targetKey(view.target);
    if (key) for (const part of original.element.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)) part.classList.add("on");
  }

  function setTarget(target) {
    view.target = target;
    const opened = target?.span ?? target?.mark ?? target;
    if (opened) looks.open(opened.start, opened.end);
    light();
    panel.draw(target);
    if (target?.type !== "selection") uncover(); // a selection is moved once the pointer is up, not under it
  }

  /** Scrolls what is judged above the panel, where that lies over the text. */
  function uncover() {
    const key = targetKey(view.target);
    const selection = getSelection();
    const at = key ? original.find(key) : view.target?.type === "selection" && selection.rangeCount ? selection.getRangeAt(0) : null;
    const box = at?.getBoundingClientRect();
    const over = panel.getBoundingClientRect();
    if (box && box.right > over.left && box.left < over.right && box.bottom > over.top - 12) scrollBy({ top: box.bottom - over.top + 24 });
  }

  function scrollTo_(target) {
    const key = targetKey(target);
    const element_ = key && original.find(key);
    if (!element_) return;
    element_.focus({ preventScroll: true });
    element_.scrollIntoView({ block: "center" });
    uncover();
  }

  function pickRange(key) {
    const [kind, rest] = [key[0], key.slice(2)];
    if (kind === "f") setTarget({ type: "finding", span: doc.spans.find((s) => keyOf("f", s) === key) });
    else if (kind === "m") setTarget({ type: "mark", mark: reading.marks.find((m) => keyOf("m", m) === key) });
    else setTarget({ type: "proposal", ...doc.proposals[Number(rest)] });
  }

  function selected(start, end) {
    view.seen = start === null ? "" : String([start, end]);
    if (start === null) {
      if (view.target?.type === "selection" && !panel.contains(document.activeElement)) setTarget(null);
      return;
    }
    const inside = doc.spans.find((s) => { const u = reading.under(s); return u && u.start <= start && u.end >= end; });
    if (inside) { setTarget({ type: "finding", span: inside }); return; }
    const known = reading.marks.find((m) => m.start <= start && m.end >= end);
    if (known) { setTarget({ type: "mark", mark: known }); return; }
    const proposed = doc.proposals.find((p) => p.start < end && p.end > start);
    setTarget({ type: "selection", start, end, label: proposed?.label });
  }

  function walk(by) {
    const order = [...doc.spans].sort((a, b) => a.start - b.start);
    if (!order.length) return;
    const at = view.target?.type === "finding" ? order.findIndex((s) => keyOf("f", s) === keyOf("f", view.target.span)) : by > 0 ? -1 : order.length;
    view.show({ type: "finding", span: order[(at + by + order.length) % order.length] });
  }

  function keyed(event) {
    if (event.target.closest("input, textarea, select, dialog, [role=radiogroup]")) return;
    if ((event.ctrlKey || event.metaKey) && !view.locked && event.key.toLowerCase() === "z") {
      event.preventDefault();
      if (event.shiftKey) reading.redo(); else reading.undo();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.toLowerCase();
    const now = original.selection();
    if (now && String(now) !== view.seen) selected(...now); // the browser tells of a selection a moment later
    const target = view.target;
    const onStretch = target?.type === "selection" || target?.type === "proposal";
    const run = {
      n: () => walk(1), b: () => walk(-1),
      ...(view.locked ? {} : {
        m: onStretch && (() => view.mark(target.start, target.end, "missed", view.pendingLabel())),
        p: onStretch && (() => view.mark(target.start, target.end, "partial", view.pendingLabel())),
        s: onStretch && (() => view.mark(target.start, target.end, "speaker", view.pendingLabel())),
        a: target?.type === "finding" && (() => view.decide(target.span, "accept")),
        x: target?.type === "finding" && (() => view.decide(target.span, "reject")),
        l: target && (() => panel.querySelector("select")?.focus()),
        delete: target?.type === "mark" && (() => view.unmark(target.mark)),
        d: () => done(),
      }),
      escape: target && view.leave,
      enter: event.target.dataset?.key && (() => pickRange(event.target.dataset.key)),
    }[key];
    if (!run) return;
    event.preventDefault();
    run();
  }

  /** Corrects what a mention covers in the whole project, or in this document, and shows the document anew. */
  async function correct(one, list, which) {
    const under = reading.under(one) ?? one;
    await reading.send();
    dirty = false;
    const changed = await place.correct({ surface: view.text(one.start, one.end), decision: which, label: which === "always" ? under.label : null, document: list === "document" ? id : null });
    toast(`${which === "never" ? "It is never found" : "It is always found"} from now on; ${many(changed.files, "file")} anonymised again.`);
    await place.reopen(root, id);
  }

  function take(answer, lists) {
    saved.textContent = dirty ? "Not saved yet" : "Saved";
    failed.hidden = true;
    view.score = answer.score;
    edits = answer.edits;
    drawAfter(answer.anonymised);
    for (const { key, list, which } of lists) {
      view.listed.set(key, { list, which });
      toast(which === "never" ? "It is never found from now on." : "It is always found from now on.");
    }
    if (lists.length) draw();
    else if (!view.target) panel.draw(null);
  }

  async function done() {
    if (view.locked) return;
    if (split?.open) { toast(`${many(split.open, "difference")} still open. Decide each, then settle.`); return; }
    try {
      await busy(finish, () => reading.send(true));
    } catch {
      return; // what went wrong is shown above the text
    }
    dirty = false;
    const next = await following(place, id, settling).catch((error) => { toast(describeError(error), { kind: "danger" }); return null; });
    if (next) go(`${place.page}/${encodeURIComponent(next)}`);
    else { toast(settling ? "Settled. No other document waits for a decision." : "Done. There is nothing left for you in this project."); go(place.page); }
  }
}

/** Where an adjudicator begins: the decision so far, else what both said alike. */
function startOfSettling(doc) {
  if (doc.settled) return { marks: doc.settled.marks, decisions: doc.settled.decisions, version: doc.settled.version };
  const [a, b] = doc.others;
  const same = (x, y) => JSON.stringify(x) === JSON.stringify(y);
  return {
    marks: a.marks.filter((m) => b.marks.some((n) => same(m, n))),
    decisions: a.decisions.filter((d) => b.decisions.some((e) => same(d, e))),
    version: 0,
  };
}

/** The next document in the order of risk that waits for the person, or null. */
async function following(place, id, settling) {
  for (const state of settling ? ["disagreement"] : ["in_review", "new"]) {
    const { documents } = await get(`${place.path}/documents`, { query: { state, order: "risk", limit: 200 } });
    const next = documents.find((one) => one.id !== id && (settling || (one.mine !== "done" && (one.reviewers < 2 || one.mine === "open"))));
    if (next) return next.id;
  }
  return null;
}

/** An edge moved by a word: the next border of a word in that direction. */
function stepped(text, offsets, at, which, by) {
  const unit = offsets.unit(at);
  const borders = [...text.matchAll(WORD)].map((m) => (which === "start" ? m.index : m.index + m[0].length));
  const to = by > 0 ? borders.find((b) => b > unit) : borders.findLast((b) => b < unit);
  return to === undefined ? at : offsets.point(to);
}
