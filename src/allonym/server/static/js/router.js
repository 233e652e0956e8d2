// Pages by the hash of the address: `#/jobs?id=7` shows pages/jobs.js with {id: "7"}. A page's module is loaded when it
// is first asked for; it exports `async function show(root, params)`, which may return a function that cleans up.

import { ApiError, OFFLINE } from "./api.js";
import { errorState, fill, skeleton } from "./ui.js";

/** Every page. `permission`: who may open it; `nav`: its name in the navigation; `full`: it uses the whole window. */
export const PAGES = [
  { path: "protect", nav: "Protect", permission: "anonymize", full: true, title: "Protect", load: () => import("./pages/protect.js") },
  { path: "projects", nav: "Projects", permission: "review", title: "Projects", load: () => import("./pages/projects.js") },
  { path: "review", nav: "Review", permission: "review", title: "Review", load: () => import("./pages/review.js") },
  { path: "corpus", nav: "Corpus", permission: "jobs", title: "Corpus", load: () => import("./pages/corpus.js") },
  { path: "studies", nav: "Studies", permission: "studies", title: "Studies", load: () => import("./pages/studies.js") },
  { path: "evaluation", nav: "Evaluation", permission: "evaluate", title: "Evaluation", load: () => import("./pages/evaluation.js") },
  { path: "hardening", nav: "Hardening", permission: "jobs", title: "Hardening", load: () => import("./pages/hardening.js") },
  { path: "jobs", nav: "Jobs", permission: "jobs", title: "Jobs", load: () => import("./pages/jobs.js") },
  { path: "first-policy", permission: "anonymize", title: "A first policy", load: () => import("./pages/firstpolicy.js") },
  { path: "settings", title: "Settings", load: () => import("./pages/settings.js") },
  { path: "signin", open: true, title: "Sign in", load: () => import("./pages/signin.js") },
  { path: "setup", open: true, title: "Set up", load: () => import("./pages/setup.js") },
];

/** The page and its parameters that a hash stands for: `#/name/rest?key=value`; `rest` is params.rest. */
export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const params = Object.fromEntries(new URLSearchParams(query ?? ""));
  if (rest.length) params.rest = rest.map(decoded).join("/");
  return { page: PAGES.find((p) => p.path === name) ?? null, params };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody wrote a bare percent sign
  }
}

/** The hash of a page. */
export function route(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return `#/${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

/** Goes to a page. With `replace` the page that was left is not in the history. */
export function go(path, params = {}, { replace = false } = {}) {
  const hash = route(path, params);
  if (replace) location.replace(hash);
  else location.hash = hash;
}

let running = 0;
let cleanup = null;
let guard = null;

/** A page asks to be asked before it is left: `f()` gives whether it may be. It is forgotten with the page. */
export function beforeLeaving(f) {
  guard = f;
}

/** Whether the page may be left. */
export async function mayLeave() {
  return guard ? guard() : true;
}

/** Shows a page in `root`; the one before is cleaned up first. `again`: it could not be shown just now. */
export async function open(root, page, params, again = false) {
  running += 1;
  const mine = running;
  const before = cleanup;
  cleanup = null;
  guard = null;
  before?.();
  for (const over of document.querySelectorAll("dialog[open]")) over.close();
  fill(root, skeletonPage());
  try {
    const module = await page.load().catch(async () => {
      // a browser may remember of a module that it did not come; with a new document it asks for it again
      if (again && await answers()) location.reload();
      throw new ApiError(0, OFFLINE);
    });
    if (mine !== running) return;
    const place = document.createElement("div");
    place.className = page.full ? "page full" : page.open ? "" : "page";
    root.replaceChildren(place);
    const done = await module.show(place, params);
    if (mine === running) cleanup = done ?? null;
    else done?.();
  } catch (error) {
    if (mine === running) fill(root, errorState(error, () => open(root, page, params, true)));
  }
}

function answers() {
  return fetch(location.pathname, { cache: "no-store" }).then((response) => response.ok, () => false);
}

function skeletonPage() {
  const element = document.createElement("div");
  element.className = "page";
  element.append(skeleton(6));
  return element;
}
