// What one reviewer says of a document, as it is edited: every step can be undone, and is saved after a moment.

import { debounce, describeError } from "../../ui.js";

const WAIT = 600;

/** The key of a finding or of a mark. */
export function keyOf(kind, one) {
  return `${kind}:${one.start}:${one.end}:${one.label}`;
}

/**
 * Marks and decisions; `opened()` gives the stretches that were looked at. `save(reading)` sends them and gives what the server answers; `told(what)` hears of "changed",
 * "saving", {saved, lists, complete}, where lists are those that came about with it, and it is complete unless something
 * was changed meanwhile, and {failed}.
 */
export function makeReading({ marks, decisions, version, spans, opened = () => [], save, told }) {
  let now = { marks: marks.map(plainMark), decisions: new Map(decisions.map((d) => [keyOf("f", d), plainDecision(d)])), settled: new Set() };
  let past = [], future = [];
  let stored = version, chain = Promise.resolve(), pendingLists = [];

  const copy = () => ({ ...now, marks: [...now.marks], decisions: new Map(now.decisions) });
  const step = (change) => {
    past.push(now);
    if (past.length > 200) past.shift();
    future = [];
    now = copy();
    change(now);
    now.marks.sort((a, b) => a.start - b.start);
    told("changed");
    later();
  };
  const body = (done) => ({
    version: stored,
    marks: now.marks.map((m) => ({ ...m, ...listed("m", m) })),
    decisions: [...now.decisions.values()].map((d) => ({ ...d, ...listed("f", d) })),
    opened: opened(),
    done,
  });
  const listed = (kind, one) => {
    const found = pendingLists.find((p) => fits(p, kind, one));
    return found ? { list: found.list } : {};
  };
  const fits = (p, kind, one) => p.key === keyOf(kind, one) && (p.which === "never") === (one.verdict === "reject");
  const send = (done = false) => {
    later.cancel();
    const run = chain.then(() => post(done));
    chain = run.catch(() => {});
    return run;
  };
  const post = async (done) => {
    const lists = pendingLists, state = now;
    const sent = lists.filter((p) => now.marks.some((m) => fits(p, "m", m)) || [...now.decisions.values()].some((d) => fits(p, "f", d)));
    told("saving");
    try {
      const answer = await save(body(done));
      stored = answer.version;
      pendingLists = pendingLists.filter((p) => !lists.includes(p));
      told({ saved: answer, lists: sent, complete: now === state && !pendingLists.length });
      return answer;
    } catch (error) {
      pendingLists = [];
      told({ failed: error, words: describeError(error) });
      throw error;
    }
  };
  const later = debounce(() => { send().catch(() => {}); }, WAIT);

  return {
    get marks() { return now.marks; },
    get decisions() { return now.decisions; },
    /** Keys of the differences that were decided; they are undone with what was decided. */
    get settled() { return now.settled; },
    get undoable() { return past.length > 0; },
    get redoable() { return future.length > 0; },
    send,
    /** The decision on a finding, or undefined: then it counts as accepted. */
    on: (span) => now.decisions.get(keyOf("f", span)),
    /** Where a finding ends up: its borders and label under the decision; null where it was rejected. */
    under(span) {
      const decision = now.decisions.get(keyOf("f", span));
      if (!decision || decision.verdict === "accept") return span;
      if (decision.verdict === "reject") return null;
      return { ...span, start: decision.new_start ?? span.start, end: decision.new_end ?? span.end, label: decision.new_label ?? span.label };
    },
    mark(start, end, kind, label) {
      const one = { start, end, kind, label };
      step((next) => { next.marks = [...next.marks.filter((m) => m.end <= start || m.start >= end), one]; });
      return one;
    },
    change(mark, changes) {
      const one = { ...mark, ...changes };
      step((next) => { next.marks = next.marks.map((m) => (keyOf("m", m) === keyOf("m", mark) ? one : m)); });
      return one;
    },
    unmark(mark) {
      step((next) => { next.marks = next.marks.filter((m) => keyOf("m", m) !== keyOf("m", mark)); });
    },
    decide(span, verdict, more = {}) {
      const key = keyOf("f", span);
      step((next) => {
        if (verdict === null) next.decisions.delete(key);
        else next.decisions.set(key, plainDecision({ start: span.start, end: span.end, label: span.label, verdict, ...more }));
      });
    },
    /**
     * Puts what a mark or a finding covers on a list, with the next save, which tells of it; `list`: "project" or "all",
     * `which`: "always" or "never".
     */
    remember(kind, one, list, which) {
      const key = keyOf(kind, one);
      pendingLists = [...pendingLists.filter((p) => p.key !== key), { key, list, which }];
      told("changed");
      later();
    },
    replace(next) {
      step((to) => {
        to.marks = next.marks.map(plainMark);
        to.decisions = new Map(next.decisions.map((d) => [keyOf("f", d), plainDecision(d)]));
        to.settled = new Set(next.settled);
      });
    },
    undo() { move(past, future); },
    redo() { move(future, past); },
    counts() {
      const verdicts = [...now.decisions.values()].map((d) => d.verdict);
      return { findings: spans.length, rejected: verdicts.filter((v) => v === "reject").length, changed: verdicts.filter((v) => v === "relabel" || v === "resize").length, marks: now.marks.length };
    },
    leave() { later.cancel(); },
  };

  function move(from, to) {
    if (!from.length) return;
    to.push(now);
    now = from.pop();
    told("changed");
    later();
  }
}

export function plainMark({ start, end, kind, label }) {
  return { start, end, kind, label };
}

export function plainDecision({ start, end, label, verdict, new_label, new_start, new_end }) {
  const out = { start, end, label, verdict };
  if (new_label) out.new_label = new_label;
  if (Number.isInteger(new_start)) out.new_start = new_start;
  if (Number.isInteger(new_end)) out.new_end = new_end;
  return out;
}

/** Offsets of the anonymised text from those of the original and back, by the edits between them. */
export function sides(edits) {
  const sorted = [...edits].sort((a, b) => a.start - b.start);
  let moved = 0;
  const steps = sorted.map((edit) => {
    const length = [...edit.replacement].length;
    const step = { ...edit, to: edit.start + moved, toEnd: edit.start + moved + length };
    moved += length - (edit.end - edit.start);
    return step;
  });
  return {
    /** A stretch of the original in the anonymised text; one that begins or ends in an edit takes all of it. */
    there(start, end) {
      return [forward(start, true), forward(end, false)];
    },
    /** A stretch of the anonymised text in the original. */
    home(start, end) {
      return [back(start, true), back(end, false)];
    },
    steps,
  };
  function forward(at, first) {
    let by = 0;
    for (const s of steps) {
      if (s.end <= at) by = s.toEnd - s.end;
      else if (s.start < at) return first ? s.to : s.toEnd;
      else break;
    }
    return at + by;
  }
  function back(at, first) {
    let by = 0;
    for (const s of steps) {
      if (s.toEnd <= at) by = s.end - s.toEnd;
      else if (s.to < at) return first ? s.start : s.end;
      else break;
    }
    return at + by;
  }
}
