// Forms and buttons that send: they show that they run, and what went wrong.

import { button, busy, confirm, describeError, fill, h, notice, progress, toast } from "./ui.js";

/** Shows an error as a short message. */
export function showError(error) {
  toast(describeError(error), { kind: "danger" });
}

/** A button that runs `work`; an error becomes a short message. `sure`, {title, body}, asks first. */
export function actionButton(label, work, { sure, ...rest } = {}) {
  const press = button(label, { ...rest, onclick: async () => {
    if (sure && !(await confirm({ action: label, danger: true, ...sure }))) return;
    await busy(press, work).catch(showError);
  } });
  return press;
}

/**
 * A form. Before it sends, each field checks its value (see field()); the first wrong one gets the focus. `send(report)`
 * runs while the button `submit` turns, and `report(share)` shows how much of an upload has gone. An error stands above
 * the buttons, unless `refuse(error)` shows it elsewhere; `beside` stands before the button. The element has `.sendButton` and `.fail(error)`.
 */
export function form({ fields = [], submit, send, refuse, cancel, beside, end = false, class: extra = "stack" }, ...children) {
  const failure = h("div", { hidden: true });
  const bar = progress({ value: 0 });
  bar.hidden = true;
  const { label, ...look } = submit;
  const press = button(label, { kind: "primary", type: "submit", ...look });
  const element = h("form", { class: extra, novalidate: true }, children, failure, bar,
    h("div", { class: end ? "row end" : "row" }, beside, press, cancel && button("Cancel", { kind: "quiet", onclick: cancel })));
  element.sendButton = press;
  element.fail = (error) => {
    fill(failure, error && notice(describeError(error), { kind: "danger" }));
    failure.hidden = !error;
  };
  const report = (share) => {
    bar.hidden = false;
    bar.update({ value: share, label: share < 1 ? "Sending" : "Checking" });
  };
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wrong = fields.filter((one) => !one.check());
    if (wrong.length) return wrong[0].control.focus();
    element.fail(null);
    try {
      return await busy(press, () => send(report));
    } catch (error) {
      bar.hidden = true;
      return (refuse ?? element.fail)(error);
    }
  });
  return element;
}

/** The objects of JSON Lines with their line numbers; `take(record)` gives null for what it cannot use, which is an error. */
export async function readJsonLines(file, take, needed) {
  const out = [];
  for (const [i, line] of (await file.text()).split("\n").entries()) {
    if (!line.trim()) continue;
    let record = null;
    try { record = JSON.parse(line); } catch { /* told below, with its place */ }
    const made = record && typeof record === "object" && !Array.isArray(record) ? take(record, i + 1) : null;
    if (!made) throw new Error(`Line ${i + 1} of ${file.name}: ${needed}`);
    out.push(made);
  }
  return out;
}

/** An id that can stand in an address. */
export function makeId(id) {
  return String(id).replaceAll("/", "-").slice(0, 200);
}
