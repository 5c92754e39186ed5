// The list and what is around it: what is known of it, filters, tools, the greeting.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { repeat } from "../vendor/lit-html-3.3.3/directives/repeat.js";
import { $, motion } from "../browser.js";
import { toggle, unfilter } from "../facets.js";
import { find, give, go, more, select } from "../search.js";
import { dayOf } from "../news.js";
import { now, state, update } from "../store.js";
import { clean, count } from "../text.js";
import { example, openPaper } from "../travel.js";
import { icon, link, onTick, onValue } from "./parts.js";
import { row } from "./row.js";
import { where } from "./where.js";

/** @type {Record<Sort, string>} */
const ORDERS = {
  best: "Best first",
  newest: "Newest first",
  oldest: "Oldest first",
  cited: "Most cited first",
};

/** @type {(found: Filtered) => View} */
export function results(found) {
  const isBusy = now.running !== null;
  return html`<section id="results" class="results" aria-label="Recommended papers" tabindex="-1">
    <h2 class="hush">Recommended papers</h2>
    <div class="bar">
      <div id="stages" class="stages" aria-hidden="true"
        >${now.stages.map(name => html`<span class="stage done">${name}</span>`)}</div>
      <p id="status" class="status" role="status" aria-live="polite">${now.status}</p>
    </div>
    <div id="notices" class="notices">${now.notices.map(notice)}</div>
    <p id="fresh" class="notice fresh" ?hidden=${!found.fresh.length}>${fresh(found)}</p>
    <div id="filters" class="filters" ?hidden=${!found.chosen.length}>${filters(found)}</div>
    <div class="tools" id="tools" ?hidden=${!found.all.length}>${tools(found)}</div>
    <div id="again" class="again" ?hidden=${!now.again}>
      <button type="button" @click=${() => find()}
        >${icon("sort")} Search again with these marks and settings <kbd>n</kbd></button>
    </div>
    <div id="placeholder" class="placeholder" aria-hidden="true" ?hidden=${!isBusy}
      ><i></i><i></i><i></i></div>
    ${now.where ? where(now.where) : nothing} ${list(found)}
    <div class="more" ?hidden=${!found.all.length || !now.list.wanted || isBusy}
      >${link("20 more papers", more, "more")}</div>
    <div id="empty" class="empty" ?hidden=${!now.instead}>
      <svg aria-hidden="true" viewBox="0 0 120 72" class="sketch"
        ><use href="static/icons.svg#sketch"></use></svg>
      ${now.instead === "greeting" ? greeting() : nothingFound(now.instead?.why ?? "")}
    </div>
  </section>`;
}

/** @type {(notice: Notice) => View} */
const notice = ({ text, isFault, acts = [] }) =>
  html`<p class="notice" dir="auto">${
    isFault ? html`<span class="fault" role="alert">${text}</span>` : clean(text)
  }${acts.map(({ name, run }, i) => [i ? " · " : "", link(name, run)])}</p>`;

/** @type {(found: Filtered) => View} */
function fresh({ fresh }) {
  const day = dayOf(now.list.since ?? 0);
  return html`${count(fresh.length, "new paper")} since ${day === "today" ? "earlier today" : day}.
    <button type="button" class="chip" id="only-new" aria-pressed=${now.onlyNew}
      @click=${() => update({ onlyNew: !now.onlyNew })}>Only the new ones</button>`;
}

/** @type {(found: Filtered) => View} */
const filters = ({ chosen }) => [
  "Only",
  chosen.map(
    ({ facet, name }) =>
      html`<button type="button" class="chip on" @click=${() => toggle(facet, name)}
        ><span class="hush">Remove the filter </span><span dir="auto">${name || "no venue"}</span
        ><span aria-hidden="true"> ×</span></button>`,
  ),
  link("Show all", unfilter),
];

