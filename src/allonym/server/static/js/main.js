// Starts the workbench: who is signed in, which page is asked for.

import { onSignedOut } from "./api.js";
import { announce, errorState, fill } from "./ui.js";
import { go, mayLeave, open, parse, route } from "./router.js";
import { current, forget, load, may } from "./session.js";
import { frame, navigable } from "./shell.js";

const app = document.getElementById("app");
const shell = frame(app);
let shown = null;

/** Where somebody who may not open a page, or named none, lands. */
function home() {
  return navigable()[0]?.path ?? "settings";
}

async function navigate() {
  if (shown === location.hash) return;
  if (shown !== null && current() && !(await mayLeave())) {
    history.replaceState(null, "", shown || "#/");
    return;
  }
  const { page, params } = parse(location.hash);
  if (!current() && !page?.open) {
    go("signin", page ? { next: location.hash.slice(2) } : {}, { replace: true });
    return;
  }
  if (!page || (page.permission && !may(page.permission)) || (current() && page.path === "signin")) {
    go(home(), {}, { replace: true });
    return;
  }
  shown = location.hash;
  document.title = `${page.title} – allonym`;
  shell.refresh();
  shell.mark(page.path);
  await open(shell.main, page, params);
  announce(page.title);
}

onSignedOut(() => {
  if (!current()) return;
  const back = location.hash.slice(2);
  forget();
  shown = null;
  location.replace(route("signin", { next: back, over: "1" }));
});

async function start() {
  try {
    await load();
  } catch (error) {
    fill(shell.main, errorState(error, start));
    return;
  }
  window.addEventListener("hashchange", navigate);
  await navigate();
}

start();
