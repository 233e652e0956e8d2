// The sheet of keys.

import { dialog, h } from "../ui.js";

const mac = /Mac|iP/.test(navigator.platform ?? "");

const SHEET = [
  ["Anywhere", [
    ["Ctrl Enter", "Anonymise"],
    ["Ctrl Shift Enter", "Restore the originals"],
    ["Ctrl Z", "Undo, words and corrections alike"],
    ["Ctrl Shift Z", "Do it again"],
    ["F8", "Next mention"],
    ["Shift F8", "Previous mention"],
    ["F6", "Next pane"],
    ["Ctrl O", "Open a file"],
    ["Ctrl /", "This sheet (also ? outside a text)"],
  ]],
  ["In the text", [
    ["Alt Enter", "Open the mention at the caret, or mark the selected words"],
    ["Alt ↓", "Next mention"],
    ["Alt ↑", "Previous mention"],
  ]],
  ["On a mention", [
    ["A", "Accept"],
    ["R", "Reject, or undo the rejection"],
    ["L", "Choose the label"],
    ["→ ←", "Move the end (Shift: by a word)"],
    ["Alt → ←", "Move the start (Shift: by a word)"],
    ["M", "Merge with another entity"],
    ["S", "Split off as another entity"],
    ["N", "Next mention"],
    ["P", "Previous mention"],
    ["Esc", "Back to the text"],
  ]],
  ["In the list of mentions", [
    ["↓ ↑", "Go through the list"],
    ["Enter", "Open the mention"],
    ["A", "Accept"],
    ["R", "Reject"],
  ]],
];

function keys(words) {
  return h("span", { class: "keys" }, words.split(" ").map((k) => h("kbd", {}, mac ? k.replace("Ctrl", "⌘").replace("Alt", "⌥") : k)));
}

/** Shows the sheet. */
export function shortcuts() {
  dialog({
    title: "Keyboard shortcuts",
    wide: true,
    body: h("div", { class: "sheet" }, SHEET.map(([title, rows]) =>
      h("section", { class: "stack" }, h("h3", {}, title), h("dl", {}, rows.map(([k, words]) => h("div", {}, h("dt", {}, keys(k)), h("dd", {}, words))))))),
  });
}