/** @type {(found: Filtered) => View} */
function tools({ shown }) {
  const n = shown.filter(one => now.list.selected.has(one.id)).length;
  const ids = shown.map(one => one.id);
  const all = onTick(isOn => select(ids, isOn));
  const explore = () => {
    update({ exploring: !now.exploring });
    if (now.exploring) $("#explore").scrollIntoView({ block: "start", behavior: motion() });
  };
  /** @type {(format: string, ending: string, name: string) => View} */
  const save = (format, ending, name) =>
    html`<button type="button" data-save=${format} aria-label="Download ${ending}, ${name}"
      ?disabled=${!n} @click=${() => give(format, "save")}>${ending}</button>`;
  return html`<button type="button" id="explore-toggle" class="toggle" aria-controls="explore"
      aria-expanded=${now.exploring} @click=${explore}>Filters and figure</button>
    <label class="sort"><span class="hush">Order of the list</span
      ><select id="sort" @change=${onValue(sort => update({ sort: /** @type {Sort} */ (sort) }))}
        >${Object.entries(ORDERS).map(
          ([name, text]) =>
            html`<option value=${name} .selected=${now.sort === name}>${text}</option>`,
        )}</select></label>
    <label class="check"
      ><input type="checkbox" id="all" .checked=${n > 0 && n === shown.length}
        .indeterminate=${n > 0 && n < shown.length} @change=${all} />
      <span id="selected">${n ? `${n} selected` : "Select all"}</span></label>
    <div class="export" role="group" aria-label="Export the selected papers">
      <button type="button" data-copy="bibtex" ?disabled=${!n}
        @click=${() => give("bibtex", "copy")}>${icon("copy")} Copy BibTeX</button>
      ${save("bibtex", ".bib", "BibTeX")} ${save("ris", ".ris", "RIS")}
      ${save("csl", ".json", "CSL-JSON")}
      <button type="button" data-copy="doi" ?disabled=${!n}
        @click=${() => give("doi", "copy")}>${icon("copy")} DOIs</button>
    </div>`;
}

/** @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

// The list is one stop of the Tab key: its current row and what is in it; arrow keys lead to
// the others.
/** @type {(found: Filtered) => View} */
function list({ all, shown }) {
  /** @type {(event: any) => string} */
  const rowOf = event => event.target.closest(".row")?.dataset.id;
  /** @type {(event: any) => void} */
  const focused = event => {
    const id = rowOf(event);
    if (id && id !== now.current) update({ current: id });
  };
  /** @type {(event: any) => void} */
  const pressed = event => {
    const steps = STEPS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (steps) go(steps);
    else if (event.key === "Enter" && event.target.matches(".row")) openPaper(rowOf(event));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const current = (shown.find(one => one.id === now.current) ?? shown[0])?.id;
  const visible = new Set(shown);
  const place = new Map(now.list.rows.map((one, i) => [one, i + 1]));
  return html`<ol id="list" class="list" aria-busy=${now.running !== null} @focusin=${focused}
    @keydown=${pressed}>${repeat(
      all,
      one => one.id,
      one => row(one, place.get(one) ?? 0, one.id === current, !visible.has(one)),
    )}</ol>`;
}

const greeting = () =>
  html`<h2>What should this draft cite?</h2>
    <p>Paste a title and an abstract, drop a file, or paste the one sentence that needs a
      reference. The papers of <b class="name">${state.index}</b> that fit best come back with the
      reasons for each.</p>
    <p>${link("Try it with a paper of this corpus", example, "example")}</p>
    <p class="hint">Your text is sent to this server only, and kept only in this browser.</p>`;

/** @type {(why: string) => View} */
const nothingFound = why =>
  html`<h2>Nothing was found</h2>
    <p dir="auto">${clean(why) || "No paper of this corpus matches the text."}</p>
    <ul class="hint">
      <li>Is it the right corpus? Are the years in the settings too narrow?</li>
      <li>A longer text, such as the abstract, finds more.</li>
    </ul>`;
