// Components. Pages import from here: dom.js and overlay.js are passed on.

import { fill, h, icon, set, uid } from "./dom.js";

export { announce, debounce, fill, h, icon, nodes, set, stylesheet, uid } from "./dom.js";
export { confirm, dialog, menu, toast } from "./overlay.js";

/** A button. `kind`: "", "primary", "quiet", "danger"; `icon` is a name; any other attribute goes to the element. */
export function button(label, { kind = "", icon: name, small = false, class: extra = "", ...rest } = {}) {
  const classes = ["button", kind, small && "small", extra].filter(Boolean).join(" ");
  return h("button", { type: "button", class: classes, ...rest }, name && icon(name), label);
}

/** A button that shows only an icon; `label` is its name for screen readers and its tooltip. */
export function iconButton(name, label, { kind = "quiet", small = false, class: extra = "", ...rest } = {}) {
  const classes = ["button", "icon", kind, small && "small", extra].filter(Boolean).join(" ");
  return h("button", { type: "button", class: classes, "aria-label": label, title: label, ...rest }, icon(name));
}

/** Runs `work` while the button turns; what it throws is thrown on. */
export async function busy(element, work) {
  const shown = [...element.childNodes];
  element.disabled = true;
  element.classList.add("busy");
  element.replaceChildren(h("span", { class: "spinner", "aria-hidden": "true" }), ...shown.filter((n) => n.nodeName !== "svg"));
  try {
    return await work();
  } finally {
    element.disabled = false;
    element.classList.remove("busy");
    element.replaceChildren(...shown);
  }
}

/**
 * A labelled control with a hint and room for an error: `.control`, and `.wrong(message)` or `.wrong("")`.
 * `.check()` shows what `check(value)` says is wrong, and gives whether nothing is.
 */
export function field({ label, control, hint = "", check = () => "", class: extra = "" }) {
  control.id ||= uid("field");
  const told = hint && h("div", { class: "hint", id: uid("hint") }, hint);
  const wrong = h("div", { class: "wrong", id: uid("wrong"), hidden: true });
  const element = h("div", { class: `field ${extra}` }, h("label", { for: control.id }, label), control, told, wrong);
  if (told) control.setAttribute("aria-describedby", told.id);
  element.control = control;
  element.wrong = (message) => {
    wrong.textContent = message;
    wrong.hidden = !message;
    control.toggleAttribute("aria-invalid", Boolean(message));
    if (message) control.setAttribute("aria-invalid", "true");
    control.setAttribute("aria-describedby", [told && told.id, message && wrong.id].filter(Boolean).join(" "));
  };
  element.check = () => {
    element.wrong(check(control.value));
    return wrong.hidden;
  };
  return element;
}

/** A one-line input; `value` and every other attribute go to the element. */
export function input({ class: extra = "", value = "", type = "text", ...rest } = {}) {
  return h("input", { class: `input ${extra}`, type, autocomplete: "off", ...rest, props: { value } });
}

/** Several lines. */
export function textarea({ class: extra = "", value = "", ...rest } = {}) {
  return h("textarea", { class: `textarea ${extra}`, ...rest, props: { value } });
}

/** A select. Options: strings, or {value, label, disabled}, or {group, options}. */
export function select(options, { class: extra = "", value, ...rest } = {}) {
  const element = h("select", { class: `select ${extra}`, ...rest });
  element.options_ = (list) => {
    fill(element, list.map(option));
  };
  element.options_(options);
  if (value !== undefined) element.value = value;
  return element;
}

function option(one) {
  if (typeof one === "string") return h("option", { value: one }, one);
  if (one.group !== undefined) return h("optgroup", { label: one.group }, one.options.map(option));
  return h("option", { value: one.value, disabled: one.disabled }, one.label ?? one.value);
}

/** A checkbox with its words: a label, whose own `.control` is the box. */
export function checkbox(label, { checked = false, disabled = false, ...rest } = {}) {
  const control = h("input", { type: "checkbox", disabled, ...rest, props: { checked } });
  return h("label", { class: `check ${disabled ? "off" : ""}` }, control, h("span", {}, label));
}

