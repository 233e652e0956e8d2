// A one-time link: the first account of a server, or an invitation.

import { button, busy, field, h, icon, input, notice, said } from "../ui.js";
import { go } from "../router.js";
import { setUp } from "../session.js";

const LEAST = 12;

/** The form behind `#/setup?token=…`. The token leaves the address at once, so that no history keeps it. */
export async function show(root, { token }) {
  if (token) history.replaceState(null, "", "#/setup");
  const name = field({ label: "Name", hint: "How others see you: letters, digits, dots and hyphens.", control: input({ name: "name", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" }) });
  const password = field({ label: "Password", hint: `At least ${LEAST} characters. A few words are easier to remember than signs.`, control: input({ name: "password", type: "password", autocomplete: "new-password", required: true }) });
  const again = field({ label: "Password, once more", control: input({ name: "again", type: "password", autocomplete: "new-password", required: true }) });
  const failed = h("div", { hidden: true });
  const submit = button("Make my account", { kind: "primary", type: "submit" });
  const form = h("form", { novalidate: true }, failed, name, password, again, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [who, secret] = [name.control.value.trim(), password.control.value];
    name.wrong(who ? "" : "A name is needed.");
    password.wrong(secret.length >= LEAST ? "" : `At least ${LEAST} characters are needed.`);
    again.wrong(again.control.value === secret ? "" : "The two passwords differ.");
    const wrong = form.querySelector("[aria-invalid]");
    if (wrong) {
      wrong.focus();
      return;
    }
    failed.hidden = true;
    try {
      await busy(submit, () => setUp(token, who, secret));
      go("protect", {}, { replace: true });
    } catch (error) {
      failed.replaceChildren(notice(said(error), { kind: "danger" }));
      failed.hidden = false;
    }
  });
  root.append(h("div", { class: "alone" }, h("div", { class: "card" },
    h("div", { class: "brand" }, icon("brand"), "allonym"),
    h("h1", {}, "Welcome"),
    token ? form : notice("This link is not complete. Open the whole address that you were given.", { kind: "warn" }))));
  name.control.focus();
}
