// The page where a text is protected: the text on the left, choices and mentions in the middle, the result on the right.

import { announce, button, busy, h, progress, segments, stylesheet, tabs, toast } from "../ui.js";
import { Choices } from "../protect/choices.js";
import { Desk } from "../protect/desk.js";
import { CALL, LETTER } from "../protect/example.js";
import { ACCEPTED, openFiles, saveItems } from "../protect/filing.js";
import { MentionList } from "../protect/mentionlist.js";
import { ResultPane } from "../protect/result.js";
import { shortcuts } from "../protect/shortcuts.js";
import { TextPane } from "../protect/textpane.js";
import { mayGo } from "../protect/workspace.js";

/** Shows the page. */
export async function show(root) {
  await stylesheet("protect.css");
  const desk = new Desk();
  const chooser = h("input", { type: "file", accept: ACCEPTED, multiple: true, hidden: true, "aria-label": "Files to open" });
  const loading = progress({});
  const over = h("div", { class: "drop-over", hidden: true }, h("strong", {}, "Drop to open"));

  const pane = new TextPane(desk, { open: () => chooser.click(), example, shortcuts, clear });
  const choices = new Choices(desk);
  const list = new MentionList(desk, {
    go: (mark, focus) => {
      if (narrow.matches) pick("text");
      pane.goTo(mark, focus);
    },
    accept: (mark) => desk.draft.accept(mark),
    reject: (mark) => (mark.verdict === "rejected" ? desk.draft.withdraw(mark) : desk.draft.reject(mark)),
  });
  const result = new ResultPane(desk, { anonymise: () => anonymise(), saveItems: () => saveItems(desk, result) });

  const number = h("span", { class: "badge numbers" }, "0");
  const middle = tabs({ label: "Choices and mentions", items: [{ id: "policy", label: "Policy", panel: choices.element }, { id: "mentions", label: "Mentions", panel: list.element, badge: number }], onselect: (id) => id === "mentions" && list.shown() });
  desk.on("marks document", () => { number.textContent = desk.draft.standing.length.toLocaleString("en"); });
  const act = button("Anonymise", { kind: "primary", icon: "shield", "aria-keyshortcuts": "Control+Enter", onclick: () => anonymise() });
  const middlePane = h("section", { class: "pane middle-pane", "aria-label": "Choices and mentions" }, h("div", { class: "pane-body" }, middle), h("footer", { class: "pane-foot" }, act));

  const panes = [["text", pane.element], ["policy", middlePane], ["result", result.element]];
  const picker = segments({ label: "Part of the page", value: "text", options: [{ value: "text", label: "Text" }, { value: "policy", label: "Policy" }, { value: "result", label: "Result" }], onchange: (v) => pick(v) });
  const narrow = matchMedia("(max-width: 62rem)");
  const page = h("div", { class: "protect", "data-pane": "text" },
    h("h1", { class: "out-of-sight" }, "Protect a text"),
    h("div", { class: "pane-picker" }, picker, button("Anonymise", { kind: "primary", small: true, class: "narrow-act", onclick: () => anonymise() })),
    h("div", { class: "loading", hidden: true }, loading), panes.map(([, element]) => element), over, chooser);
  root.append(page);

  function pick(name) {
    page.dataset.pane = name;
    picker.value = name;
    pane.closeCard();
    if (name === "policy") list.shown();
  }

  async function anonymise() {
    if (!desk.draft.text.trim()) {
      toast("There is no text yet.");
      return;
    }
    if (!(await result.mayDrop())) return;
    try {
      await busy(act, () => desk.anonymise());
      if (narrow.matches) pick("result");
    } catch (error) {
      desk.complain(error);
    }
  }

  async function example(which) {
    if (!(await mayGo("Open the example?", "Open"))) return;
    desk.open([which === "call" ? CALL : LETTER]);
    pane.show(which === "call" ? "conversation" : "text");
  }

  async function clear() {
    if (!(await mayGo("Clear the desk?", "Clear"))) return;
    desk.open([{ id: "", text: "" }]);
    pane.show("text");
    pane.editor.focus();
  }

  async function open(files) {
    const bar = page.querySelector(".loading");
    bar.hidden = false;
    loading.update({ value: 0, label: `Opening ${files.length === 1 ? files[0].name : `${files.length} files`}…` });
    try {
      if (await openFiles(desk, files, (share) => loading.update({ value: share < 1 ? share : null, label: "Reading…" }))) {
        pane.show("text");
        announce(`${desk.space.works.length} documents opened.`);
      }
    } catch (error) {
      desk.complain(error);
    } finally {
      bar.hidden = true;
    }
  }

  chooser.addEventListener("change", () => {
    if (chooser.files.length) open([...chooser.files]);
    chooser.value = "";
  });
  page.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    over.hidden = false;
  });
  page.addEventListener("dragleave", (event) => {
    if (!page.contains(event.relatedTarget)) over.hidden = true;
  });
  page.addEventListener("drop", (event) => {
    over.hidden = true;
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    open([...event.dataTransfer.files]);
  });

  function nextPane(direction) {
    const at = panes.findIndex(([, element]) => element.contains(document.activeElement));
    const [name, element] = panes[(at + direction + panes.length) % panes.length];
    if (narrow.matches) pick(name);
    [...element.querySelectorAll('[contenteditable], [role="tab"][aria-selected="true"], button')].find((e) => e.checkVisibility())?.focus();
  }

  const keys = (event) => {
    if (document.querySelector("dialog[open]")) return;
    const ctrl = event.ctrlKey || event.metaKey;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    const inText = event.target === pane.editor.root;
    const inResult = event.target === result.editor.root;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    let run = null;
    if (ctrl && key === "Enter") run = event.shiftKey ? () => result.restore() : () => anonymise();
    else if (ctrl && (key === "z" || key === "y") && (!typing || inText || inResult)) {
      const again = key === "y" || event.shiftKey;
      run = inResult ? () => result.step(again ? "redo" : "undo") : () => (again ? pane.redo() : pane.undo());
    } else if (ctrl && key === "o") run = () => chooser.click();
    else if ((ctrl && key === "/") || (key === "?" && !typing)) run = () => shortcuts();
    else if (key === "F8") run = () => pane.next(event.shiftKey ? -1 : 1, true);
    else if (key === "F6") run = () => nextPane(event.shiftKey ? -1 : 1);
    else if (event.altKey && inText && key === "Enter") run = () => pane.openHere();
    else if (event.altKey && inText && (key === "ArrowDown" || key === "ArrowUp")) run = () => pane.next(key === "ArrowDown" ? 1 : -1);
    else if (key === "Escape" && pane.card?.open) run = () => pane.card.close(true);
    if (!run) return;
    event.preventDefault();
    run();
  };
  document.addEventListener("keydown", keys);

  const load = async () => {
    try {
      await desk.load();
      choices.ready();
      pane.ready();
    } catch (error) {
      choices.failed(error, load);
    }
  };
  desk.take();
  if (!narrow.matches) pane.editor.focus();
  load();

  return () => {
    document.removeEventListener("keydown", keys);
    pane.destroy();
    result.destroy();
    desk.close();
  };
}