/** One of a few, as joined buttons (radio buttons for screen readers). `.value` reads and sets it. */
export function segments({ label, options, value, onchange }) {
  const name = uid("segments");
  const made = options.map((one) => {
    const radio = h("input", { type: "radio", name, value: one.value, disabled: one.disabled, props: { checked: one.value === value } });
    radio.addEventListener("change", () => onchange?.(one.value));
    return h("label", { title: one.title }, radio, h("span", {}, one.label));
  });
  const element = h("div", { class: "segments", role: "radiogroup", "aria-label": label }, made);
  const radios = made.map((m) => m.firstChild);
  Object.defineProperty(element, "value", {
    get: () => radios.find((r) => r.checked)?.value,
    set: (next) => radios.forEach((r) => { r.checked = r.value === next; }),
  });
  element.disable = (which, off) => radios.filter((r) => r.value === which).forEach((r) => { r.disabled = off; });
  return element;
}

/** Tabs. items: {id, label, panel, badge?}. Arrow keys, Home and End move; `.select(id)` picks. */
export function tabs({ label, items, selected = items[0].id, onselect }) {
  const list = h("div", { class: "tablist", role: "tablist", "aria-label": label });
  const panels = h("div", {});
  const heads = new Map();
  for (const item of items) {
    const [tab, panel] = [uid("tab"), uid("panel")];
    const head = h("button", { type: "button", role: "tab", id: tab, "aria-controls": panel, onclick: () => element.select(item.id) }, item.label, item.badge);
    const body = h("div", { role: "tabpanel", class: "tabpanel", id: panel, "aria-labelledby": tab, tabindex: "0" }, item.panel);
    heads.set(item.id, { head, body });
    list.append(head);
    panels.append(body);
  }
  list.addEventListener("keydown", (event) => {
    const ids = [...heads.keys()];
    const at = ids.indexOf(element.selected);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ids.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = ids[(to + ids.length) % ids.length];
    element.select(next);
    heads.get(next).head.focus();
  });
  const element = h("div", { class: "tabs" }, list, panels);
  element.select = (id, quietly = false) => {
    element.selected = id;
    for (const [name, { head, body }] of heads) {
      head.setAttribute("aria-selected", String(name === id));
      head.tabIndex = name === id ? 0 : -1;
      body.hidden = name !== id;
    }
    if (!quietly) onselect?.(id);
  };
  element.select(selected, true);
  return element;
}

/**
 * A table. columns: {key, label, number?, render?(row), sort?(row)}; a column with `sort` gets a heading to press.
 * `onpick(row)` makes rows pickable by mouse and, through the first cell's button, by keyboard.
 */
export function table({ columns, rows, caption, onpick, empty = "Nothing here yet.", sorted }) {
  let order = sorted ?? null;
  const wrap = h("div", { class: "table-wrap" });
  // A table that is wider than the window is scrolled by keyboard too.
  const reach = new ResizeObserver(() => {
    if (wrap.scrollWidth > wrap.clientWidth) set(wrap, { tabindex: "0", role: "group", "aria-label": caption ?? "Table" });
    else for (const name of ["tabindex", "role", "aria-label"]) wrap.removeAttribute(name);
  });
  reach.observe(wrap);
  const draw = () => {
    const shown = [...rows];
    if (order) {
      const { sort } = columns.find((c) => c.key === order.key);
      const sign = order.descending ? -1 : 1;
      shown.sort((a, b) => sign * (sort(a) < sort(b) ? -1 : sort(a) > sort(b) ? 1 : 0));
    }
    const heads = columns.map((c) => {
      const is = order?.key === c.key;
      const press = () => {
        order = { key: c.key, descending: is ? !order.descending : Boolean(c.number) };
        draw();
      };
      return h("th", { scope: "col", class: c.number && "number", "aria-sort": is && (order.descending ? "descending" : "ascending") },
        c.sort ? h("button", { type: "button", onclick: press }, c.label, is && icon(order.descending ? "down" : "up")) : c.label);
    });
    const body = shown.map((row) => h("tr", { class: onpick && "pickable", onclick: onpick && ((e) => e.target.closest("a,button,input,select") || onpick(row)) },
      columns.map((c, i) => { // on a narrow screen a row is a card: css shows the label before each cell
        const inner = c.render ? c.render(row) : row[c.key];
        const press = onpick && i === 0 && h("button", { type: "button", class: "link", onclick: () => onpick(row) }, inner);
        return h("td", { class: c.number && "number", "data-label": typeof c.label === "string" && c.label }, press || inner);
      })));
    if (!shown.length) body.push(h("tr", {}, h("td", { colspan: columns.length, class: "muted" }, empty)));
    fill(wrap, h("table", { class: "table" }, caption && h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, body)));
  };
  wrap.update = (next) => {
    rows = next;
    draw();
  };
  draw();
  return wrap;
}

