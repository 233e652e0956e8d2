// The left pane: the text, its mentions in colour, the legend, and what can be said about each mention.

import { announce, button, debounce, fill, h, iconButton, menu, notice, segments, select } from "../ui.js";
import { family, paint, readable } from "../families.js";
import { Card } from "./card.js";
import { Conversation } from "./conversation.js";
import { Editor } from "./editor.js";
import { drawn } from "./highlights.js";
import { counts, markAt, sameWords, trimmed, wordAt } from "./marks.js";

const STATUS = { connecting: "Connecting…", working: "Reading…", offline: "Reconnecting…", live: "Live" };

/** The pane. `does`: open(), example(which), shortcuts(), clear(). */
export class TextPane {
  constructor(desk, does) {
    this.desk = desk;
    this.does = does;
    this.active = null; // the mark that the card is about
    this.view = "text";
    this.build();
    desk.on("document", () => this.whole());
    desk.on("text", (detail) => this.patch(detail));
    desk.on("marks preview", () => this.repaint());
    desk.on("status", () => this.told());
    desk.on("history", () => this.history());
  }

  get draft() {
    return this.desk.draft;
  }

  build() {
    this.editor = new Editor({
      label: "Text to protect",
      placeholder: "Type or paste a text, or drop a file here.",
      onedit: (at, removed, inserted, typing) => this.edit(at, removed, inserted, typing),
      onpress: (offset) => this.press(offset),
      onselect: (start, end) => this.selected(start, end),
      oncaret: () => this.card?.adding && this.card.close(),
      onundo: () => this.undo(),
      onredo: () => this.redo(),
    });
    this.conversation = new Conversation({
      onmark: (mark, element) => this.openCard(mark, { rectangle: element.getBoundingClientRect(), focus: true }),
      onselect: (start, end, rectangle) => this.selected(start, end, rectangle),
      onturn: (line) => this.addTurn(line),
      onedit: (offset) => {
        this.show("text");
        this.editor.focus();
        this.editor.select(offset, offset);
        this.editor.reveal(offset, true);
      },
    });
    this.views = segments({ label: "View", value: "text", options: [{ value: "text", label: "Text" }, { value: "conversation", label: "Conversation" }], onchange: (v) => this.show(v) });
    this.undoButton = iconButton("undo", "Undo (Ctrl+Z)", { small: true, disabled: true, onclick: () => this.undo() });
    this.redoButton = iconButton("redo", "Redo (Ctrl+Shift+Z)", { small: true, disabled: true, onclick: () => this.redo() });
    const more = iconButton("more", "More", { small: true, onclick: () => menu(more, [
      { label: "Try a letter", icon: "file", run: () => this.does.example("letter") },
      { label: "Try a conversation", icon: "chat", run: () => this.does.example("call") },
      "-",
      { label: "Forget all corrections", icon: "undo", disabled: !this.draft.own.length, run: () => this.draft.correct([]) },
      { label: "Clear the desk", icon: "trash", disabled: !this.draft.text, run: () => this.does.clear() },
      "-",
      { label: "Keyboard shortcuts", icon: "keyboard", run: () => this.does.shortcuts() },
    ]) });
    this.picker = h("div", { class: "picker", hidden: true });
    this.blank = h("div", { class: "blank" },
      h("p", {}, "Nothing leaves this server, and nothing of your text is kept in the browser."),
      h("div", { class: "row" }, button("Try a letter", { small: true, onclick: () => this.does.example("letter") }), button("Try a conversation", { small: true, onclick: () => this.does.example("call") })));
    this.legend = h("div", { class: "legend", role: "group", "aria-label": "Labels in the text" });
    this.line = h("div", { class: "status numbers", role: "status" });
    this.body = h("div", { class: "pane-body" }, this.editor.root, this.conversation.root, this.blank);
    this.element = h("section", { class: "pane text-pane", "aria-label": "Text to protect" },
      h("header", { class: "pane-head" }, h("h2", {}, "Your text"), this.views,
        h("div", { class: "row still tools" }, this.undoButton, this.redoButton, iconButton("open", "Open a file", { small: true, onclick: () => this.does.open() }), more)),
      this.picker,
      !drawn && notice("This browser cannot colour text; the list of mentions has all of them.", { kind: "warn" }),
      this.body, h("footer", { class: "pane-foot" }, this.legend, this.line));
    this.repaintSoon = debounce(() => this.slow(), 120);
  }

