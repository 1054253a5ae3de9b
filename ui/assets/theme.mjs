// The theme: dark, light, or the system's.
import { signal, effect } from "./lib.mjs";

const stored = () => { try { return localStorage.getItem("perdure.theme"); } catch { return null; } };

export const themes = ["auto", "light", "dark"];
export const theme = signal(stored() ?? "auto");

/** start applies the theme whenever it changes. */
export function start() {
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try { localStorage.setItem("perdure.theme", theme.value); } catch { /* then the theme is kept only until the tab closes */ }
  });
}

/** toggle switches between dark and light. */
export function toggle() {
  const dark = theme.value === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  theme.value = dark ? "light" : "dark";
}
