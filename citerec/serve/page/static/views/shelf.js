// The shelf: the papers that were taken, with notes, and what becomes of them.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { live } from "../vendor/lit-html-3.3.3/directives/live.js";
import { repeat } from "../vendor/lit-html-3.3.3/directives/repeat.js";
import { MOST_NOTE, give, setMark } from "../search.js";
import { annotate, copyShelf, saveShelf, toZotero } from "../shelf.js";
import { keepLooks, looks, marks, now, update } from "../store.js";
import { clean, count, sentence } from "../text.js";
import { bibliographic, chooseFile, icon, named, onValue } from "./parts.js";

/** @type {Record<string, string>} */
const STYLES = {
  apa: "APA",
  ieee: "IEEE",
  vancouver: "Vancouver",
  chicago: "Chicago, author and date",
  "chicago-notes": "Chicago, notes and bibliography",
  mla: "MLA",
  nature: "Nature",
  harvard: "Harvard",
  acm: "ACM",
  ama: "AMA",
};

// the server saves into the Zotero of its own machine
const isHere = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);
const toOwn = html`<button type="button" id="to-zotero" @click=${toZotero}>Save to Zotero</button>`;

export function shelf() {
  const { taken } = marks();
  const isOpen = now.shelf ?? (taken.length > 0 && innerWidth >= 900);
  const open = html`<button type="button" id="open-shelf" @click=${chooseFile}
    >Open a shelf…</button>`;
  const hint = html`<p class="hint">Papers that you take (<kbd>t</kbd>) are kept here with your
    notes. They guide the next list, as those that you cite do.</p>`;
  return html`<section id="shelf" class="tray shelf${taken.length ? "" : " bare"}"
    aria-labelledby="shelf-toggle">
    <h2><button type="button" id="shelf-toggle" class="quiet" aria-expanded=${isOpen}
      aria-controls="shelf-body" @click=${() => update({ shelf: !isOpen })}
      >${icon("take")}Shelf <span class="count">${taken.length}</span></button></h2>
    <div id="shelf-body" class="shelf-body" ?hidden=${!isOpen}>
      ${taken.length ? nothing : hint}
      <ol>${repeat(taken, one => one.id, item)}</ol>
      ${taken.length ? giving(taken, open) : html`<div class="export">${open}</div>`}
    </div>
  </section>`;
}

const long = html`<p class="hint">It is kept whole here and by <i>Save the shelf</i>; .bib, .ris and
  .json take its first ${count(MOST_NOTE, "character")}.</p>`;

/** @type {(paper: Taken) => View} */
function item(paper) {
  const { id, title, year, reasons, note, coins } = paper;
  const name = clean(title) || "Untitled",
    fields = new URLSearchParams(coins);
  const authors = [...fields.getAll("rft.au"), ...fields.getAll("rft.aucorp")];
  return html`<li>
    ${
      paper.bibtex
        ? html`<span class="named" dir="auto">${name} <i class="hint">outside this corpus</i></span>`
        : named(paper)
    }
    <span class="year">${year ?? ""}</span>
    <button type="button" class="quiet" title="Take it off the shelf"
      aria-label="Take it off the shelf: ${name}" @click=${() => setMark(paper, null)}
      >${icon("close")}</button>
    ${authors.length ? html`<p class="by">${bibliographic({ authors })}</p>` : nothing}
    ${reasons.length ? html`<p class="hint" dir="auto">${sentence(reasons[0])}</p>` : nothing}
    <textarea rows="1" placeholder="Note" aria-label="Note on: ${name}"
      .value=${live(note)} @input=${onValue(text => annotate(id, text))}></textarea>
    ${note.length > MOST_NOTE ? long : nothing}
    <span class="Z3988" title=${coins}></span>
  </li>`;
}

/** @type {(taken: Taken[], open: View) => View} */
function giving(taken, open) {
  /** @type {(format: string, ending: string, name: string) => View} */
  const file = (format, ending, name) =>
    html`<button type="button" data-shelf=${format} aria-label="Save the shelf as ${name}"
      @click=${() => give(format, "save", taken)}>${ending}</button>`;
  const isOther = !Object.hasOwn(STYLES, looks.style);
  const choose = onValue(style => {
    looks.style = style
      .trim()
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-");
    keepLooks();
    update();
  });
  /** @type {(event: KeyboardEvent) => void} */
  const entered = event => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault(); // it would search
    choose(event);
  };
  const other = html`<input id="other-style" aria-label="Name of the style" maxlength="100"
    placeholder="such as lncs" pattern="[\\-a-z0-9]+" .value=${live(looks.style)}
    @change=${choose} @keydown=${entered} />`;
  return html`<div class="export" role="group" aria-label="References in a style">
      <label class="hush" for="style">Style of references</label>
      <select id="style" @change=${choose}>
        ${Object.entries(STYLES).map(
          ([name, text]) =>
            html`<option value=${name} .selected=${name === looks.style}>${text}</option>`,
        )}
        <option value="" .selected=${isOther}>Another style…</option>
      </select>
      ${isOther ? other : nothing}
      <button type="button" id="copy-shelf" @click=${copyShelf}
        >${icon("copy")}Copy for Word</button>
    </div>
    <div class="export" role="group" aria-label="Files">
      ${file("bibtex", ".bib", "BibTeX")} ${file("ris", ".ris", "RIS")}
      ${file("csl", ".json", "CSL-JSON")} ${file("doi", "DOIs", "DOIs, one a line")}
      ${file("html", ".html", "a page of references")}
      ${isHere ? toOwn : nothing}
      <button type="button" id="save-shelf" @click=${saveShelf}>Save the shelf</button> ${open}
    </div>`;
}
