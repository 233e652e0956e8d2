// Scopes of the vault: who owns them, and who else may use them.

import { get, post } from "../../api.js";
import { actionButton, form } from "../../forms.js";
import { emptyState, field, h, input, table } from "../../ui.js";
import { current, may } from "../../session.js";
import { loaded } from "../loading.js";

export function scopesTab() {
  const list = h("div", {});
  const load = () => loaded(list, () => get("/v1/scopes"), ({ scopes }) => draw(scopes, load));
  load();
  return h("section", { class: "stack" },
    h("div", { class: "stack tight" }, h("h2", {}, "Scopes"),
      h("p", { class: "muted" }, "Whoever first writes into a scope of the vault owns it. Nobody else restores from it, unless the owner or an admin lets them in.")),
    grantForm(load), list);
}

function draw(scopes, reload) {
  if (!scopes.length) return emptyState({ title: "No scopes", body: "A scope begins with the first text that is anonymised into it.", icon: "lock" });
  const users = (scope) => scope.users.map((user) => h("div", { class: "row" }, h("span", { class: "breaks" }, user),
    (may("admin") || scope.owner === current().name) && actionButton("Withdraw", () => post("/v1/scopes/withdrawals", { scope: scope.name, user }).finally(reload), {
      small: true, kind: "quiet", "aria-label": `Withdraw ${scope.name} from ${user}`,
    })));
  return table({
    rows: scopes,
    columns: [
      { key: "name", label: "Scope", render: (scope) => h("span", { class: "strong breaks" }, scope.name) },
      { key: "owner", label: "Owner", render: (scope) => scope.owner ?? h("span", { class: "muted" }, "nobody") },
      { key: "users", label: "Also used by", render: users },
    ],
  });
}

function grantForm(granted) {
  const scope = field({ label: "Scope", control: input({ maxlength: 200, spellcheck: "false" }) });
  const user = field({ label: "User", control: input({ maxlength: 64, spellcheck: "false", autocapitalize: "none" }), check: (value) => (value.trim() ? "" : "The name of a user is needed.") });
  return form({
    class: "add-term", fields: [user], submit: { label: "Let in", kind: "", icon: "plus" },
    send: async () => {
      await post("/v1/scopes/grants", { scope: scope.control.value, user: user.control.value.trim() });
      scope.control.value = user.control.value = "";
      granted();
    },
  }, scope, user);
}
