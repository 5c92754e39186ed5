// The help: keyboard shortcuts.

import { html } from "../vendor/lit-html-3.3.3/lit-html.js";
import { keepLooks, looks, update } from "../store.js";
import { besides, icon, onTick } from "./parts.js";
import { toast } from "./toast.js";

const KEYS = [
  ["j k", "Next and previous paper, or marked sentence"],
  ["o Enter", "Open the paper: abstract, references, citing papers"],
  ["t", "Take it: put it on the shelf"],
  ["i", "I know this one: mark it as cited"],
  ["h", "Hide it"],
  ["u", "Undo the last mark"],
  ["x", "Select it for export"],
  ["c", "Copy the BibTeX of the selected papers"],
  ["n", "Search again with the marks and settings"],
  ["d", "Drafts: open, remove, begin one"],
  ["/", "Edit the draft"],
  ["Ctrl Enter", "Find papers"],
  ["?", "This help"],
  ["Esc", "Close what is open"],
];

/** @type {([keys, text]: string[]) => View} */
const shortcut = ([keys, text]) =>
  html`<div><dt>${keys.split(" ").map(key => html`<kbd>${key}</kbd> `)}</dt><dd>${text}</dd></div>`;

export function help() {
  const use = onTick(isOn => {
    looks.shortcuts = isOn;
    keepLooks();
  });
  return html`<dialog id="shortcuts" class="box" aria-labelledby="shortcuts-title"
    @click=${besides} @close=${() => update({ help: false })}>
    <form method="dialog">
      <button class="quiet close" aria-label="Close">${icon("close")}</button>
    </form>
    <h2 id="shortcuts-title">Keyboard</h2>
    <dl>${KEYS.map(shortcut)}</dl>
    <label class="check"
      ><input type="checkbox" id="use-shortcuts" .checked=${looks.shortcuts} @change=${use} />
      Use these single-key shortcuts</label>
    <p class="hint">citerec ${document.documentElement.dataset.version} ·
      <a href="openapi.json">API of this server</a></p>
    ${toast("help")}
  </dialog>`;
}
