// Settings: one's own account and keys; for admins users, policies and the audit log; the organisation's lists.

import { fill, h, pageHead, stylesheet, tabs } from "../ui.js";
import { current, may } from "../session.js";
import { accountTab } from "./settings/account.js";
import { auditTab } from "./settings/audit.js";
import { keysTab } from "./settings/keys.js";
import { listsTab } from "./settings/lists.js";
import { policiesTab } from "./settings/policies.js";
import { scopesTab } from "./settings/scopes.js";
import { usersTab } from "./settings/users.js";

const TABS = [
  { id: "account", label: "Account", make: accountTab },
  { id: "keys", label: "API keys", make: keysTab },
  { id: "users", label: "Users", make: usersTab, permission: "admin" },
  { id: "scopes", label: "Scopes", make: scopesTab, permission: "anonymize" },
  { id: "policies", label: "Policies", make: policiesTab },
  { id: "lists", label: "Lists", make: listsTab, permission: "review" },
  { id: "audit", label: "Audit log", make: auditTab, permission: "admin" },
];

export async function show(root, { rest }) {
  await stylesheet("pages/pages.css");
  const shown = TABS.filter((tab) => !tab.permission || may(tab.permission));
  const panels = new Map(shown.map((tab) => [tab.id, h("div", { class: "stack wide" })]));
  const drawn = new Set();
  const draw = (id) => {
    if (drawn.has(id)) return;
    drawn.add(id);
    fill(panels.get(id), TABS.find((tab) => tab.id === id).make());
  };
  const selected = shown.some((tab) => tab.id === rest) ? rest : shown[0].id;
  const bar = tabs({
    label: "Settings",
    items: shown.map((tab) => ({ id: tab.id, label: tab.label, panel: panels.get(tab.id) })),
    selected,
    onselect: (id) => { history.replaceState(null, "", `#/settings/${id}`); draw(id); },
  });
  draw(selected);
  root.append(pageHead("Settings", `Signed in as ${current().name}, ${current().role}.`), bar);
}
