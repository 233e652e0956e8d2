// The right pane: what the text became, to copy, to change and to restore.

import { badge, button, busy, confirm, fill, h, iconButton, menu, notice, describeError, segments, toast } from "../ui.js";
import { family } from "../families.js";
import { may } from "../session.js";
import { Differences } from "./diff.js";
import { Draft } from "./draft.js";
import { Editor } from "./editor.js";
import { RestoredView } from "./restored.js";

const LANGUAGES = new Intl.DisplayNames(["en"], { type: "language" });
const WITHOUT = "Your role may not restore originals. Ask a reviewer or an admin.";

/** The pane. `does`: anonymise(), saveItems() for the menu. */
export class ResultPane {
  constructor(desk, does) {
    this.desk = desk;
    this.does = does;
    this.view = "made";
    this.draft = new Draft(); // so that editing the result can be undone too
    this.build();
    desk.on("preview text document choice scope", () => this.show());
    desk.on("result", () => this.changed());
  }

  build() {
    this.editor = new Editor({
      label: "Result",
      placeholder: "The anonymised text appears here.",
      onedit: (at, removed, inserted, typing) => this.edit(at, removed, inserted, typing),
      onundo: () => this.step("undo"),
      onredo: () => this.step("redo"),
    });
    this.differences = new Differences();
    this.back = new RestoredView();
    this.views = segments({ label: "Result as", value: "made", options: [{ value: "made", label: "Anonymised" }, { value: "diff", label: "Differences" }, { value: "restored", label: "Restored" }], onchange: (v) => this.show(v) });
    this.state = h("div", { class: "state-line" });
    this.copyButton = iconButton("copy", "Copy", { small: true, onclick: () => this.copy() });
    const save = iconButton("save", "Save", { small: true, onclick: () => menu(save, this.does.saveItems()) });
    this.saveButton = save;
    this.restoreButton = button("Restore", { icon: "restore", onclick: () => this.restore() });
    this.answerButton = button("Paste an answer", { kind: "quiet", onclick: () => this.answer() });
    this.why = h("p", { class: "small muted", id: "restore-why" });
    this.body = h("div", { class: "pane-body" }, this.editor.root, this.differences.root, this.back.root);
    this.element = h("section", { class: "pane result-pane", "aria-label": "Result" },
      h("header", { class: "pane-head" }, h("h2", {}, "Result"), this.views, h("div", { class: "row still tools" }, this.copyButton, save)),
      this.state, this.body,
      h("footer", { class: "pane-foot result-foot" }, this.why, h("div", { class: "row end" }, this.answerButton, this.restoreButton)));
  }

  get work() {
    return this.desk.work;
  }

  /** Whether the text in the pane is the person's to change; else it is a preview. */
  get open() {
    const { answer, result, restored } = this.work;
    return answer !== null || Boolean(result && (result.fresh || restored));
  }

  changed() {
    const { work } = this;
    const text = work.answer ?? work.result?.text ?? null;
    if (text !== null && (this.shown !== work.result || this.draft.text !== text)) this.draft = new Draft(text);
    this.shown = work.result;
    if (work.restored && this.restoredShown !== work.restored) this.view = "restored";
    else if (!work.restored && this.view === "restored") this.view = "made";
    this.restoredShown = work.restored;
    this.show();
  }

  show(view = this.view) {
    this.view = view;
    const { work, desk } = this;
    this.views.value = view;
    this.views.disable("restored", !work.restored);
    this.editor.root.hidden = view !== "made";
    this.differences.root.hidden = view !== "diff";
    this.back.root.hidden = view !== "restored";
    const ahead = desk.ahead?.version === desk.draft.version ? desk.ahead : null;
    if (view === "made") this.showMade(ahead);
    else if (view === "diff") {
      const from = work.result && this.open ? [work.result.original, work.result.text, work.result.places] : ahead ? [desk.draft.text, ahead.text, ahead.places] : null;
      if (from) this.differences.draw(...from);
      else if (!desk.draft.text) this.differences.draw("", "", []);
    } else if (work.restored) this.back.draw(work.restored);
    this.tell(ahead);
  }

  showMade(ahead) {
    const { work, desk } = this;
    if (this.open) {
      this.editor.readonly = false;
      if (this.editor.text !== this.draft.text) this.editor.setText(this.draft.text);
      const untouched = work.result && this.draft.text === work.result.text;
      this.editor.paint(untouched ? paintable(work.result.places) : []);
      return;
    }
    this.editor.readonly = true;
    if (ahead) {
      if (this.editor.text !== ahead.text) this.editor.setText(ahead.text);
      this.editor.paint(paintable(ahead.places));
    } else if (!desk.draft.text.trim() || desk.failed) {
      this.editor.setText("");
      this.editor.paint([]);
    }
  }

