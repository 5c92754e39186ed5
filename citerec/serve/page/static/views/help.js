// The help: what the page shows, and keyboard shortcuts.

import { html } from "../vendor/lit-html-3.3.3/lit-html.js";
import { keepLooks, looks, update } from "../store.js";
import { besides, icon, onTick } from "./parts.js";
import { toast } from "./toast.js";

const WORDS = [
  ["Corpus", "The papers that this server searches. Nothing outside of it is found."],
  [
    "List",
    "The papers that your draft may need, best first. What you take or hide changes the next list.",
  ],
  [
    "Probability",
    "That you cite the paper: of a hundred papers with 40%, about forty are cited by drafts like " +
      "yours. It also depends on the papers that you took or cite. Low numbers all the way down: " +
      "the corpus has little on your subject.",
  ],
  [
    "Shelf",
    "The papers that you took, with your notes. It belongs to the draft, and can be saved for a " +
      "reference manager or copied into Word.",
  ],
  [
    "Each sentence",
    "Underlines the sentences of your text that most likely lack a reference, with papers for each.",
  ],
];
const KEYS = [
  ["j k", "Next and previous paper, or sentence"],
  ["o Enter", "Open the paper: abstract, references, citing papers"],
  ["t", "Take it: put it on the shelf"],
  ["i", "You cite it already: it guides the next list, and is not listed again"],
  ["h", "Hide it"],
  ["u", "Undo the last of these"],
  ["x", "Select it for export"],
  ["c", "Copy the BibTeX of the selected papers"],
  ["n", "Search again with your changes"],
  ["d", "Drafts: open, remove, begin one"],
  ["/", "Edit the draft"],
  ["Ctrl Enter", "Find papers"],
  ["?", "This help"],
  ["Esc", "Close what is open"],
];

/** @type {([word, text]: string[]) => View} */
const explained = ([word, text]) => html`<div><dt>${word}</dt><dd>${text}</dd></div>`;

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
    <h2 id="shortcuts-title" tabindex="-1">Help</h2>
    <dl>${WORDS.map(explained)}</dl>
    <h3>Keys</h3>
    <dl>${KEYS.map(shortcut)}</dl>
    <label class="check"
      ><input type="checkbox" id="use-shortcuts" .checked=${looks.shortcuts} @change=${use} />
      Use these single-key shortcuts</label>
    <p class="hint">citerec ${document.documentElement.dataset.version} ·
      <a href="openapi.json">API of this server</a></p>
    ${toast("help")}
  </dialog>`;
}
