// Users and roles, and one-time links for new ones.

import { get, patch, post, remove } from "../../api.js";
import { actionButton, showError } from "../../forms.js";
import { badge, button, dialog, h, notice, segments, select, table } from "../../ui.js";
import { current } from "../../session.js";
import { copyable, loaded } from "../loading.js";
import { when } from "../format.js";

const ROLES = [
  { value: "annotator", label: "Annotator", says: "anonymises and reviews, but gets no originals back" },
  { value: "reviewer", label: "Reviewer", says: "also restores, settles reviews and runs studies" },
  { value: "admin", label: "Admin", says: "may do everything, and change the settings" },
];

export function usersTab() {
  const list = h("div", {});
  const load = () => loaded(list, () => get("/v1/users"), ({ users }) => draw(users, load));
  const invite = button("Invite", { kind: "primary", icon: "link", onclick: ask });
  load();
  return h("section", { class: "stack" },
    h("div", { class: "spread" }, h("div", { class: "stack tight" }, h("h2", {}, "Users"), h("p", { class: "muted" }, "Each person makes their own account by a link that works once.")), invite), list);
}

function draw(users, reload) {
  const path = (user) => `/v1/users/${encodeURIComponent(user.name)}`;
  const change = (user, values) => patch(path(user), values).finally(reload);
  const role = (user) => {
    const pick = select(ROLES.map(({ value, label }) => ({ value, label })), { value: user.role, class: "small", "aria-label": `Role of ${user.name}`, disabled: user.name === current().name });
    pick.addEventListener("change", () => change(user, { role: pick.value }).catch(showError));
    return pick;
  };
  const actions = (user) => {
    if (user.name === current().name) return h("div", { class: "row end muted small" }, "you");
    return h("div", { class: "row end" },
      actionButton(user.active ? "Deactivate" : "Let in again", () => change(user, { active: !user.active }), { small: true, kind: "quiet", icon: "lock" }),
      actionButton("Remove", () => remove(path(user)).finally(reload), {
        small: true, kind: "quiet", icon: "trash", "aria-label": `Remove ${user.name}`,
        sure: { title: `Remove ${user.name}?`, body: "Their sessions and keys end at once. Their actions stay in the audit log." },
      }));
  };
  return table({
    rows: users,
    columns: [
      { key: "name", label: "Name", sort: (u) => u.name.toLowerCase(), render: (u) => h("span", { class: "strong breaks" }, u.name) },
      { key: "role", label: "Role", render: role },
      { key: "active", label: "State", render: (u) => (u.active ? badge("active", "good") : badge("shut out", "warn")) },
      { key: "created", label: "Since", sort: (u) => u.created, render: (u) => when(u.created) },
      { key: "actions", label: h("span", { class: "out-of-sight" }, "Actions"), render: actions },
    ],
    sorted: { key: "name", descending: false },
  });
}

function ask() {
  const says = h("p", { class: "muted small" });
  const tell = (value) => { says.textContent = `Such a person ${ROLES.find((r) => r.value === value).says}.`; };
  const role = segments({ label: "Role", options: ROLES, value: "annotator", onchange: tell });
  tell("annotator");
  const body = h("div", { class: "stack" }, h("div", {}, role), says, h("div", {}, actionButton("Make a link", async () => {
    const made = await post("/v1/invitations", { role: role.value });
    open.hold();
    body.replaceChildren(notice(`For one ${made.role}. It works once, until it expires; send it over a channel you trust.`), copyable(made.link), h("p", { class: "small muted" }, "Expires ", when(made.expires)));
  }, { kind: "primary" })));
  const open = dialog({ title: "Invite somebody", body });
}
