// One's own account: the theme, the password.

import { put } from "../../api.js";
import { form } from "../../forms.js";
import { field, h, input, segments, toast } from "../../ui.js";
import { chooseTheme, theme } from "../../preferences.js";
import { current } from "../../session.js";
import { facts } from "../loading.js";

const LEAST = 12;
const WORDS = {
  detect: "find what identifies", anonymize: "anonymise texts", evaluate: "evaluate", jobs: "run jobs", review: "review documents",
  restore: "restore originals", adjudicate: "settle reviews", studies: "run intruder studies", metrics: "read metrics", admin: "administer",
};

/** What a permission lets one do, in words. */
export function allowed(permission) {
  return WORDS[permission] ?? permission;
}

export function accountTab() {
  const { name, role, permissions } = current();
  const look = segments({
    label: "Theme", value: theme(), onchange: chooseTheme,
    options: [{ value: "system", label: "As the system" }, { value: "light", label: "Light" }, { value: "dark", label: "Dark" }],
  });
  return [
    h("section", { class: "card stack" }, h("h2", {}, "You"),
      facts([["Name", name], ["Role", role]]), h("p", {}, h("span", { class: "muted" }, "You may "), `${permissions.map(allowed).join(", ")}.`)),
    h("section", { class: "card stack" }, h("h2", {}, "Appearance"), h("div", {}, look)),
    h("section", { class: "card stack" }, h("h2", {}, "Password"), passwordForm()),
  ];
}

function passwordForm() {
  const old = field({ label: "Password now", control: input({ type: "password", autocomplete: "current-password" }), check: (value) => (value ? "" : "Your password is needed.") });
  const next = field({ label: "New password", control: input({ type: "password", autocomplete: "new-password" }), hint: `At least ${LEAST} characters. You sign in again afterwards.`, check: (value) => ([...value].length >= LEAST ? "" : `${LEAST} characters at least are needed.`) });
  const again = field({ label: "New password again", control: input({ type: "password", autocomplete: "new-password" }), check: (value) => (value === next.control.value ? "" : "The two are not the same.") });
  const user = h("input", { type: "text", autocomplete: "username", hidden: true, "aria-label": "Name", props: { value: current().name } });
  return form({
    class: "stack narrow", fields: [old, next, again], submit: { label: "Change password", kind: "" },
    send: async () => {
      await put("/v1/session/password", { old: old.control.value, new: next.control.value }, { quiet: true });
      toast("The password is changed. Please sign in again.");
      location.reload();
    },
  }, user, old, next, again);
}
