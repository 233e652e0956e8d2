// What lies above a page: dialogs, short messages, menus.

import { fill, h, icon, uid } from "./dom.js";

/**
 * A modal dialog. actions: buttons for its foot. Returns {element, close, hold}; `closed` is told once, however it
 * closed. Escape, the cross and a press beside it close it, the last not once something was typed or after hold(), which
 * is for what is shown once; focus goes back where it was.
 */
export function dialog({ title, body, actions = [], wide = false, closed }) {
  const heading = uid("title");
  const before = document.activeElement;
  const cross = h("button", { type: "button", class: "button icon quiet small", "aria-label": "Close", onclick: () => element.close() }, icon("close"));
  const element = h("dialog", { class: `dialog ${wide ? "wide" : ""}`, "aria-labelledby": heading },
    h("header", {}, h("h2", { id: heading }, title), cross),
    h("div", { class: "body", tabindex: "-1" }, body),
    actions.length > 0 && h("footer", {}, actions));
  element.addEventListener("close", () => {
    element.remove();
    if (before?.isConnected) before.focus();
    closed?.();
  });
  let held = false, beside = false;
  const hold = () => { held = true; };
  element.addEventListener("input", hold);
  element.addEventListener("pointerdown", (event) => { beside = event.target === element; });
  element.addEventListener("click", (event) => {
    if (event.target === element && beside && !held) element.close();
  });
  document.body.append(element);
  element.showModal();
  return { element, close: () => element.close(), hold };
}

/** Asks; resolves to whether the person agreed. */
export function confirm({ title, body, action = "Go on", danger = false }) {
  return new Promise((resolve) => {
    let answer = false;
    const yes = h("button", { type: "button", class: `button ${danger ? "danger" : "primary"}`, onclick: () => { answer = true; open.close(); } }, action);
    const no = h("button", { type: "button", class: "button", onclick: () => open.close() }, "Cancel");
    const open = dialog({ title, body: h("p", {}, body), actions: [no, yes], closed: () => resolve(answer) });
    yes.focus();
  });
}

let pile = null;

/** A short message that goes by itself; kind "danger" stays longer. `action`: {label, run}. */
export function toast(message, { kind = "", action } = {}) {
  if (!pile) {
    pile = h("div", { class: "toasts", role: "region", "aria-label": "Messages" });
    document.body.append(pile);
  }
  const element = h("div", { class: `toast ${kind}`, role: kind === "danger" ? "alert" : "status" }, h("span", { class: "grow breaks" }, message));
  const gone = () => element.remove();
  if (action) element.append(h("button", { type: "button", class: "button small", onclick: () => { gone(); action.run(); } }, action.label));
  element.append(h("button", { type: "button", class: "button icon small", "aria-label": "Dismiss", onclick: gone }, icon("close")));
  pile.append(element);
  while (pile.children.length > 3) pile.firstChild.remove();
  setTimeout(gone, kind === "danger" ? 12_000 : 5_000);
}

/**
 * A menu below `anchor`. items: {label, icon?, run?, href?, disabled?, checked?}, "-" for a line, or {says} for words.
 * Arrow keys move, Escape closes, focus goes back to the anchor.
 */
export function menu(anchor, items) {
  document.querySelector(".menu")?.close?.();
  const element = h("div", { class: "menu", role: "menu" });
  const close = (back = true) => {
    element.remove();
    document.removeEventListener("pointerdown", outside, true);
    window.removeEventListener("resize", close);
    anchor.setAttribute("aria-expanded", "false");
    if (back) anchor.focus();
  };
  const outside = (event) => {
    if (!element.contains(event.target) && !anchor.contains(event.target)) close(false);
  };
  element.close = close;
  fill(element, items.filter(Boolean).map((item) => {
    if (item === "-") return h("hr", {});
    if (item.says !== undefined) return h("div", { class: "says", role: "presentation" }, item.says);
    const radio = item.checked !== undefined;
    const attributes = {
      role: radio ? "menuitemradio" : "menuitem", tabindex: "-1", disabled: item.disabled,
      "aria-checked": radio ? String(item.checked) : null, href: item.href,
      type: item.href ? null : "button", onclick: () => { close(!item.href); item.run?.(); },
    };
    return h(item.href ? "a" : "button", attributes, item.icon && icon(item.icon), h("span", { class: "grow" }, item.label), item.checked && icon("check"));
  }));
  element.addEventListener("keydown", (event) => {
    const all = [...element.querySelectorAll('[role^="menuitem"]:not(:disabled)')];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      all[(to + all.length) % all.length]?.focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  document.body.append(element);
  anchor.setAttribute("aria-haspopup", "menu");
  anchor.setAttribute("aria-expanded", "true");
  place(element, anchor.getBoundingClientRect());
  document.addEventListener("pointerdown", outside, true);
  window.addEventListener("resize", close);
  element.querySelector('[role^="menuitem"]:not(:disabled)')?.focus();
  return { element, close };
}

/** Puts a fixed element below a rectangle, above it where there is no room, and never over the window's edge. */
export function place(element, rectangle, gap = 6) {
  const { width, height } = element.getBoundingClientRect();
  const left = Math.max(8, Math.min(rectangle.left, window.innerWidth - width - 8));
  const below = rectangle.bottom + gap;
  const above = rectangle.top - gap - height;
  const top = below + height <= window.innerHeight - 8 || above < 8 ? Math.min(below, Math.max(8, window.innerHeight - height - 8)) : above;
  element.style.setProperty("left", `${Math.round(left)}px`);
  element.style.setProperty("top", `${Math.round(top)}px`);
}

