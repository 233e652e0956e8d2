// API keys: for programs, with a part of what their owner may do; shown once.

import { get, post, remove } from "../../api.js";
import { actionButton, form } from "../../forms.js";
import { button, checkbox, dialog, emptyState, field, h, input, notice, select, table } from "../../ui.js";
import { current } from "../../session.js";
import { copyable, loaded } from "../loading.js";
import { when } from "../format.js";
import { allowed } from "./account.js";

export function keysTab() {
  const list = h("div", {});
  const load = () => loaded(list, () => get("/v1/keys"), ({ keys }) => draw(keys, load));
  const make = button("New key", { kind: "primary", icon: "plus", onclick: () => ask(load) });
  load();
  return h("section", { class: "stack" },
    h("div", { class: "spread" }, h("div", { class: "stack tight" }, h("h2", {}, "API keys"),
      h("p", { class: "muted" }, "Programs send a key as ", h("code", {}, "Authorization: Bearer alk_…"), ". A key is shown once and never again.")), make),
    list);
}

function draw(keys, reload) {
  if (!keys.length) return emptyState({ title: "No keys", body: "Make one for each program, with no more permissions than it needs.", icon: "key" });
  const others = keys.some((key) => key.owner !== current().name);
  const drop = (key) => h("div", { class: "row end" }, actionButton("Remove", async () => {
    await remove(`/v1/keys/${encodeURIComponent(key.name)}`, { query: { owner: key.owner === current().name ? "" : key.owner } });
    reload();
  }, {
    small: true, kind: "quiet", icon: "trash", "aria-label": `Remove the key ${key.name}`,
    sure: { title: `Remove ${key.name}?`, body: "Programs that use it are refused from now on." },
  }));
  return table({
    rows: keys,
    columns: [
      { key: "name", label: "Name", render: (key) => h("span", { class: "strong breaks" }, key.name) },
      others && { key: "owner", label: "Owner" },
      { key: "permissions", label: "May", render: (key) => key.permissions.map(allowed).join(", ") },
      { key: "expires", label: "Until", render: (key) => when(key.expires, "removed") },
      { key: "used", label: "Last used", render: (key) => when(key.used, "never") },
      { key: "drop", label: h("span", { class: "out-of-sight" }, "Actions"), render: drop },
    ].filter(Boolean),
  });
}

function ask(reload) {
  const name = field({ label: "Name", control: input({ maxlength: 64, spellcheck: "false" }), hint: "What it is for, for example: nightly import.", check: (value) => (value.trim() ? "" : "A name is needed.") });
  const days = field({ label: "Works for", control: select([{ value: "30", label: "30 days" }, { value: "90", label: "90 days" }, { value: "365", label: "a year" }, { value: "", label: "until it is removed" }], { value: "90" }) });
  const boxes = current().permissions.map((permission) => checkbox(allowed(permission), { value: permission, checked: permission === "anonymize" || permission === "detect" }));
  const sheet = form({
    fields: [name], submit: { label: "Make the key" }, end: true,
    send: async () => {
      const permissions = boxes.map((box) => box.control).filter((box) => box.checked).map((box) => box.value);
      if (!permissions.length) throw new Error("A key needs at least one permission.");
      const made = await post("/v1/keys", { name: name.control.value.trim(), permissions, days: days.control.value ? Number(days.control.value) : null });
      open.close();
      reload();
      dialog({
        title: `Key ${made.name}`,
        body: h("div", { class: "stack" }, notice("Copy it now: it cannot be shown again.", { kind: "warn" }), copyable(made.key)),
      }).hold();
    },
  }, name, days, h("fieldset", { class: "stack tight" }, h("legend", { class: "label" }, "It may"), h("div", { class: "boxes" }, boxes)));
  const open = dialog({ title: "New API key", body: sheet });
  name.control.focus();
}
