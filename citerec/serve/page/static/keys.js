// Single-key shortcuts; `shortcuts.py` lists them for the help.

import { $ } from "./dom.js";
import { keepLooks, looks } from "./store.js";

const box = $("#shortcuts"),
  use = $("#use-shortcuts");

export function start(actions) {
  use.checked = looks.shortcuts;
  use.addEventListener("change", () => {
    looks.shortcuts = use.checked;
    keepLooks();
  });
  $("#help").addEventListener("click", () => box.showModal());
  box.addEventListener("click", event => {
    if (event.target === box) box.close();
  });
  document.addEventListener("keydown", event => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.isComposing || event.altKey) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      actions.find();
      return;
    }
    if (
      event.ctrlKey ||
      event.metaKey ||
      !looks.shortcuts ||
      document.querySelector("dialog[open]")
    )
      return;
    if (event.key === "Escape") {
      if (target.matches("textarea, input")) target.blur();
      return;
    }
    if (target.matches("textarea, select, input:not([type=checkbox]):not([type=radio])")) return;
    const action = event.key === "?" ? () => box.showModal() : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
