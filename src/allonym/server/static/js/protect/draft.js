// One text with its mentions, and one history for what is typed and what is corrected.

import { effective, moved, sameWords } from "./marks.js";

const MOST = 500;
const PAUSE = 1200;

/**
 * A text that somebody works on.
 *
 * Listeners get a word for what changed: "text", "marks" (findings or corrections) or "both".
 */
export class Draft {
  constructor(text = "") {
    this.text = text;
    this.version = 1;
    this.found = [];
    this.own = [];
    this.annotated = 0; // the version that the findings are of
    this.past = [];
    this.future = [];
    this.listeners = new Set();
    this.numbered = 0;
    this.marked = null;
    this.stood = null;
  }

  /** Calls `f(what, detail)` after every change; gives a function that ends it. */
  subscribe(f) {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  tell(what, detail = {}) {
    this.marked = null;
    this.stood = null;
    for (const f of this.listeners) f(what, detail);
  }

  /** All mentions, rejected ones too: sorted and disjoint. */
  get marks() {
    this.marked ??= effective(this.text, this.found, this.own);
    return this.marked;
  }

  /** The mentions that will be replaced. */
  get standing() {
    this.stood ??= this.marks.filter((m) => m.verdict !== "rejected");
    return this.stood;
  }

  /** Replaces `removed` units at `at`. `typing`: may be undone together with what was typed just before. */
  replace(at, removed, inserted, { typing = false } = {}) {
    const gone = this.text.slice(at, at + removed);
    if (!gone && !inserted) return;
    const before = this.own;
    this.edit(at, gone, inserted);
    const last = this.past.at(-1);
    const moment = Date.now();
    const joins = typing && last?.typing && moment - last.moment < PAUSE && !this.future.length && !/\n/.test(inserted);
    if (joins && !gone && !last.edit.gone && at === last.edit.at + last.edit.inserted.length) {
      last.edit = { ...last.edit, inserted: last.edit.inserted + inserted };
      last.after = this.own;
      last.moment = moment;
    } else if (joins && !inserted && !last.edit.inserted && at + gone.length === last.edit.at) {
      last.edit = { at, gone: gone + last.edit.gone, inserted: "" };
      last.after = this.own;
      last.moment = moment;
    } else {
      this.remember({ edit: { at, gone, inserted }, before, after: this.own, typing, moment });
    }
    this.tell("both", { at, removed: gone.length, inserted });
  }

  edit(at, gone, inserted) {
    this.text = this.text.slice(0, at) + inserted + this.text.slice(at + gone.length);
    this.found = moved(this.found, at, gone.length, inserted.length);
    this.own = moved(this.own, at, gone.length, inserted.length);
    this.version += 1;
  }

  /** What the server found in `version` of the text; older than the text, it is left. */
  annotate(version, spans) {
    if (version !== this.version) return false;
    this.found = spans;
    this.annotated = version;
    this.tell("marks");
    return true;
  }

  remember(entry) {
    this.past.push(entry);
    if (this.past.length > MOST) this.past.shift();
    this.future = [];
  }

  /** Puts other corrections in place, as one step. */
  correct(own) {
    const before = this.own;
    this.own = own;
    this.remember({ edit: null, before, after: own });
    this.tell("marks");
  }

  get canUndo() {
    return this.past.length > 0;
  }

  get canRedo() {
    return this.future.length > 0;
  }

  /** Takes the last step back; gives where it was, or null. */
  undo() {
    const step = this.past.pop();
    if (!step) return null;
    this.future.push(step);
    return this.step(step, step.before, step.edit && { at: step.edit.at, gone: step.edit.inserted, inserted: step.edit.gone });
  }

  /** Makes the last step again. */
  redo() {
    const step = this.future.pop();
    if (!step) return null;
    this.past.push(step);
    return this.step(step, step.after, step.edit);
  }

  step(step, own, edit) {
    step.typing = false;
    if (edit) this.edit(edit.at, edit.gone, edit.inserted);
    this.own = own;
    if (edit) {
      this.tell("both", { at: edit.at, removed: edit.gone.length, inserted: edit.inserted });
      return { at: edit.at + edit.inserted.length };
    }
    this.tell("marks");
    const changed = (step.after.find((o) => !step.before.includes(o)) ?? step.before.find((o) => !step.after.includes(o)));
    return changed ? { at: changed.start, mark: true } : null;
  }

  // Corrections. Each gives the mark as it stands afterwards.

  spoken(mark, changes) {
    this.numbered += 1;
    const was = mark.own;
    return {
      id: this.numbered, start: mark.start, end: mark.end, label: mark.label, score: mark.score, source: mark.source,
      verdict: was?.verdict === "added" ? "added" : "changed", group: was?.group ?? null,
      from: was?.from ?? mark.start, to: was?.to ?? mark.end, ...changes,
    };
  }

  put(pairs) {
    const replaced = new Set(pairs.map(([mark]) => mark.own).filter(Boolean));
    const made = pairs.map(([mark, changes]) => this.spoken(mark, changes));
    const kept = this.own.filter((o) => !replaced.has(o) && !made.some((m) => m.verdict !== "rejected" && o.start < m.end && m.start < o.end));
    this.correct([...kept, ...made]);
    return this.marks.find((m) => m.own === made[0]) ?? null;
  }

  /** Says that mentions are right. */
  accept(...marks) {
    return this.put(marks.map((m) => [m, { verdict: m.own?.verdict === "changed" || m.own?.verdict === "added" ? m.own.verdict : "accepted" }]));
  }

  /** Says that they are none; what was added goes altogether. */
  reject(...marks) {
    const added = new Set(marks.filter((m) => m.verdict === "added").map((m) => m.own));
    const rest = marks.filter((m) => m.verdict !== "added");
    if (!rest.length) {
      this.correct(this.own.filter((o) => !added.has(o)));
      return null;
    }
    const replaced = new Set(rest.map((m) => m.own).filter(Boolean));
    const made = rest.map((m) => this.spoken(m, { verdict: "rejected", start: m.own?.from ?? m.start, end: m.own?.to ?? m.end, group: null }));
    this.correct([...this.own.filter((o) => !added.has(o) && !replaced.has(o)), ...made]);
    return this.marks.find((m) => m.own === made[0]) ?? null;
  }

  /** Forgets what was said about a mention, so that the finding stands again. */
  withdraw(mark) {
    this.correct(this.own.filter((o) => o !== mark.own));
    return this.marks.find((m) => m.start < mark.end && mark.start < m.end) ?? null;
  }

  relabel(label, ...marks) {
    return this.put(marks.map((m) => [m, { label }]));
  }

  /** Moves a mention's edges; over another mention it takes that one's place. */
  resize(mark, start, end) {
    if (start >= end || start < 0 || end > this.text.length) return mark;
    return this.put([[mark, { start, end, from: Math.min(start, mark.own?.from ?? mark.start), to: Math.max(end, mark.own?.to ?? mark.end) }]]);
  }

  /** Marks a stretch that was missed; with `all` wherever the same words stand. */
  add(start, end, label, { all = false } = {}) {
    const places = [[start, end]];
    if (all) places.push(...sameWords(this.text, start, end, this.standing));
    return this.put(places.map(([a, b]) => [{ start: a, end: b, label, score: 1, source: "person", own: null }, { verdict: "added", label }]));
  }

  /** Says that all these mentions mean the same. */
  merge(...marks) {
    const group = this.nextGroup();
    return this.put(marks.map((m) => [m, { group, verdict: m.verdict === "found" ? "accepted" : m.own.verdict }]));
  }

  /** Says that a mention means somebody else than those it was taken for, `others`, which stay together. */
  split(mark, others) {
    const group = this.nextGroup();
    const verdict = (m) => (m.verdict === "found" ? "accepted" : m.own.verdict);
    const loose = others.filter((m) => !m.group);
    const rest = others.find((m) => m.group)?.group ?? group + 1;
    return this.put([[mark, { group, verdict: verdict(mark) }], ...loose.map((m) => [m, { group: rest, verdict: verdict(m) }])]);
  }

  nextGroup() {
    return 1 + Math.max(0, ...this.own.map((o) => o.group ?? 0));
  }
}