/** A small mark. kind: "", "good", "warn", "danger", "info", "accent". */
export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

/** A bar with its words; `.update({value, max, label})`. Without a value it only shows that something goes on. */
export function progress({ value, max = 1, label = "" } = {}) {
  const bar = h("progress", { "aria-label": label || "Progress" });
  const words = h("div", { class: "small muted numbers" });
  const element = h("div", { class: "progress" }, words, bar);
  element.update = (now) => {
    words.textContent = now.label ?? "";
    if (now.label) bar.setAttribute("aria-label", now.label);
    if (now.value === undefined || now.value === null) bar.removeAttribute("value");
    else {
      bar.max = now.max ?? 1;
      bar.value = now.value;
    }
  };
  element.update({ value, max, label });
  return element;
}

/** What stands where nothing is yet. */
export function emptyState({ title, body, icon: name = "file", actions = [] }) {
  return h("div", { class: "state" }, icon(name), h("h2", {}, title), body && h("p", {}, body), actions.length > 0 && h("div", { class: "row" }, actions));
}

/** What stands where something failed; `retry` is a function or nothing. */
export function errorState(error, retry) {
  return h("div", { class: "state error", role: "alert" }, icon("warn"), h("h2", {}, "That did not work"),
    h("p", {}, describeError(error)), retry && button("Try again", { onclick: retry }));
}

/** A line or two that belong to a page's part. kind: "info", "warn", "danger", "good". */
export function notice(text, { kind = "info", actions = [] } = {}) {
  const name = { info: "info", good: "check" }[kind] ?? "warn";
  return h("div", { class: `notice ${kind}`, role: kind === "danger" ? "alert" : null }, icon(name), h("div", { class: "grow" }, text), actions.length > 0 && h("div", { class: "row" }, actions));
}

/** Grey lines while something loads. */
export function skeleton(lines = 4) {
  return h("div", { class: "skeleton", role: "status", "aria-label": "Loading" }, Array.from({ length: lines }, () => h("i", {})));
}

/** An error as a sentence. */
export function describeError(error) {
  return error?.message ? String(error.message) : "Something unexpected happened.";
}

/** A heading with its line and actions, for the top of a page. */
export function pageHead(title, says, actions = []) {
  return h("div", { class: "page-head" }, h("div", { class: "stack tight" }, h("h1", {}, title), says && h("p", {}, says)), h("div", { class: "row" }, actions));
}

/** A place to drop files on, with a button that opens the file dialog. `onfiles` gets a list of File. */
export function dropZone({ label, accept, multiple = false, onfiles }) {
  const chooser = h("input", { type: "file", accept, multiple, hidden: true, "aria-label": label });
  chooser.addEventListener("change", () => {
    if (chooser.files.length) onfiles([...chooser.files]);
    chooser.value = "";
  });
  const zone = h("div", { class: "drop" }, icon("upload"), h("div", {}, label), button("Choose…", { onclick: () => chooser.click(), small: true }), chooser);
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) onfiles([...event.dataTransfer.files]);
  });
  return zone;
}

/** Hands a file to the person: a Blob, or text. */
export function download(name, content, type = "text/plain;charset=utf-8") {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
