// A surface to write plain text on that stays fluid with 100,000 characters: one text node in an editable element, every
// change made by our own hand, and highlights drawn only for what is near the window.

import { h } from "../ui.js";
import { Painter } from "./highlights.js";

const SHORT = 6_000; // characters up to which everything is drawn
const INSERTS = new Set(["insertText", "insertReplacementText", "insertFromPaste", "insertFromDrop", "insertFromYank", "insertFromPasteAsQuotation"]);

const REACHES = {
  deleteContentBackward: ["backward", "character"], deleteContentForward: ["forward", "character"],
  deleteWordBackward: ["backward", "word"], deleteWordForward: ["forward", "word"],
  deleteSoftLineBackward: ["backward", "lineboundary"], deleteSoftLineForward: ["forward", "lineboundary"],
  deleteHardLineBackward: ["backward", "paragraphboundary"], deleteHardLineForward: ["forward", "paragraphboundary"],
};

/**
 * An editor. `onedit(at, removed, inserted, typing)` is told what the person did; the text changes when the owner calls
 * patch() or setText(). `oncaret(start, end)` is told where the selection is, `onpress(offset)` where a mouse was pressed
 * and let go without selecting, `onundo`/`onredo` what they say.
 */
export class Editor {
  constructor({ label, placeholder = "", onedit, oncaret, onpress, onselect, onundo, onredo }) {
    this.node = document.createTextNode("");
    this.root = h("div", {
      class: "editor", role: "textbox", "aria-multiline": "true", "aria-label": label, "aria-placeholder": placeholder,
      contenteditable: "plaintext-only", spellcheck: "false", autocapitalize: "off", tabindex: "0", "data-placeholder": placeholder,
    });
    if (this.root.contentEditable !== "plaintext-only") this.root.contentEditable = "true";
    this.does = { onedit, oncaret, onpress, onselect, onundo, onredo };
    this.painter = new Painter();
    this.painted = [];
    this.composing = false;
    this.normalise("");
    this.listen();
  }

  get text() {
    return this.node.data;
  }

  set readonly(off) {
    this.root.contentEditable = off ? "false" : "plaintext-only";
    this.root.setAttribute("aria-readonly", String(off));
  }

  /** One text node, and a break after it so that an empty last line has its height. */
  normalise(text) {
    if (this.node.data !== text) this.node.data = text; // else the caret would leave its place
    this.known = text;
    if (this.root.childNodes.length !== 2 || this.root.firstChild !== this.node) this.root.replaceChildren(this.node, document.createElement("br"));
    this.root.toggleAttribute("data-empty", text.length === 0);
  }

  /** Another text altogether. */
  setText(text, caret = null) {
    this.normalise(text);
    if (caret !== null) this.select(caret, caret);
    this.schedule();
  }

  /** What the owner made of an edit. */
  patch(at, removed, inserted, caret = at + inserted.length) {
    this.node.replaceData(at, removed, inserted);
    this.known = this.node.data;
    this.root.toggleAttribute("data-empty", this.node.length === 0);
    if (caret !== null && this.focused) {
      this.select(caret, caret);
      this.reveal(caret);
    }
    this.schedule();
  }

  get focused() {
    return document.activeElement === this.root;
  }

  focus() {
    this.root.focus({ preventScroll: true });
  }

  /** The offset of a place in the document, or null where it is not in here. */
  offsetOf(container, offset) {
    if (container === this.node) return offset;
    if (container === this.root) return offset === 0 ? 0 : this.node.length;
    return this.root.contains(container) ? this.node.length : null;
  }

  /** {start, end} of what is selected in here, or null. */
  get selection() {
    const selection = document.getSelection();
    if (!selection.rangeCount) return null;
    const range = selection.getRangeAt(0);
    const [start, end] = [this.offsetOf(range.startContainer, range.startOffset), this.offsetOf(range.endContainer, range.endOffset)];
    return start === null || end === null ? null : { start, end };
  }

  select(start, end) {
    const length = this.node.length;
    document.getSelection().setBaseAndExtent(this.node, Math.min(start, length), this.node, Math.min(end, length));
  }

  range(start, end) {
    const range = document.createRange();
    const length = this.node.length;
    range.setStart(this.node, Math.min(start, length));
    range.setEnd(this.node, Math.min(end, length));
    return range;
  }

  /** Where a stretch stands in the window: its first line. */
  rectangle(start, end) {
    const rectangles = this.range(start, end).getClientRects();
    return rectangles[0] ?? this.root.getBoundingClientRect();
  }

  /** Scrolls as little as is needed to show an offset. */
  reveal(offset, centre = false) {
    const place = this.range(Math.max(0, offset - 1), offset).getClientRects();
    const at = [...place].at(-1);
    if (!at) return;
    const box = this.root.getBoundingClientRect();
    const margin = centre ? box.height / 3 : 8;
    if (at.top < box.top + 8) this.root.scrollTop += at.top - box.top - margin;
    else if (at.bottom > box.bottom - 8) this.root.scrollTop += at.bottom - box.bottom + margin;
  }

