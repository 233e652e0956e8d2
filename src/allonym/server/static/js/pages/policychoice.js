// A policy and what one piece of work changes of it.

import { get } from "../api.js";
import { button, checkbox, errorState, field, fill, h, icon, select, skeleton } from "../ui.js";
import { learn, readable } from "../families.js";

let known = null;

/** Policies, labels and operators, asked for once. */
export function choices() {
  known ??= Promise.all([get("/v1/policies"), get("/v1/labels"), get("/v1/operators")]).then(([p, l, o]) => {
    learn(l.labels);
    return { policies: p.policies, labels: l.labels, operators: o.operators };
  }).catch((error) => { known = null; throw error; });
  return known;
}

/** Forgets what was asked for, after a policy was changed. */
export function forgetChoices() {
  known = null;
}

/** A select of labels, those that stand for others first. */
export function labelSelect(labels, { value, any = "", small = false, ...rest } = {}) {
  const tops = labels.filter((one) => !one.parent).map((one) => ({ value: one.name, label: readable(one.name) }));
  const more = labels.filter((one) => one.parent).map((one) => ({ value: one.name, label: readable(one.name) }));
  for (const list of [tops, more]) list.sort((a, b) => a.label.localeCompare(b.label));
  const options = [...(any ? [{ value: "", label: any }] : []), { group: "Common", options: tops }, { group: "More exact", options: more }];
  return select(options, { class: small ? "small" : "", ...(value === undefined ? {} : { value }), ...rest });
}

/**
 * Controls for a policy: `.value` is a name, or {name, confidence?, operators?, off?}. Nothing is shown before the
 * server's choices are there; `.ready` is told then.
 */
export function policyChoice({ initial = "default", label = "Policy" } = {}) {
  const element = h("div", { class: "stack" });
  let read = () => initial;
  const draw = ({ policies, labels, operators }) => {
    const names = policies.map((p) => ({ value: p.name, label: p.name }));
    const chosen = select([
      { group: "Presets", options: names.filter((_, i) => policies[i].preset) },
      ...(policies.some((p) => !p.preset) ? [{ group: "Yours", options: names.filter((_, i) => !policies[i].preset) }] : []),
    ], { value: policies.some((p) => p.name === initial) ? initial : policies[0]?.name });
    const about = h("p", { class: "small muted" });
    const describe = () => { about.textContent = policies.find((p) => p.name === chosen.value)?.description ?? ""; };
    chosen.addEventListener("change", describe);
    describe();

    const own = checkbox("Set one confidence threshold for everything");
    const bar = h("input", { type: "range", class: "slider", min: "0", max: "1", step: "0.05", "aria-label": "Confidence", props: { value: 0.5 }, disabled: true });
    const barWords = h("output", { class: "numbers small nowrap" });
    const told = () => { barWords.textContent = own.control.checked ? Number(bar.value).toFixed(2) : "as the policy says"; bar.disabled = !own.control.checked; };
    own.control.addEventListener("change", told);
    bar.addEventListener("input", told);
    told();

    const all = select([{ value: "", label: "As the policy says" }, ...operators.filter((o) => o.name !== "llm").map((o) => ({ value: o.name, label: o.name }))]);
    const allField = field({ label: "One operator for everything", control: all, hint: "" });
    const off = new Set();
    const list = h("ul", { class: "chips" });
    const add = labelSelect(labels, { any: "Leave a label in…" });
    const drawOff = () => fill(list, [...off].map((name) => h("li", {}, h("span", { class: "badge" }, readable(name),
      h("button", { type: "button", class: "chip-drop", "aria-label": `Look for ${readable(name)} again`, onclick: () => { off.delete(name); drawOff(); } }, icon("close"))))));
    add.addEventListener("change", () => { if (add.value) off.add(add.value); add.value = ""; drawOff(); });
    fill(element,
      field({ label, control: chosen }), about,
      h("details", { class: "more" }, h("summary", {}, "Change it here"), h("div", { class: "stack" },
        h("div", { class: "stack tight" }, own, h("div", { class: "row still" }, h("div", { class: "grow" }, bar), barWords)),
        allField,
        field({ label: "Labels that may stay", control: add, hint: "They are not looked for at all." }), list)));
    read = () => {
      const changes = {};
      if (own.control.checked) changes.confidence = Number(bar.value);
      if (all.value) changes.operators = { "*": all.value };
      if (off.size) changes.off = [...off];
      return Object.keys(changes).length ? { name: chosen.value, ...changes } : chosen.value;
    };
  };
  const load = async () => {
    fill(element, skeleton(2));
    try {
      draw(await choices());
    } catch (error) {
      fill(element, errorState(error, load));
    }
  };
  element.ready = load();
  Object.defineProperty(element, "value", { get: () => read() });
  return element;
}

/** Files that were chosen, with a cross for each; `.files` are they. */
export function fileList({ onchange } = {}) {
  const element = h("ul", { class: "files" });
  let files = [];
  const draw = () => {
    element.hidden = !files.length;
    fill(element, files.map((file) => h("li", {}, icon("file"), h("span", { class: "cut grow" }, file.name),
      button("Remove", { small: true, kind: "quiet", "aria-label": `Remove ${file.name}`, onclick: () => element.set(files.filter((f) => f !== file)) }))));
  };
  element.set = (next) => { files = next; draw(); onchange?.(files); };
  element.add = (more) => element.set([...files, ...more.filter((m) => !files.some((f) => f.name === m.name && f.size === m.size))]);
  Object.defineProperty(element, "files", { get: () => files });
  draw();
  return element;
}
