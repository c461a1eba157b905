// The button goes from the system's theme to the other one, back, and to the system's again.

export function startThemeButton() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.getElementById("theme")?.addEventListener("click", () => {
    const system = dark.matches ? "dark" : "light";
    const other = dark.matches ? "light" : "dark";
    const next = { [system]: "", [other]: system, "": other }[root.dataset.theme ?? ""];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      if (next) localStorage.setItem("headway-theme", next);
      else localStorage.removeItem("headway-theme");
    } catch {
      // It holds for this page then.
    }
  });
}
