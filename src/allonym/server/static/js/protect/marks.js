// Mentions: what the server found, and what a person says about it. Pure functions over UTF-16 offsets.
//
// A finding is {start, end, label, score, source, entity}. A correction is {id, start, end, label, verdict, from, to,
// group}: its verdict is "accepted", "changed", "added" or "rejected"; from..to is what it speaks for, such as the
// finding that it made shorter; `group` says which mentions a person holds for the same (equal numbers) or not.

const WORDS = /[\p{L}\p{N}]/u;

/** Marks after `removed` units at `at` gave way to `inserted` ones. What lost all its text is gone. */
export function moved(marks, at, removed, inserted) {
  const shift = inserted - removed;
  const last = at + removed;
  const place = (start, end) => {
    if (end <= at) return [start, end];
    if (start >= last) return [start + shift, end + shift];
    if (start <= at && last <= end) return [start, end + shift];
    return start < at ? [start, at] : [at + inserted, end + shift];
  };
  const out = [];
  for (const mark of marks) {
    const reach = mark.to ?? mark.end;
    if (mark.end <= at && reach <= at) {
      out.push(mark);
      continue;
    }
    const [start, end] = place(mark.start, mark.end);
    if (end <= start) continue;
    const next = { ...mark, start, end };
    if (mark.to !== undefined) [next.from, next.to] = place(mark.from, mark.to);
    out.push(next);
  }
  return out;
}

/**
 * What counts: corrections, and the findings that no correction speaks for, sorted and disjoint. What a finding covers
 * beyond what a correction spoke for stays covered. Rejected ones are there too, with their verdict.
 */
export function effective(text, found, own) {
  if (!own.length) return found.map(asFound);
  const spoken = [...own].sort(byStart);
  const rejected = spoken.filter((o) => o.verdict === "rejected");
  const kept = spoken.filter((o) => o.verdict !== "rejected");
  const out = kept.map((o) => asOwn(o));
  let next = 0;
  for (const span of found) {
    while (next < kept.length && Math.max(kept[next].end, kept[next].to) <= span.start) next += 1;
    let pieces = [[span.start, span.end]];
    for (let i = next; i < kept.length && Math.min(kept[i].start, kept[i].from) < span.end; i += 1) {
      const [a, b] = [Math.min(kept[i].start, kept[i].from), Math.max(kept[i].end, kept[i].to)];
      pieces = pieces.flatMap(([s, e]) => [[s, Math.min(e, a)], [Math.max(s, b), e]]).filter(([s, e]) => e > s && WORDS.test(text.slice(s, e)));
    }
    const no = rejected.find((r) => r.start <= span.start && span.end <= r.end);
    if (no && pieces.length) out.push(asOwn(no, span));
    else for (const [start, end] of pieces) out.push(asFound({ ...span, start, end }));
  }
  const shown = new Set(out.filter((m) => m.own).map((m) => m.own));
  for (const no of rejected) if (!shown.has(no)) out.push(asOwn(no));
  return apart(out.sort(byStart));
}

/** Without rejected marks that lie over others, and each own one once. */
function apart(marks) {
  const out = [];
  const seen = new Set();
  for (const mark of marks) {
    if (mark.own && seen.has(mark.own)) continue;
    const before = out.at(-1);
    if (before && mark.start < before.end) {
      if (mark.verdict === "rejected") continue;
      if (before.verdict === "rejected") out.pop();
    }
    if (mark.own) seen.add(mark.own);
    out.push(mark);
  }
  return out;
}

const byStart = (a, b) => a.start - b.start || b.end - a.end;

function asFound(span) {
  return { ...span, id: `f${span.start}-${span.end}-${span.label}`, verdict: "found", own: null, group: null };
}

function asOwn(own, span = own) {
  return {
    start: own.start, end: own.end, label: own.label, score: span.score ?? own.score ?? 1, source: own.source ?? "", entity: span.entity ?? 0,
    id: `o${own.id}`, verdict: own.verdict, own, group: own.group ?? null,
  };
}

/** The first mark that holds the offset, or none; at its two ends it counts as held. */
export function markAt(marks, offset) {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].end < offset) low = middle + 1;
    else high = middle;
  }
  for (let i = low; i < marks.length && marks[i].start <= offset; i += 1) if (marks[i].end >= offset) return marks[i];
  return null;
}

/** Mentions by label, most first; rejected ones do not count. */
export function counts(marks) {
  const out = new Map();
  for (const mark of marks) if (mark.verdict !== "rejected") out.set(mark.label, (out.get(mark.label) ?? 0) + 1);
  return [...out].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

/** A stretch without the white space at its ends, or null where nothing is left. */
export function trimmed(text, start, end) {
  const said = text.slice(start, end);
  const lead = said.length - said.trimStart().length;
  const words = said.trim();
  return words ? [start + lead, start + lead + words.length] : null;
}

/** The word at an offset, or null. */
export function wordAt(text, offset) {
  let [start, end] = [offset, offset];
  while (start > 0 && WORDS.test(text[start - 1])) start -= 1;
  while (end < text.length && WORDS.test(text[end])) end += 1;
  return end > start ? [start, end] : null;
}

/** The next edge of a word to the left (-1) or the right (1). */
export function wordEdge(text, offset, direction) {
  let at = offset;
  const here = (i) => WORDS.test(text[direction > 0 ? i : i - 1] ?? "");
  const inside = (i) => (direction > 0 ? i < text.length : i > 0);
  while (inside(at) && !here(at)) at += direction;
  while (inside(at) && here(at)) at += direction;
  return at;
}

/** Every other place where the same words stand by themselves, not overlapping `taken`. */
export function sameWords(text, start, end, taken) {
  const words = text.slice(start, end).toLowerCase();
  const all = text.toLowerCase();
  if (all.length !== text.length || !words.trim()) return [];
  const out = [];
  for (let at = all.indexOf(words); at >= 0; at = all.indexOf(words, at + words.length)) {
    const last = at + words.length;
    const whole = !(WORDS.test(text[at]) && WORDS.test(text[at - 1] ?? "")) && !(WORDS.test(text[last - 1]) && WORDS.test(text[last] ?? ""));
    if (whole && at !== start && !taken.some((m) => m.start < last && at < m.end)) out.push([at, last]);
  }
  return out;
}