  listen() {
    const root = this.root;
    root.addEventListener("beforeinput", (event) => this.before(event));
    root.addEventListener("compositionstart", () => { this.composing = true; });
    root.addEventListener("compositionend", () => {
      this.composing = false;
      this.sync();
    });
    root.addEventListener("input", () => {
      if (!this.composing && !this.mine) this.sync();
    });
    root.addEventListener("scroll", () => this.schedule(), { passive: true });
    root.addEventListener("pointerup", (event) => {
      if (event.button !== 0) return;
      setTimeout(() => {
        const now = this.selection;
        if (!now) return;
        if (now.start === now.end) this.does.onpress?.(now.start, event);
        else this.does.onselect?.(now.start, now.end, event);
      });
    });
    this.watch = () => {
      if (!this.focused || this.composing) return;
      const now = this.selection;
      if (now) this.does.oncaret?.(now.start, now.end);
    };
    document.addEventListener("selectionchange", this.watch);
    this.sizes = new ResizeObserver(() => this.schedule());
    this.sizes.observe(root);
  }

  before(event) {
    const kind = event.inputType;
    this.mine = false;
    if (this.composing || kind === "insertCompositionText" || !event.cancelable) return;
    event.preventDefault();
    this.mine = true;
    if (kind === "historyUndo") this.does.onundo?.();
    else if (kind === "historyRedo") this.does.onredo?.();
    else if (INSERTS.has(kind)) this.insert(event, event.data ?? event.dataTransfer?.getData("text/plain") ?? "");
    else if (kind === "insertLineBreak" || kind === "insertParagraph") this.insert(event, "\n");
    else if (kind.startsWith("delete")) this.insert(event, "");
  }

  insert(event, said) {
    const [target] = event.getTargetRanges();
    const now = this.selection ?? { start: this.node.length, end: this.node.length };
    let { start, end } = now;
    const reach = start === end && REACHES[event.inputType];
    if (reach) ({ start, end } = this.reached(...reach, now));
    else if (target) {
      start = this.offsetOf(target.startContainer, target.startOffset) ?? start;
      end = this.offsetOf(target.endContainer, target.endOffset) ?? end;
    }
    const inserted = said.replace(/\r\n?/g, "\n");
    if (end > start || inserted) this.does.onedit?.(start, end - start, inserted, event.inputType === "insertText" || event.inputType.startsWith("delete"));
  }

  /** What a deletion without a selection takes: browsers know where characters, words and lines end. */
  reached(direction, unit, now) {
    document.getSelection().modify("extend", direction, unit);
    const taken = this.selection ?? now;
    this.select(now.start, now.end);
    return taken;
  }

  /** After what could not be taken in hand, such as a composition: finds out what it changed, and tells. */
  sync() {
    const before = this.known;
    const now = this.read();
    if (now === before) {
      if (this.root.firstChild !== this.node || this.root.childNodes.length !== 2) this.normalise(before);
      return;
    }
    const caret = this.selection?.start ?? null;
    let at = 0;
    while (at < now.length && at < before.length && now[at] === before[at]) at += 1;
    let tail = 0;
    while (tail < now.length - at && tail < before.length - at && now.at(-1 - tail) === before.at(-1 - tail)) tail += 1;
    this.normalise(before);
    this.does.onedit?.(at, before.length - tail - at, now.slice(at, now.length - tail), true);
    if (caret !== null) this.select(caret, caret);
  }

  /** What stands in here, whatever nodes a browser made of it. */
  read() {
    const pieces = [];
    for (const child of this.root.childNodes) {
      if (child.nodeName === "BR") pieces.push("\n");
      else pieces.push(child.textContent);
    }
    const text = pieces.join("");
    return this.root.lastChild?.nodeName === "BR" ? text.slice(0, -1) : text;
  }

  // Drawing

  /** What to draw: [{start, end, names: [highlight names]}], sorted by start. */
  paint(marks) {
    this.painted = marks;
    this.schedule();
  }

  schedule() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  draw() {
    if (!this.root.isConnected || !this.root.clientHeight) return;
    const [from, to] = this.window();
    const pairs = [];
    for (const mark of this.painted) {
      if (mark.end < from) continue;
      if (mark.start > to) break;
      const range = this.range(mark.start, mark.end);
      for (const name of mark.names) pairs.push([name, range]);
    }
    this.painter.draw(pairs);
  }

  /** Offsets of what can be seen, and a window's height more on both sides. */
  window() {
    const length = this.node.length;
    if (length <= SHORT) return [0, length];
    const box = this.root.getBoundingClientRect();
    return [this.firstBelow(box.top - box.height), this.firstBelow(box.bottom + box.height)];
  }

  firstBelow(y) {
    let [low, high] = [0, this.node.length];
    const range = document.createRange();
    while (high - low > 200) {
      const middle = (low + high) >> 1;
      range.setStart(this.node, middle);
      range.setEnd(this.node, middle + 1);
      if (range.getBoundingClientRect().bottom < y) low = middle;
      else high = middle;
    }
    return low;
  }

  destroy() {
    document.removeEventListener("selectionchange", this.watch);
    this.sizes.disconnect();
    cancelAnimationFrame(this.waiting);
    this.painter.clear();
  }
}