  tell(ahead) {
    const { work, desk } = this;
    const out = [];
    if (desk.failed && !this.open) out.push(notice(describeError(desk.failed), { kind: "danger" }));
    else if (work.result && this.open && !work.result.fresh) {
      out.push(notice("Your text or your choices have changed since. Originals are restored as they were anonymised.", { kind: "warn", actions: [
        button("Anonymise again", { small: true, onclick: () => this.does.anonymise() }),
        button("Back to the preview", { small: true, onclick: () => this.dropAnswer() }),
      ] }));
    } else if (work.result && this.open) out.push(h("div", { class: "row" }, badge("Anonymised", "good"), h("span", { class: "small muted" }, work.result.scope ? `kept in the vault under “${work.result.scope}”` : "its plan is kept in this window only")));
    else if (work.answer !== null) out.push(h("div", { class: "row" }, badge("Answer", "info"), h("span", { class: "small muted" }, this.from()), button("Back to the preview", { kind: "quiet", small: true, onclick: () => this.dropAnswer() })));
    else if (desk.draft.text.trim()) out.push(h("div", { class: "row" }, badge("Preview"), h("span", { class: "small muted" }, ahead ? `press Anonymise to use it${work.result ? "; the plan before still restores" : ""}` : "…")));
    const read = this.open ? work.result && { of: work.result.original, unread: work.result.unread } : ahead && { of: desk.draft.text, unread: ahead.unread };
    if (read && Object.keys(read.unread ?? {}).length) out.push(notice(describeUnread(read.unread, read.of), { kind: "warn" }));
    fill(this.state, out);
    const may_ = may("restore");
    const something = Boolean(this.open && this.draft.text.trim());
    this.restoreButton.disabled = !may_ || !something || (!work.result && !desk.space.scope);
    this.answerButton.hidden = !may_ || this.open;
    const plainly = !work.result && work.answer !== null && !desk.space.scope;
    this.why.textContent = !may_ ? WITHOUT : plainly ? "Name the vault scope under Policy, so that the replacements can be looked up." : work.result && this.open ? "Change the text or paste what you got back, then restore." : "";
    this.restoreButton.setAttribute("aria-describedby", this.why.id);
    this.copyButton.disabled = !this.current();
  }

  from() {
    const { work, desk } = this;
    if (work.restored) return "restored from the vault";
    return desk.space.scope ? `to be restored from the vault under “${desk.space.scope}”` : "to be restored";
  }

  /** The text that is shown. */
  current() {
    if (this.view === "restored") return this.work.restored?.text ?? "";
    return this.open ? this.draft.text : this.desk.ahead?.text ?? "";
  }

  edit(at, removed, inserted, typing) {
    if (!this.open) return;
    this.draft.replace(at, removed, inserted, { typing });
    this.editor.patch(at, removed, inserted);
    this.took();
  }

  step(which) {
    const place = this.draft[which]();
    if (!place) return;
    this.editor.setText(this.draft.text, place.at);
    this.took();
  }

  took() {
    const { work } = this;
    const untouched = work.result && this.draft.text === work.result.text;
    work.answer = untouched && work.result.fresh ? null : this.draft.text;
    this.editor.paint(untouched ? paintable(work.result.places) : []);
    this.tell(null);
  }

  answer() {
    this.work.answer = "";
    this.desk.emit("result");
    this.show("made");
    this.editor.focus();
  }

  async dropAnswer() {
    if (!(await this.mayDrop())) return;
    this.work.answer = null;
    this.work.restored = null;
    this.desk.emit("result");
  }

  /** Whether the answer may go; asks where there is one. */
  async mayDrop() {
    return !this.work.answer?.trim() || confirm({ title: "Drop the answer?", body: "Your text and changes on the right will be lost.", action: "Drop it", danger: true });
  }

  async copy() {
    try {
      await navigator.clipboard.writeText(this.current());
      toast("Copied.");
    } catch {
      toast("The browser did not allow copying. Select the text and press Ctrl+C.", { kind: "danger" });
    }
  }

  async restore() {
    if (this.restoreButton.disabled) return;
    try {
      await busy(this.restoreButton, () => this.desk.restore());
    } catch (error) {
      this.desk.complain(error);
    }
    this.tell(null);
  }

  destroy() {
    this.editor.destroy();
  }
}

function paintable(places) {
  return places.map((p) => ({ start: p.start, end: p.end, names: [family(p.label)] }));
}

/** Says in which part of a text names were not looked for. `unread`: language to characters. */
function describeUnread(unread, text) {
  const codes = Object.keys(unread).sort((a, b) => unread[b] - unread[a]);
  const share = (100 * codes.reduce((sum, code) => sum + unread[code], 0)) / Math.max(1, [...text].length);
  const shown = share >= 1 ? Math.min(100, Math.round(share)) : "less than 1";
  return `Names were not looked for in ${shown} % of the text: ${codes.map((code) => LANGUAGES.of(code)).join(", ")}. Only titles, lists and rules work there, so read these passages yourself.`;
}
