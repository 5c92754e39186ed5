// Small views that others are made of.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { $ } from "../browser.js";
import { paperLink } from "../store.js";
import { author, clean, count } from "../text.js";
import { openPaper } from "../travel.js";

/** @type {(address: string) => string} */
export const picture = address => new URL(`../${address}`, import.meta.url).href;

/** @type {(name: string) => View} */
export const icon = name =>
  html`<svg class="icon" aria-hidden="true"><use href=${picture(`icons.svg#${name}`)}></use></svg>`;

// Parts of a text, of which those at odd places are marked.
/** @type {(parts: string[]) => View} */
export const marked = parts =>
  parts.map((part, i) => (i % 2 ? html`<mark>${clean(part)}</mark>` : clean(part)));

/** @type {(row: Partial<Row>) => string} */
function cited({ times_cited, citations }) {
  const here = citations ? `${count(citations, "time")} here` : "";
  const total = Number(times_cited);
  return total ? `${count(total, "time")}${here ? `, ${here}` : ""}` : here;
}

/** @type {(href: string, text: View, stop?: number) => View} */
const out = (href, text, stop) =>
  html`<a class="elsewhere" href=${href} target="_blank" rel="noopener noreferrer"
    tabindex=${stop ?? nothing}>${text}${icon("out")}</a>`;

// Links to the paper elsewhere: by its DOI, and where the corpus has an address.
/** @type {(row: Row, stop?: number) => View[]} */
export function links({ doi, url }, stop) {
  const bare = clean(doi).replace(/^https?:\/\/(dx\.)?doi\.org\//i, "");
  const at = `https://doi.org/${bare.split("/").map(encodeURIComponent).join("/")}`;
  const isElsewhere = /^https?:\/\//i.test(url) && !/^https?:\/\/(dx\.)?doi\.org\//i.test(url);
  return [
    /^10\./.test(bare) && out(at, stop === undefined ? `doi:${bare}` : "DOI", stop),
    isElsewhere && out(url, /\.pdf$/i.test(url) ? "PDF" : "Web page", stop),
  ].filter(Boolean);
}

// Says that a paper was retracted.
/** @type {(paper: { retracted?: boolean }) => View} */
export const withdrawn = ({ retracted }) =>
  retracted ? html` <b class="retracted">retracted</b>` : nothing;

// Authors, venue, year and citations of a paper.
/** @type {(row: Partial<Row> & { authors: string[] }, most?: number) => View} */
export function bibliographic(row, most = 4) {
  const names = row.authors.map(author),
    isLong = names.length > most;
  const people = isLong
    ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} others`
    : names.join(", ");
  const all = isLong ? names.join(", ") : nothing;
  return [
    row.retracted && withdrawn(row),
    people && html`<span class="people" dir="auto" title=${all}>${people}</span>`,
    row.venue && html`<span class="venue" dir="auto">${clean(row.venue)}</span>`,
    row.year && html`<span class="year">${row.year}</span>`,
    cited(row) && html`<span class="cites">cited ${cited(row)}</span>`,
  ].filter(Boolean);
}

// A link to a paper of the corpus; it opens here, and as a page of its own in a new tab.
/** @type {(paper: Named) => View} */
export function named(paper) {
  const { id, title } = paper;
  /** @type {(event: MouseEvent) => void} */
  const open = event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPaper(id);
  };
  return html`<a class="named" dir="auto" href=${paperLink(id)} @click=${open}
    >${clean(title) || "Untitled"}</a
  >${withdrawn(paper)}`;
}

// Listeners of a field.
/** @type {(run: (value: string) => void) => (event: any) => void} */
export const onValue = run => event => run(event.target.value);
/** @type {(run: (isOn: boolean) => void) => (event: any) => void} */
export const onTick = run => event => run(event.target.checked);

export const chooseFile = () => $("#file").click();

// A button that looks like a link.
/** @type {(name: string, run: () => void, id?: string) => View} */
export const link = (name, run, id) =>
  html`<button type="button" class="link" id=${id ?? nothing} @click=${() => run()}>
    ${name}
  </button>`;

const LONG = 100; // characters of a message

// A message of the server. Of a long one its first clause is shown, and the rest is there to open:
// a telephone has little room.
/** @type {(text: string) => View} */
export function fault(text) {
  const [first, ...rest] = clean(text).split("; ");
  if (text.length <= LONG || !rest.length)
    return html`<p class="fault" role="alert" dir="auto">${clean(text)}</p>`;
  return html`<div class="fault" role="alert"><details>
      <summary dir="auto">${first}…</summary>
      <p dir="auto">${rest.join("; ")}</p>
    </details></div>`;
}

/** @type {Set<string>} */
const shown = new Set();

// Shows a dialog while `isOpen`. One that the browser just closed is not shown again.
/** @type {(selector: string, isOpen: boolean) => void} */
export function modal(selector, isOpen) {
  const dialog = /** @type {HTMLDialogElement} */ (document.querySelector(selector));
  if (isOpen && !shown.has(selector)) dialog.showModal();
  if (!isOpen && dialog.open) dialog.close();
  if (isOpen) shown.add(selector);
  else shown.delete(selector);
}

// Closes a dialog by a click beside its content.
/** @type {(event: MouseEvent) => void} */
export const besides = event => {
  const dialog = /** @type {HTMLDialogElement} */ (event.currentTarget);
  if (event.target === dialog) dialog.close();
};
