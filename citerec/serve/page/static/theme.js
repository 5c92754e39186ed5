// Light, dark, or as the system.

import { $ } from "./dom.js";
import { keepLooks, looks } from "./store.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };
export function theme() {
  document.documentElement.dataset.theme = looks.theme;
  $('meta[name="color-scheme"]').content = looks.theme === "auto" ? "light dark" : looks.theme;
  $("#theme").setAttribute("aria-label", `Colours: ${THEMES[looks.theme]}`);
  $("#theme").title = `Colours: ${THEMES[looks.theme]}`;
}

export function start() {
  $("#theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    looks.theme = names[(names.indexOf(looks.theme) + 1) % names.length];
    theme();
    keepLooks();
  });
}