  /** Once the labels are known. */
  ready() {
    this.card = new Card({ owner: this.cardOwner(), labels: this.desk.labels });
    this.element.append(this.card.element);
  }

  // Text

  whole() {
    this.card?.close();
    this.editor.setText(this.draft.text, null);
    this.editor.root.scrollTop = 0;
    const { works, at } = this.desk.space;
    this.picker.hidden = works.length < 2;
    if (works.length > 1) {
      const step = (by) => this.desk.show((at + by + works.length) % works.length);
      const pick = select(works.map((w, i) => ({ value: String(i), label: `${i + 1} of ${works.length}: ${w.id}` })), { class: "small", value: String(at), "aria-label": "Document", onchange: () => this.desk.show(Number(pick.value)) });
      fill(this.picker, pick, iconButton("left", "Previous document", { small: true, onclick: () => step(-1) }), iconButton("right", "Next document", { small: true, onclick: () => step(1) }));
    }
    this.repaint();
    this.history();
    this.told();
  }

  edit(at, removed, inserted, typing) {
    this.card?.close();
    this.draft.replace(at, removed, inserted, { typing });
  }

  patch({ at, removed, inserted }) {
    this.editor.patch(at, removed, inserted, this.editor.focused ? at + inserted.length : null);
  }

  addTurn(line) {
    const { text } = this.draft;
    const gap = text && !text.endsWith("\n") ? "\n" : "";
    this.draft.replace(text.length, 0, `${gap}${line}`);
  }

  undo() {
    this.stepped(this.draft.undo(), "Undone");
  }

  redo() {
    this.stepped(this.draft.redo(), "Done again");
  }

  stepped(place, word) {
    if (!place) return;
    this.card?.close();
    announce(word);
    if (this.view !== "text") return;
    if (this.editor.focused) this.editor.select(place.at, place.at);
    this.editor.reveal(place.at);
  }

  history() {
    this.undoButton.disabled = !this.draft.canUndo;
    this.redoButton.disabled = !this.draft.canRedo;
  }

  show(view) {
    this.view = view;
    this.views.value = view;
    this.card?.close();
    this.editor.root.hidden = view !== "text";
    this.conversation.root.hidden = view === "text";
    this.repaint();
  }

  // Drawing

  repaint() {
    const { marks } = this.draft;
    const active = this.active;
    this.editor.paint(marks.map((m) => {
      const names = m.verdict === "rejected" ? ["rejected"] : [family(m.label)];
      if (m.verdict === "added" || m.verdict === "changed" || m.verdict === "accepted") names.push("added");
      if (active && m.start === active.start && m.end === active.end) names.push("active");
      return { start: m.start, end: m.end, names };
    }));
    if (active && this.card?.open && !this.card.adding) {
      const now = marks.find((m) => m.start === active.start && m.end === active.end);
      if (now) this.card.refresh(now);
    }
    this.blank.hidden = this.draft.text.length > 0 || this.view !== "text";
    this.repaintSoon();
  }

  slow() {
    const { marks, text } = this.draft;
    if (this.view !== "text") this.conversation.draw(text, marks, this.active);
    const list = counts(marks);
    const had = this.legend.firstElementChild?.dataset.all;
    const key = JSON.stringify(list);
    if (had === key) return this.told();
    const chips = list.map(([label, n], i) => {
      const chip = h("button", { type: "button", class: "chip", title: `${readable(label)}: go to the next one`, onclick: () => this.next(1, false, label) },
        h("span", { class: "dot", "aria-hidden": "true" }), readable(label), h("b", { class: "numbers" }, n));
      if (i === 0) chip.dataset.all = key;
      return paint(chip, label);
    });
    fill(this.legend, chips.length ? chips : h("span", { class: "muted small" }, this.nothing()));
    return this.told();
  }

