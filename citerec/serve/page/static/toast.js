// The last thing that happened, with its undo.

import { $ } from "./browser.js";
import { now, update } from "./store.js";

let timer = 0;

/** @type {(text: string, action?: Act) => void} */
export function toast(text, action) {
  update({ toast: { text, action, isShown: true } });
  const hide = () => {
    if ($("#toast").matches(":hover, :focus-within")) timer = setTimeout(hide, 1000);
    else hideToast();
  };
  clearTimeout(timer);
  timer = setTimeout(hide, action ? 7000 : 3500);
}

export const hideToast = () => now.toast && update({ toast: { ...now.toast, isShown: false } });
