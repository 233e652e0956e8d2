// What a browser may remember: preferences, never text.

const KEPT = new Set(["theme", "policy"]);

/** The preference of that name, or null. */
export function preference(name) {
  try {
    return localStorage.getItem(`allonym.${name}`);
  } catch {
    return null;
  }
}

/** Remembers a preference; null forgets it. */
export function prefer(name, value) {
  if (!KEPT.has(name)) throw new Error(`no preference is called ${name}`);
  try {
    if (value === null) localStorage.removeItem(`allonym.${name}`);
    else localStorage.setItem(`allonym.${name}`, value);
  } catch {
    // A browser that keeps nothing forgets it with the page.
  }
}

/** "light", "dark" or "system". */
export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

/** Chooses the theme, from now on. */
export function chooseTheme(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  prefer("theme", name === "system" ? null : name);
}
