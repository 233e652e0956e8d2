// A one-time link: the first account of a server, or an invitation.

import { form } from "../forms.js";
import { field, h, icon, input, notice } from "../ui.js";
import { go } from "../router.js";
import { setUp } from "../session.js";

const LEAST = 12;

/** The form behind `#/setup?token=…`. The token leaves the address at once, so that no history keeps it. */
export async function show(root, { token }) {
  if (token) history.replaceState(null, "", "#/setup");
  const name = field({ label: "Name", hint: "How others see you: letters, digits, dots and hyphens.", control: input({ name: "name", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" }), check: (value) => (value.trim() ? "" : "A name is needed.") });
  const password = field({ label: "Password", hint: `At least ${LEAST} characters. A few words are easier to remember than signs.`, control: input({ name: "password", type: "password", autocomplete: "new-password", required: true }), check: (value) => (value.length >= LEAST ? "" : `At least ${LEAST} characters are needed.`) });
  const again = field({ label: "Password, once more", control: input({ name: "again", type: "password", autocomplete: "new-password", required: true }), check: (value) => (value === password.control.value ? "" : "The two passwords differ.") });
  const sheet = form({
    class: "", fields: [name, password, again], submit: { label: "Make my account" },
    send: async () => {
      await setUp(token, name.control.value.trim(), password.control.value);
      go("protect", {}, { replace: true });
    },
  }, name, password, again);
  root.append(h("div", { class: "alone" }, h("div", { class: "card" },
    h("div", { class: "brand" }, icon("brand"), "allonym"),
    h("h1", {}, "Welcome"),
    token ? sheet : notice("This link is not complete. Open the whole address that you were given.", { kind: "warn" }))));
  name.control.focus();
}
