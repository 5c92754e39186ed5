// The field that adds a paper which the author cites.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { live } from "../vendor/lit-html-3.3.3/directives/live.js";
import { add, keepOutside, keyed, lookUp, outside } from "../add.js";
import { now } from "../store.js";
import { clean } from "../text.js";
import { link, onValue, withdrawn } from "./parts.js";

export function adding() {
  const { text, found, active, keeping } = now.adding;
  const isOpen = Boolean(found?.length),
    other = outside();
  return html`<div class="field adding">
    <label for="add">Add a paper that you cite</label>
    <input id="add" role="combobox" aria-autocomplete="list" aria-controls="add-list"
      aria-expanded=${isOpen} aria-activedescendant=${isOpen ? `add-${active}` : nothing}
      autocomplete="off" placeholder="Words of its title, its DOI, or BibTeX" .value=${live(text)}
      @input=${onValue(lookUp)} @keydown=${keyed} />
    <ul id="add-list" role="listbox" aria-label="Papers of the corpus" ?hidden=${!isOpen}
      >${found?.map((paper, i) => option(paper, i, i === active))}</ul>
    <p class="hint" role="status">${found && !isOpen && !keeping ? "Not in this corpus. " : nothing}${
      other
        ? link("Keep it on the shelf all the same", () => keepOutside(other), "outside")
        : keeping
          ? "Putting it on the shelf…"
          : nothing
    }</p>
  </div>`;
}

/** @type {(paper: Brief, place: number, isActive: boolean) => View} */
const option = (paper, place, isActive) =>
  html`<li id="add-${place}" role="option" aria-selected=${isActive} dir="auto"
    @click=${() => add(paper)}>${clean(paper.title) || "Untitled"}${withdrawn(paper)}
    <span class="year">${paper.year ?? ""}</span></li>`;
