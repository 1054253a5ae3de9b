// Dark, light, or as the system has it.
import { signal, effect } from "./lib.mjs";

const stored = () => { try { return localStorage.getItem("perdure.theme"); } catch { return null; } };

export const themes = ["auto", "light", "dark"];
export const theme = signal(stored() ?? "auto");

/** start applies the theme whenever it changes. */
export function start() {
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try { localStorage.setItem("perdure.theme", theme.value); } catch { /* then it lasts as long as the tab */ }
  });
}

/** toggle goes to the opposite of what is shown. */
export function toggle() {
  const dark = theme.value === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "dark";
  theme.value = dark ? "light" : "dark";
}
