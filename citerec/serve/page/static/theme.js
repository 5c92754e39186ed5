// Light, dark, or as the system.

import { $ } from "./dom.js";
import { keep, state } from "./store.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };
export function theme() {
  document.documentElement.dataset.theme = state.theme;
  $('meta[name="color-scheme"]').content = state.theme === "auto" ? "light dark" : state.theme;
  $("#theme").setAttribute("aria-label", `Colours: ${THEMES[state.theme]}`);
  $("#theme").title = `Colours: ${THEMES[state.theme]}`;
}

export function start() {
  $("#theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    state.theme = names[(names.indexOf(state.theme) + 1) % names.length];
    theme();
    keep();
  });
}
