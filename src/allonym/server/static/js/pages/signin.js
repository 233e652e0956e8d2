// Signing in.

import { button, busy, field, h, icon, input, notice, said } from "../ui.js";
import { signIn } from "../session.js";

/** The sign-in form; `next` is the page to go to, `over` says that a session has ended. */
export async function show(root, { next, over }) {
  const name = field({ label: "Name", control: input({ name: "name", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" }) });
  const password = field({ label: "Password", control: input({ name: "password", type: "password", autocomplete: "current-password", required: true }) });
  const failed = h("div", { hidden: true });
  const submit = button("Sign in", { kind: "primary", type: "submit" });
  const form = h("form", { novalidate: true }, failed, name, password, submit);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    name.wrong(name.control.value.trim() ? "" : "Your name is needed.");
    password.wrong(password.control.value ? "" : "Your password is needed.");
    if (!name.control.value.trim() || !password.control.value) return;
    failed.hidden = true;
    try {
      await busy(submit, () => signIn(name.control.value.trim(), password.control.value));
      location.replace(`#/${next ?? "protect"}`);
    } catch (error) {
      failed.replaceChildren(notice(said(error), { kind: "danger" }));
      failed.hidden = false;
      password.control.select();
    }
  });
  root.append(h("div", { class: "alone" }, h("div", { class: "card" },
    h("div", { class: "brand" }, icon("brand"), "allonym"),
    h("h1", {}, "Sign in"),
    over && notice("Your session has ended. Sign in again to go on where you were."),
    form)));
  name.control.focus();
}
