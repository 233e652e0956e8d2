// Runs before anything is drawn, so that a chosen theme does not flash.
try {
  const theme = localStorage.getItem("allonym.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // A browser that keeps nothing gets the system's theme.
}
