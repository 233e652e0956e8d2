// The text as a conversation: a row for each turn, with its mentions to press. It shows the same text at the same offsets.

import { button, emptyState, fill, h, iconButton, input } from "../ui.js";
import { paint, readable } from "../families.js";

const TURN = /^[ \t]*([^\s:][^:\n]{0,59}?)[ \t]*:[ \t]+/;
const VOICES = 6;

/** The turns of a text: {speaker, named, start, end}. A line without a speaker belongs to the turn before; what stands
 * before the first one is a turn whose speaker is null. */
function turnsOf(text) {
  const turns = [];
  let at = 0;
  for (const line of text.split("\n")) {
    const match = TURN.exec(line);
    const end = at + line.length;
    if (match) {
      const name = at + line.indexOf(match[1]);
      turns.push({ speaker: match[1], named: name, start: at + match[0].length, end });
    } else if (line.trim()) {
      if (turns.length) turns.at(-1).end = end;
      else turns.push({ speaker: null, start: at, end });
    }
    at = end + 1;
  }
  return turns;
}

/** The view. `onmark(mark, element)`, `onselect(start, end, rectangle)`, `onturn(line)`, `onedit(offset)`. */
export class Conversation {
  constructor(does) {
    this.does = does;
    this.list = h("div", { class: "turns" });
    const speaker = input({ class: "small", "aria-label": "Speaker", placeholder: "Speaker", list: "speakers" });
    this.known = h("datalist", { id: "speakers" });
    const words = input({ class: "small", "aria-label": "What they say", placeholder: "What they say" });
    const form = h("form", { class: "composer" }, speaker, words, button("Add", { small: true, type: "submit" }), this.known);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const who = speaker.value.trim().replace(/[:\n]/g, " ");
      if (!who || !words.value.trim()) return;
      does.onturn(`${who}: ${words.value.trim()}\n`);
      words.value = "";
      words.focus();
      this.toEnd = true;
    });
    this.root = h("div", { class: "conversation", hidden: true }, this.list, form);
    this.list.addEventListener("pointerup", () => setTimeout(() => this.select()));
    this.elements = new Map();
  }

  draw(text, marks, active) {
    this.elements.clear();
    const turns = turnsOf(text);
    const speakers = [...new Set(turns.map((t) => t.speaker).filter(Boolean))];
    fill(this.known, speakers.map((s) => h("option", { value: s })));
    if (!speakers.length) {
      fill(this.list, emptyState({ icon: "chat", title: "No turns yet", body: "A turn is a line such as “Pam: Is Jim there?” Add one below, or open a transcript." }));
      return;
    }
    const within = (from, to) => marks.filter((m) => m.start < to && from < m.end);
    fill(this.list, turns.map((turn) => {
      const voice = turn.speaker && `voice-${speakers.indexOf(turn.speaker) % VOICES}`;
      const last = turn.named + turn.speaker?.length;
      const name = turn.speaker
        ? h("div", { class: "speaker" }, this.stretch(text, turn.named, last, within(turn.named, last), active))
        : h("div", { class: "small muted" }, "Before the first turn");
      const change = iconButton("edit", "Change the words", { small: true, class: "turn-edit", onclick: () => this.does.onedit(turn.start) });
      return h("div", { class: `turn ${voice ?? ""}` }, h("div", { class: "spread" }, name, change), h("div", { class: "says" }, this.stretch(text, turn.start, turn.end, within(turn.start, turn.end), active)));
    }));
    if (this.toEnd) this.list.scrollTop = this.list.scrollHeight;
    this.toEnd = false;
  }

  stretch(text, from, to, marks, active) {
    const out = [];
    let at = from;
    const plain = (a, b) => {
      if (b > a) out.push(h("span", { "data-at": a }, text.slice(a, b)));
    };
    for (const mark of marks) {
      const [start, end] = [Math.max(from, mark.start), Math.min(to, mark.end)];
      plain(at, start);
      const classes = ["mention", mark.verdict === "rejected" ? "rejected" : "", active && active.start === mark.start ? "active" : ""].join(" ");
      const element = h("span", { class: classes, role: "button", tabindex: "0", "data-at": start, title: readable(mark.label), "aria-haspopup": "dialog" }, text.slice(start, end));
      element.addEventListener("click", () => {
        if (document.getSelection().isCollapsed) this.does.onmark(mark, element);
      });
      element.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        this.does.onmark(mark, element);
      });
      paint(element, mark.label);
      this.elements.set(mark.start, element);
      out.push(element);
      at = end;
    }
    plain(at, to);
    return out;
  }

  select() {
    const selection = document.getSelection();
    if (selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    if (!this.list.contains(range.commonAncestorContainer)) return;
    const [start, end] = [place(range.startContainer, range.startOffset), place(range.endContainer, range.endOffset)];
    if (start !== null && end !== null && end > start) this.does.onselect(start, end, range.getBoundingClientRect());
  }

  rectangle(mark) {
    return (this.elements.get(mark.start) ?? this.list).getBoundingClientRect();
  }

  reveal(mark) {
    this.elements.get(mark.start)?.scrollIntoView({ block: "nearest" });
  }

  focus(mark) {
    (mark && this.elements.get(mark.start) ? this.elements.get(mark.start) : this.root.querySelector("input"))?.focus();
  }
}

/** The offset in the text of a place in the list, or null. */
function place(node, offset) {
  const holder = (node.nodeType === Node.TEXT_NODE ? node.parentElement : node).closest("[data-at]");
  if (!holder) return null;
  return Number(holder.dataset.at) + (node.nodeType === Node.TEXT_NODE ? offset : 0);
}

