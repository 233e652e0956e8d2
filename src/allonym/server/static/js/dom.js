// Elements out of code. Text always becomes a text node, never markup.

let numbered = 0;

/** A new id that no other element has. */
export function uid(stem = "x") {
  numbered += 1;
  return `${stem}-${numbered}`;
}

/**
 * An element: `h("a", {href, class, onclick, "aria-label": …}, "text", child, [more])`.
 * Attributes that are null, undefined or false are left out, true is written as an empty attribute; what begins with
 * `on` is a listener; `style` is an object of CSS properties; `props` sets properties such as `value`.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...nodes(children));
  return element;
}

/** Sets attributes, listeners and properties as h() does. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, val] of Object.entries(value)) element.style.setProperty(key, val);
    else if (name === "props") Object.assign(element, value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return element;
}

/** Children as nodes: strings and numbers become text, lists are flattened, nothing is left out of nothing. */
export function nodes(children) {
  const out = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === true) continue;
    out.push(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return out;
}

/** Puts other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

// 24 by 24, drawn with a line of 1.75.
const ICONS = {
  brand: "M4 9.5c2.6-2 5.6-1.5 8 .7 2.4-2.2 5.4-2.7 8-.7-.1 4.2-2.1 6.8-4.6 6.8-1.5 0-2.6-.9-3.4-2.1-.8 1.2-1.9 2.1-3.4 2.1-2.5 0-4.5-2.6-4.6-6.8Z",
  check: "m5 12.5 4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  copy: "M9 9h10v11H9zM5 15V4h10",
  down: "m6 9 6 6 6-6",
  up: "m6 15 6-6 6 6",
  left: "m15 6-6 6 6 6",
  right: "m9 6 6 6-6 6",
  menu: "M4 7h16M4 12h16M4 17h16",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10Z",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4",
  user: "M12 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M5 19.5c.8-3.4 3.5-5 7-5s6.2 1.6 7 5",
  file: "M6 3.5h8l4 4v13H6zM14 3.5v4h4",
  open: "M4 19V6h5l2 2h9v3M4 19l2.5-8H21l-2.5 8z",
  save: "M12 4v11M7.5 11 12 15.5 16.5 11M5 19.5h14",
  upload: "M12 16V5M7.5 9 12 4.5 16.5 9M5 19.5h14",
  undo: "M8 5 4 9l4 4M4.5 9H14a5.5 5.5 0 0 1 0 11h-3",
  redo: "m16 5 4 4-4 4M19.5 9H10a5.5 5.5 0 0 0 0 11h3",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15 15l5 5",
  warn: "M12 4.5 21 19.5H3zM12 10v4.5M12 16.8v.4",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M12 11v5.5M12 7.6v.4",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  shield: "M12 3.5 19 6v6c0 4.5-3 7.3-7 8.5-4-1.2-7-4-7-8.5V6z",
  restore: "M4.5 12a7.5 7.5 0 1 0 2.2-5.3L4.5 9M4.5 4.5V9H9M12 8v4.5l3 2",
  split: "M12 4v16M8 8l-4 4 4 4M16 8l4 4-4 4",
  merge: "M4 6c5 0 5 6 9 6h7M4 18c5 0 5-6 9-6M16.5 8.5 20 12l-3.5 3.5",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5",
  edit: "M5 19l1-4L16.5 4.5l3 3L9 18zM14 7l3 3",
  list: "M9 6.5h11M9 12h11M9 17.5h11M4.5 6.5h.1M4.5 12h.1M4.5 17.5h.1",
  chat: "M4 5h16v11H10l-4.5 3.5V16H4z",
  keyboard: "M3.5 7h17v10.5h-17zM7 10.5h.1M10.3 10.5h.1M13.6 10.5h.1M17 10.5h.1M8 14h8",
  sliders: "M4 8h9M17 8h3M4 16h3M11 16h9M15 6v4M9 14v4",
  offline: "M4 4l16 16M8.5 13.5a5 5 0 0 1 3-1.4M5 10a10 10 0 0 1 3.3-2.2M12 6.5c2.7 0 5.2 1.3 7 3.5M12 18h.1",
  chart: "M4.5 4.5v15h15M8 15l3.5-4.5 3 2.5L19 7",
  people: "M9 5.5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M3.5 18.5c.5-3 2.7-4.5 5.5-4.5s5 1.5 5.5 4.5M15.5 5.7a3 3 0 0 1 0 5.6M16.5 14.2c2.2.4 3.6 1.8 4 4.3",
  clock: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17M12 7.5V12l3 2",
  eye: "M3 12c2.2-4 5.2-6 9-6s6.8 2 9 6c-2.2 4-5.2 6-9 6s-6.8-2-9-6ZM12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
  more: "M6 12h.1M12 12h.1M18 12h.1",
  play: "M8 5.5v13l10.5-6.5z",
  stop: "M7 7h10v10H7z",
  link: "M10 14l4-4M8.5 11 6 13.5a3.2 3.2 0 0 0 4.5 4.5L13 15.5M15.5 13l2.5-2.5A3.2 3.2 0 0 0 13.5 6L11 8.5",
  key: "M8 9.5a4 4 0 1 0 0 8 4 4 0 0 0 0-8M11 11.5 19.5 4M16 7l2.5 2.5",
};

/** The icon of that name; decoration, so that screen readers skip it. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({
    viewBox: "0 0 24 24", width: "18", height: "18", fill: "none", stroke: "currentColor",
    "stroke-width": "1.75", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true",
  })) svg.setAttribute(key, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name] ?? ICONS.info);
  if (name === "brand") path.setAttribute("fill", "currentColor");
  svg.append(path);
  return svg;
}

let region = null;

/** Says something to screen readers, once they are done with what they are saying. */
export function announce(message) {
  if (!region) {
    region = h("div", { class: "out-of-sight", role: "status", "aria-live": "polite" });
    document.body.append(region);
  }
  region.textContent = "";
  setTimeout(() => { region.textContent = message; }, 60);
}

/** The function, called once when nothing has asked for it for `milliseconds`; `.cancel()` takes the call back. */
export function debounce(f, milliseconds) {
  let timer = 0;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...given), milliseconds);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

const sheets = new Map();

/** Loads a stylesheet once; resolves when it holds. `path` is below /static/css/. */
export function stylesheet(path) {
  if (!sheets.has(path)) {
    sheets.set(path, new Promise((resolve) => {
      const link = h("link", { rel: "stylesheet", href: `/static/css/${path}`, onload: resolve, onerror: () => { sheets.delete(path); link.remove(); resolve(); } });
      document.head.append(link);
    }));
  }
  return sheets.get(path);
}