  nothing() {
    const { desk, draft } = this;
    if (!draft.text.trim() || draft.annotated !== draft.version) return "Labels appear here.";
    return desk.running?.length === 0 ? "No detector is on: only what you mark is replaced." : "This policy finds nothing in this text.";
  }

  told() {
    const { kind, detail } = this.desk.status;
    const standing = this.draft.standing.length;
    const said = kind === "error" ? detail?.message ?? "The server could not read this." : kind === "live" && detail !== null ? `Live, ${Math.round(detail)} ms` : STATUS[kind];
    const size = this.draft.text.length;
    const now = `${size.toLocaleString("en")} ${size === 1 ? "character" : "characters"} · ${standing.toLocaleString("en")} ${standing === 1 ? "mention" : "mentions"}`;
    this.line.dataset.kind = kind;
    fill(this.line, h("span", { class: "cut" }, now), h("span", { class: "live cut", title: said }, h("i", { "aria-hidden": "true" }), said));
  }

  // Mentions

  cardOwner() {
    const after = (mark) => this.follow(mark);
    const same = (mark, all) => (all ? [mark, ...this.alike(mark)] : [mark]);
    const { desk } = this;
    return {
      text: () => this.draft.text,
      words: (m) => this.draft.text.slice(m.start, m.end),
      becomes: (m) => desk.becomes(m),
      alike: (m) => this.alike(m),
      alikeWords: (m) => sameWords(this.draft.text, m.start, m.end, this.draft.standing),
      others: (m) => this.others(m),
      shared: (m) => this.draft.standing.some((o) => o !== m && desk.entity(o) && desk.entity(o) === desk.entity(m)),
      accept: (m, all) => after(this.draft.accept(...same(m, all))),
      reject: (m, all) => after(this.draft.reject(...same(m, all))),
      withdraw: (m) => after(this.draft.withdraw(m)),
      relabel: (m, label, all) => after(this.draft.relabel(label, ...same(m, all))),
      resize: (m, start, end) => after(this.draft.resize(m, start, end)),
      add: (m, label, all) => {
        document.getSelection().removeAllRanges();
        after(this.draft.add(m.start, m.end, label, { all }));
      },
      merge: (m, id) => after(this.draft.merge(...this.ofEntity(m), ...this.draft.standing.filter((o) => desk.entity(o) === Number(id)))),
      split: (m) => after(this.draft.split(m, this.ofEntity(m).filter((o) => o !== m))),
      next: (direction, focus) => this.next(direction, focus),
      back: () => this.back(),
    };
  }

  ofEntity(mark) {
    const id = this.desk.entity(mark);
    const same = id ? this.draft.standing.filter((o) => this.desk.entity(o) === id) : [];
    return same.includes(mark) ? same : [mark, ...same];
  }

  alike(mark) {
    const { text } = this.draft;
    const words = text.slice(mark.start, mark.end).toLowerCase();
    return this.draft.marks.filter((m) => m !== mark && m.end - m.start === mark.end - mark.start && m.label === mark.label && text.slice(m.start, m.end).toLowerCase() === words);
  }

  /** The entities that a mention could be merged with: its family's first. */
  others(mark) {
    const mine = this.desk.entity(mark);
    const seen = new Map();
    for (const m of this.draft.standing) {
      const id = this.desk.entity(m);
      if (!id || id === mine) continue;
      const words = this.draft.text.slice(m.start, m.end);
      const had = seen.get(id);
      if (!had || words.length > had.words.length) seen.set(id, { id, words, family: family(m.label), label: m.label });
    }
    const home = family(mark.label);
    return [...seen.values()].sort((a, b) => (b.family === home) - (a.family === home) || a.id - b.id).slice(0, 300)
      .map((o) => ({ id: o.id, label: `${o.words.slice(0, 40)} (${readable(o.label)})` }));
  }

