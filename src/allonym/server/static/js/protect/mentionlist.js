// All mentions as a list: another way to go through them, by keyboard too.

import { button, debounce, emptyState, fill, h, icon, input, select } from "../ui.js";
import { paint, readable } from "../families.js";
import { counts } from "./marks.js";

const STEP = 150;
const LONGEST = 60;
const VERDICTS = { accepted: ["check", "accepted"], changed: ["edit", "changed"], added: ["plus", "added by you"], rejected: ["close", "rejected"] };

/** The list. `does`: go(mark, focus), accept(mark), reject(mark). */
export class MentionList {
  constructor(desk, does) {
    this.desk = desk;
    this.does = does;
    this.most = STEP;
    this.search = input({ class: "small", type: "search", placeholder: "Filter by words", "aria-label": "Filter by words", oninput: () => this.again() });
    this.labels = select([{ value: "", label: "All labels" }], { class: "small", "aria-label": "Filter by label", onchange: () => this.again() });
    this.list = h("ul", { class: "mentions", "aria-label": "Mentions" });
    this.rest = h("div", {});
    this.element = h("div", { class: "stack mention-list" }, h("div", { class: "filters" }, this.search, this.labels), this.list, this.rest);
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.soon = debounce(() => this.draw(), 160);
    desk.on("marks preview document", () => this.soon());
    this.draw();
  }

  again() {
    this.most = STEP;
    this.draw();
  }

  draw() {
    const { draft } = this.desk;
    const all = counts(draft.marks).map(([label, n]) => ({ value: label, label: `${readable(label)} (${n})` }));
    const chosen = this.labels.value;
    this.labels.options_([{ value: "", label: "All labels" }, ...all]);
    this.labels.value = all.some((o) => o.value === chosen) ? chosen : "";
    if (!this.element.isConnected || !this.element.clientHeight) {
      this.stale = true;
      return;
    }
    this.stale = false;
    const words = this.search.value.trim().toLowerCase();
    const label = this.labels.value;
    const shown = draft.marks.filter((m) => (!label || m.label === label) && (!words || draft.text.slice(m.start, m.end).toLowerCase().includes(words)));
    const focused = [...this.list.children].findIndex((row) => row.contains(document.activeElement));
    this.marks = shown.slice(0, this.most);
    fill(this.list, this.marks.map((m) => this.row(m, draft.text)));
    fill(this.rest, shown.length > this.most && button(`Show more (${shown.length - this.most} left)`, { small: true, onclick: () => { this.most += STEP; this.draw(); } }),
      !shown.length && emptyState({ icon: "list", title: draft.marks.length ? "No matches" : "No mentions yet", body: draft.marks.length ? "" : "Mentions that identify somebody appear here as you type." }));
    if (focused >= 0) this.list.children[Math.min(focused, this.list.children.length - 1)]?.firstChild.focus();
  }

  /** When the list is shown after it was hidden. */
  shown() {
    this.draw();
  }

  row(mark, text) {
    const said = text.slice(mark.start, Math.min(mark.end, mark.start + LONGEST)).replace(/\s+/g, " ");
    const becomes = this.desk.becomes(mark);
    const [name, word] = VERDICTS[mark.verdict] ?? [null, ""];
    const into = mark.verdict === "rejected" ? "stays" : becomes === null ? "" : becomes === "" ? "taken out" : becomes;
    const element = h("button", { type: "button", class: `mention-row ${mark.verdict}`, onclick: () => this.does.go(mark, true) },
      h("span", { class: "dot", "aria-hidden": "true" }),
      h("span", { class: "cut strong" }, said),
      h("span", { class: "cut small muted" }, readable(mark.label), h("span", { class: "out-of-sight" }, word && `, ${word}`)),
      name ? icon(name) : h("span", {}),
      h("span", { class: "cut small muted into" }, into && `→ ${into}`));
    return h("li", {}, paint(element, mark.label));
  }

  key(event) {
    const rows = [...this.list.children].map((li) => li.firstChild);
    const at = rows.indexOf(document.activeElement);
    if (at < 0) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    const mark = this.marks[at];
    if (to !== undefined) rows[Math.max(0, Math.min(to, rows.length - 1))]?.focus();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "a") this.does.accept(mark);
    else if (event.key === "r" || event.key === "Delete") this.does.reject(mark);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
