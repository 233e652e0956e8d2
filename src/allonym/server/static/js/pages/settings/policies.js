// Policies: what each does with each label; admins write their own in TOML.

import { get, put, remove } from "../../api.js";
import { actionButton } from "../../forms.js";
import { badge, button, busy, describeError, dialog, emptyState, field, h, input, skeleton, table, textarea, toast } from "../../ui.js";
import { may } from "../../session.js";
import { facts, loaded } from "../loading.js";
import { forgetChoices } from "../policychoice.js";
import { number } from "../format.js";
import { readable } from "../../families.js";

export const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]*$/;
export const WRONG_NAME = "Letters, digits, blanks, dots and dashes; a letter or digit first.";
const FIRST = 'extends = "default"\ndescription = "What this policy is for"\n\n[rules.PERSON]\noperator = "pseudonym"\n';

export function policiesTab() {
  const list = h("div", {});
  const load = () => {
    forgetChoices();
    return loaded(list, () => get("/v1/policies"), ({ policies }) => draw(policies, load));
  };
  load();
  return h("section", { class: "stack" },
    h("div", { class: "spread" }, h("div", { class: "stack tight" }, h("h2", {}, "Policies"), h("p", { class: "muted" }, "A policy decides what is detected and how it is replaced.")),
      h("div", { class: "row" }, may("anonymize") && h("a", { class: "button", href: "#/first-policy" }, "Six questions"), may("admin") && button("New policy", { kind: "primary", icon: "plus", onclick: () => edit(null, load) }))),
    list);
}

function draw(policies, reload) {
  return table({
    rows: policies,
    onpick: (policy) => look(policy, reload),
    empty: emptyState({ title: "No policies" }),
    columns: [
      { key: "name", label: "Name", render: (p) => p.name },
      { key: "description", label: "What it is for", render: (p) => h("span", { class: "muted" }, p.description || "–") },
      { key: "kind", label: "Kind", render: (p) => h("div", { class: "row" }, badge(p.preset ? "preset" : "yours", p.preset ? "" : "accent"), p.keyed && badge("needs a key", "info")) },
    ],
  });
}

function look(policy, reload) {
  const body = h("div", { class: "stack" }, skeleton(4));
  const path = `/v1/policies/${encodeURIComponent(policy.name)}`;
  const changeable = may("admin") && !policy.preset;
  const drop = actionButton("Remove", async () => {
    await remove(path);
    open.close();
    reload();
  }, { kind: "danger", icon: "trash", sure: { title: `Remove ${policy.name}?`, body: "Requests that name it are refused from now on." } });
  const change = button("Edit", { kind: "primary", icon: "edit", disabled: true });
  const open = dialog({ title: policy.name, body, wide: true, actions: changeable ? [drop, change] : [] });
  loaded(body, () => get(path), (found) => {
    change.disabled = false;
    change.addEventListener("click", () => { open.close(); edit(found, reload); });
    return [
      found.description && h("p", {}, found.description),
      facts([["Detectors", found.detectors.join(", ") || "–"], ["Labels looked for", Object.keys(found.rules).length]]),
      found.toml && h("details", { class: "more" }, h("summary", {}, "TOML"), h("pre", { class: "toml", tabindex: "0" }, found.toml)),
      table({
        rows: Object.entries(found.rules).map(([label, rule]) => ({ label, ...rule })),
        columns: [
          { key: "label", label: "Label", sort: (r) => readable(r.label), render: (r) => h("span", { title: r.label }, readable(r.label)) },
          { key: "operator", label: "Replaced by", sort: (r) => r.operator },
          { key: "threshold", label: "From confidence", number: true, sort: (r) => r.threshold, render: (r) => number(r.threshold, 2) },
        ],
      }),
    ];
  });
}

function edit(policy, reload) {
  const name = field({ label: "Name", control: input({ value: policy?.name ?? "", maxlength: 64, spellcheck: "false", disabled: Boolean(policy) }) });
  const text = textarea({ value: policy?.toml ?? FIRST, class: "mono toml-edit", spellcheck: "false", rows: 16, wrap: "off" });
  const toml = field({ label: "TOML", control: text, hint: "It may extend a preset. It reads no file and needs no path." });
  const save = button("Store", { kind: "primary", icon: "save" });
  const open = dialog({ title: policy ? `Edit ${policy.name}` : "New policy", body: h("div", { class: "stack" }, name, toml), actions: [save], wide: true });
  (policy ? text : name.control).focus();
  save.addEventListener("click", async () => {
    const called = name.control.value.trim();
    name.wrong(NAME.test(called) ? "" : WRONG_NAME);
    toml.wrong("");
    if (!NAME.test(called)) { name.control.focus(); return; }
    try {
      await busy(save, () => put(`/v1/policies/${encodeURIComponent(called)}`, { toml: text.value }));
      open.close();
      toast(`${called} is stored and in force.`);
      reload();
    } catch (error) {
      const wrong = error.status === 409 ? name : toml;
      wrong.wrong(describeError(error));
      if (wrong === toml) pointAt(text, describeError(error));
      wrong.control.focus();
    }
  });
}

/** Selects the line that a message speaks of: by its number, by the value that it quotes, or by the keys that it names. */
function pointAt(text, message) {
  const lines = text.value.split("\n");
  const byNumber = /line (\d+)/i.exec(message);
  let at = byNumber ? Number(byNumber[1]) - 1 : -1;
  const quoted = /'([^']+)'/.exec(message);
  if (at < 0 && quoted) at = lines.findIndex((line) => line.includes(quoted[1]));
  if (at < 0) {
    const names = [...message.matchAll(/[A-Za-z_][A-Za-z0-9_]*/g)].map((m) => m[0]).filter((n) => n.length > 2);
    const score = (line) => names.filter((n) => new RegExp(`\\b${n}\\b`).test(line)).length;
    const best = lines.map(score).reduce((a, b, i, all) => (b > all[a] ? i : a), 0);
    at = score(lines[best]) ? best : -1;
  }
  if (at < 0 || at >= lines.length) return;
  const start = lines.slice(0, at).reduce((n, line) => n + line.length + 1, 0);
  text.setSelectionRange(start, start + lines[at].length);
}
