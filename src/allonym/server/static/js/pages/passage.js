// A text to read and to mark: ranges are drawn over it, and what is selected comes back as code points of the text.

import { paint } from "../families.js";
import { Points } from "../protect/points.js";

/** Offsets between code points, which the service counts, and UTF-16 units, which the browser counts. */
export class Offsets {
  constructor(text) {
    this.text = text;
    this.points = new Points(text);
  }

  get length() { return this.point(this.text.length); }

  unit(point) { return this.points.toUnits(point); }

  point(unit) { return this.points.toPoints(unit); }

  slice(start, end) { return this.text.slice(this.unit(start), this.unit(end)); }
}

const WORD = /[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}]|['’@._-](?=[\p{L}\p{N}]))*/gu;

/**
 * The element of a text with ranges {start, end, key, kind, label?, title?, tag?, pressed?} (code points). Ranges may
 * overlap: the later one decides how the shared part looks and what a click on it means.
 * `onRange(key, element)` is called when a range is clicked; `onSelect(start, end)` when text was selected, and with
 * nulls when no longer. The text is walked word by word with the arrow keys.
 */
export function passage({ text, label, onRange, onSelect }) {
  const offsets = new Offsets(text);
  const root = document.createElement("div");
  root.className = "passage marking";
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", label);
  let pieces = [];
  let words = null;

  const draw = (ranges) => {
    const cuts = new Set([0, text.length]);
    const known = ranges.map((r) => ({ ...r, a: offsets.unit(r.start), b: offsets.unit(r.end) })).filter((r) => r.b > r.a);
    for (const r of known) { cuts.add(r.a); cuts.add(r.b); }
    const edges = [...cuts].sort((a, b) => a - b);
    const over = new Map(), order = new Map(edges.map((edge, i) => [edge, i]));
    for (const r of known) {
      for (let i = order.get(r.a); edges[i] < r.b; i += 1) over.set(edges[i], r);
    }
    pieces = [];
    const children = edges.slice(0, -1).map((from, i) => {
      const node = document.createTextNode(text.slice(from, edges[i + 1]));
      pieces.push({ from, node });
      const r = over.get(from);
      return r ? drawn(r, node, from) : node;
    });
    root.replaceChildren(...children);
  };
  const drawn = (r, node, from) => {
    const element = document.createElement("span");
    element.className = `range ${r.kind}`;
    element.dataset.key = r.key;
    if (r.label) paint(element, r.label);
    if (r.title) element.title = r.title;
    if (r.tag && from + node.data.length === r.b) element.dataset.tag = r.tag;
    if (onRange) {
      element.setAttribute("role", "button");
      element.tabIndex = -1;
      if (r.pressed !== undefined) element.setAttribute("aria-pressed", String(r.pressed));
      element.addEventListener("click", () => { if (getSelection().isCollapsed) onRange(r.key, element); });
    }
    element.append(node);
    return element;
  };

  const unitOf = (container, offset) => {
    const measure = document.createRange();
    measure.selectNodeContents(root);
    measure.setEnd(container, offset);
    return measure.toString().length;
  };
  const selected = () => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!root.contains(range.startContainer) || !root.contains(range.endContainer)) return null;
    let a = unitOf(range.startContainer, range.startOffset), b = unitOf(range.endContainer, range.endOffset);
    while (a < b && /\s/.test(text[a])) a += 1;
    while (b > a && /\s/.test(text[b - 1])) b -= 1;
    return b > a ? [a, b] : null;
  };
  const place = (unit) => {
    const piece = pieces.findLast((p) => p.from <= unit) ?? pieces[0];
    return [piece.node, Math.min(unit - piece.from, piece.node.data.length)];
  };
  const select = (a, b) => {
    const [end, at] = place(b);
    getSelection().setBaseAndExtent(...place(a), end, at);
    const box = document.createRange();
    box.setStart(...place(a));
    box.setEnd(end, at);
    const { top, bottom } = box.getBoundingClientRect(), own = root.getBoundingClientRect();
    if (root.scrollHeight > root.clientHeight) {
      if (top < own.top) root.scrollTop -= own.top - top + 40;
      else if (bottom > own.bottom) root.scrollTop += bottom - own.bottom + 40;
    } else if (top < 80 || bottom > innerHeight - 40) {
      scrollBy({ top: top - innerHeight / 3 });
    }
  };
  const step = (by, extend) => {
    words ??= [...text.matchAll(WORD)].map((m) => [m.index, m.index + m[0].length]);
    if (!words.length) return;
    const now = selected();
    if (!now) { select(...words[by > 0 ? 0 : words.length - 1]); return; }
    if (extend) {
      const next = by > 0 ? words.find(([, b]) => b > now[1]) : null;
      const last = by < 0 ? words.findLast(([, b]) => b < now[1] && b > now[0]) : null;
      if (next) select(now[0], next[1]); else if (last) select(now[0], last[1]);
      return;
    }
    const to = by > 0 ? words.find(([a]) => a >= now[1]) : words.findLast(([, b]) => b <= now[0]);
    if (to) select(...to);
  };
  let had = false;
  const told = () => {
    const now = selected();
    if (!now && !had) return; // it is another text's selection
    had = Boolean(now);
    onSelect?.(now ? offsets.point(now[0]) : null, now ? offsets.point(now[1]) : null);
  };
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by, event.shiftKey);
  });
  let waiting = 0;
  const changed = () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(told); };
  document.addEventListener("selectionchange", changed);

  return {
    element: root,
    offsets,
    draw,
    selection() {
      const now = selected();
      return now ? [offsets.point(now[0]), offsets.point(now[1])] : null;
    },
    /** Where the end of a stretch stands: "in" view, "above" or "below" it. */
    inView(start, end) {
      const box = document.createRange();
      box.setStart(...place(offsets.unit(start)));
      box.setEnd(...place(offsets.unit(end)));
      const { top, bottom } = box.getBoundingClientRect(), own = root.getBoundingClientRect();
      if (Math.min(bottom, top + 24) > Math.min(innerHeight, own.bottom) + 4) return "below";
      return bottom < Math.max(0, own.top) ? "above" : "in";
    },
    reselect(start, end) { select(offsets.unit(start), offsets.unit(end)); },
    find: (key) => root.querySelector(`[data-key="${CSS.escape(key)}"]`),
    leave() { document.removeEventListener("selectionchange", changed); },
  };
}
