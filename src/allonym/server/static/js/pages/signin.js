// Signing in.

import { get } from "../api.js";
import { form } from "../forms.js";
import { describeError, field, h, icon, input, notice } from "../ui.js";
import { signIn, signInByLink } from "../session.js";

const REFUSALS = {
  NoRole: "Your account has no role here. Ask an admin.",
  NotActive: "Your account is not active. Ask an admin.",
  Taken: "Another account here has your name. Ask an admin.",
  IssuerFailed: "Single sign-on does not answer. Try again later.",
};

/** The sign-in form; `next` is the page to go to, `over` says that a session has ended, `token` is that of a link,
 * `refused` says why single sign-on did not let them in. */
export async function show(root, { next, over, token, refused }) {
  const ways = await get("/v1/session/ways", { quiet: true });
  if (ways.local) return showLink(root, token);
  const name = field({ label: "Name", control: input({ name: "name", autocomplete: "username", required: true, autocapitalize: "none", spellcheck: "false" }), check: (value) => (value.trim() ? "" : "Your name is needed.") });
  const password = field({ label: "Password", control: input({ name: "password", type: "password", autocomplete: "current-password", required: true }), check: (value) => (value ? "" : "Your password is needed.") });
  const sheet = form({
    class: "", fields: [name, password], submit: { label: "Sign in" },
    send: async () => {
      await signIn(name.control.value.trim(), password.control.value);
      location.replace(`#/${next ?? "protect"}`);
    },
    refuse: (error) => {
      sheet.fail(error);
      password.control.select();
    },
  }, name, password);
  root.append(h("div", { class: "alone" }, h("div", { class: "card" },
    h("div", { class: "brand" }, icon("brand"), "allonym"),
    h("h1", {}, "Sign in"),
    over && notice("Your session has ended. Sign in again to go on where you were."),
    refused && notice(REFUSALS[refused] ?? "Single sign-on did not work. Try again.", { kind: "danger" }),
    ways.issuer && h("a", { class: "button primary", href: "/v1/oidc/start" }, `Sign in with ${ways.issuer}`),
    sheet)));
  name.control.focus();
}

/** A local server has no passwords: whoever runs it has the link. */
async function showLink(root, token) {
  let says = "Open the link that allonym serve --local printed where you started it.";
  let kind = "";
  if (token) {
    try {
      await signInByLink(token);
      location.replace("#/");
      return;
    } catch (error) {
      [says, kind] = [`${describeError(error)} ${says}`, "danger"];
    }
  }
  root.append(h("div", { class: "alone" }, h("div", { class: "card" },
    h("div", { class: "brand" }, icon("brand"), "allonym"), h("h1", {}, "Sign in"), notice(says, { kind }))));
}
