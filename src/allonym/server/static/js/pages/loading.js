// What every list and every page part does: wait, show, say that it failed, and turn pages.

import { button, errorState, fill, h, icon, skeleton } from "../ui.js";
import { count } from "./format.js";

/** Loads into `root`, then draws; where that fails it says so and offers to try again. Gives the data, or null. */
export async function loaded(root, load, draw, lines = 5) {
  fill(root, skeleton(lines));
  try {
    const data = await load();
    fill(root, draw(data));
    return data;
  } catch (error) {
    if (error.name === "AbortError") return null;
    fill(root, errorState(error, () => loaded(root, load, draw, lines)));
    return null;
  }
}

/**
 * A long list in pages. `load(offset, limit)` gives {rows, total}; `draw(rows)` a node; `empty`, a node or what makes
 * one, is shown where there is none. The element has `.reload(first)`; with `first` it goes back to the first page.
 */
export function paged({ size = 25, load, draw, empty, label = "Pages" }) {
  const body = h("div", {});
  const words = h("span", { class: "small muted numbers" });
  const before = button("Previous", { small: true, icon: "left", onclick: () => turn(-size) });
  const after = button("Next", { small: true, onclick: () => turn(size) });
  after.append(icon("right"));
  const foot = h("nav", { class: "pager", "aria-label": label, hidden: true }, before, words, after);
  const element = h("div", { class: "stack" }, body, foot);
  let offset = 0, running = 0;
  const turn = (by) => {
    offset = Math.max(0, offset + by);
    element.reload().then(() => element.scrollIntoView({ block: "nearest" }));
  };
  element.reload = async (first = false) => {
    if (first) offset = 0;
    running += 1;
    const mine = running;
    if (!body.firstChild) fill(body, skeleton(4));
    body.setAttribute("aria-busy", "true");
    try {
      const { rows, total } = await load(offset, size);
      if (mine !== running) return;
      if (!rows.length && offset > 0) { offset = Math.max(0, offset - size); await element.reload(); return; }
      fill(body, rows.length ? draw(rows) : typeof empty === "function" ? empty() : empty);
      foot.hidden = total <= size;
      before.disabled = offset === 0;
      after.disabled = offset + rows.length >= total;
      words.textContent = `${count(offset + 1)}–${count(offset + rows.length)} of ${count(total)}`;
    } catch (error) {
      if (mine !== running || error.name === "AbortError") return;
      foot.hidden = true;
      fill(body, errorState(error, () => { fill(body); return element.reload(); }));
    } finally {
      if (mine === running) body.removeAttribute("aria-busy");
    }
  };
  return element;
}

/** A form that a button opens: {make, place, open(on)}: the button, where the form stands, what opens it; `build(hide)` makes it. */
export function folded(label, build) {
  const place = h("section", { class: "card", "aria-label": label, hidden: true });
  const make = button(label, { kind: "primary", icon: "plus", "aria-expanded": "false" });
  const open = (on) => {
    place.hidden = !on;
    make.setAttribute("aria-expanded", String(on));
    if (!on) return;
    if (!place.firstChild) place.append(build(() => open(false)));
    place.querySelector("input:not([hidden]), button").focus();
  };
  make.addEventListener("click", () => open(place.hidden));
  return { make, place, open };
}

/** A label and a value, for lists of facts. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A big number with its name and a line about it. */
export function figure(name, value, says = "", kind = "") {
  return h("div", { class: `figure ${kind}` }, h("dt", {}, name), h("dd", {}, h("span", { class: "big" }, value), says && h("span", { class: "says" }, says)));
}

/** Text that may be copied, with a button that does. */
export function copyable(text, { label = "Copy", ontell } = {}) {
  const press = button(label, { small: true, icon: "copy" });
  press.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      press.lastChild.textContent = "Copied";
      setTimeout(() => { press.lastChild.textContent = label; }, 2000);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    ontell?.();
  });
  const code = h("code", { class: "breaks grow", tabindex: "0" }, text);
  return h("div", { class: "copyable" }, code, press);
}
