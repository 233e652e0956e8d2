// The bar above every page.

import { fill, h, icon, iconButton, menu } from "./ui.js";
import { chooseTheme, theme } from "./preferences.js";
import { PAGES, go, mayLeave } from "./router.js";
import { current, may, signOut } from "./session.js";
import { mayGo } from "./protect/workspace.js";

const THEMES = [
  { name: "system", label: "As the system", icon: "screen" },
  { name: "light", label: "Light", icon: "sun" },
  { name: "dark", label: "Dark", icon: "moon" },
];

/** The pages that the signed-in person may open from the navigation. */
export function navigable() {
  return PAGES.filter((p) => p.nav && (!p.permission || may(p.permission)));
}

/** Builds the frame into `app`; returns {main, mark(path), refresh()}. */
export function frame(app) {
  const main = h("main", { id: "main", tabindex: "-1" });
  const skip = h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the page");
  const nav = h("nav", { class: "nav", "aria-label": "Pages" });
  const burger = iconButton("menu", "Pages", { class: "burger" });
  const look = iconButton("sun", "Theme");
  const who = h("button", { type: "button", class: "button quiet small who", "aria-haspopup": "menu" });
  const brand = h("a", { class: "brand", href: "#/protect" }, icon("brand"), "allonym");
  const bar = h("header", { class: "topbar" }, burger, brand, nav, h("div", { class: "tools" }, look, who));
  let marked = "";

  burger.addEventListener("click", () => menu(burger, navigable().map((p) => ({ label: p.nav, href: `#/${p.path}`, checked: p.path === marked }))));
  look.addEventListener("click", () => menu(look, THEMES.map((t) => ({ label: t.label, icon: t.icon, checked: theme() === t.name, run: () => chooseTheme(t.name) }))));
  who.addEventListener("click", () => {
    const session = current();
    menu(who, [
      { says: `${session.name}, ${session.role}` },
      "-",
      { label: "Settings", icon: "sliders", href: "#/settings" },
      { label: "Sign out", icon: "lock", run: leave },
    ]);
  });

  async function leave() {
    if (!(await mayLeave()) || !(await mayGo("Sign out?", "Sign out"))) return;
    await signOut().catch(() => {});
    go("signin");
  }

  const mark = (path) => {
    marked = path;
    for (const link of nav.children) {
      if (link.hash === `#/${path}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  };
  const refresh = () => {
    const session = current();
    bar.hidden = !session;
    skip.hidden = !session;
    fill(nav, session ? navigable().map((p) => h("a", { href: `#/${p.path}` }, p.nav)) : []);
    if (session) fill(who, icon("user"), h("span", { class: "cut" }, session.name));
    mark(marked);
  };
  fill(app, skip, bar, main);
  refresh();
  return { main, mark, refresh };
}