  /** After a correction: the card shows the mention as it stands now, or closes. */
  follow(mark) {
    if (!mark) {
      this.card.close(true);
      return;
    }
    const focus = this.card.element.contains(document.activeElement) || this.card.adding;
    this.openCard(mark, { focus });
  }

  openCard(mark, { rectangle, focus = false } = {}) {
    if (!this.card) return;
    const place = rectangle ?? (this.view === "text" ? this.editor.rectangle(mark.start, mark.end) : this.conversation.rectangle(mark));
    this.active = mark;
    this.card.show(mark, place, { focus });
    if (this.view === "text") this.uncover(mark);
    this.repaint();
  }

  /** Where the card lies over its mention, as in a narrow window, the text gives way. */
  uncover(mark) {
    const card = this.card.element.getBoundingClientRect();
    const words = this.editor.rectangle(mark.start, mark.end);
    if (words.bottom > card.top && words.top < card.bottom && words.left < card.right && words.right > card.left) this.editor.root.scrollTop += words.bottom - card.top + 12;
  }

  press(offset) {
    const mark = markAt(this.draft.marks, offset);
    if (mark && !(offset === mark.end && offset === this.draft.text.length)) this.openCard(mark);
    else this.closeCard();
  }

  selected(start, end, rectangle = null) {
    const place = trimmed(this.draft.text, start, end);
    if (!place || !this.card) return;
    const mark = { start: place[0], end: place[1], label: null };
    this.active = null;
    this.card.show(mark, rectangle ?? this.editor.rectangle(...place), { adding: true });
  }

  closeCard() {
    this.active = null;
    this.card?.close();
    this.repaint();
  }

  back() {
    const mark = this.active;
    this.active = null;
    this.repaint();
    if (this.view !== "text") {
      this.conversation.focus(mark);
      return;
    }
    this.editor.focus();
    if (mark) this.editor.select(mark.end, mark.end);
  }

  /** Opens the card of the mention at the caret, or of a new one where words are selected; else of the word there. */
  openHere() {
    const now = this.editor.selection;
    if (!this.card) return undefined;
    if (this.view !== "text" || !now) return this.next(1, true);
    if (now.start === now.end) {
      const mark = markAt(this.draft.marks, now.start);
      if (mark) return this.openCard(mark, { focus: true });
    }
    const place = now.start === now.end ? wordAt(this.draft.text, now.start) : trimmed(this.draft.text, now.start, now.end);
    if (!place) return this.next(1, true);
    const mark = { start: place[0], end: place[1], label: null };
    this.active = null;
    return this.card.show(mark, this.editor.rectangle(...place), { adding: true, focus: true });
  }

  /** Goes to the next mention from where one is; with `focus` its card takes the keyboard. */
  next(direction, focus = false, label = null) {
    this.card?.settle();
    const marks = label ? this.draft.marks.filter((m) => m.label === label) : this.draft.marks;
    if (!marks.length) return;
    const at = this.active ? (direction > 0 ? this.active.end : this.active.start) : this.editor.selection?.[direction > 0 ? "end" : "start"] ?? 0;
    const mark = direction > 0
      ? marks.find((m) => (this.active ? m.start >= at : m.end > at)) ?? marks[0]
      : marks.findLast((m) => m.end <= at) ?? marks.at(-1);
    this.goTo(mark, focus);
  }

  goTo(mark, focus = false) {
    if (this.view === "text") {
      this.editor.reveal(mark.start, true);
      if (!focus) {
        this.editor.focus();
        this.editor.select(mark.start, mark.end);
      }
    } else {
      this.conversation.reveal(mark);
    }
    this.openCard(mark, { focus });
    announce(`${this.draft.text.slice(mark.start, mark.end)}, ${readable(mark.label)}`);
  }

  destroy() {
    this.editor.destroy();
    this.repaintSoon.cancel();
  }
}
