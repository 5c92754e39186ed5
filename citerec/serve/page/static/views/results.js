// The list and what is around it: what is known of it, filters, tools, the greeting.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { repeat } from "../vendor/lit-html-3.3.3/directives/repeat.js";
import { toggle, unfilter } from "../facets.js";
import { edit } from "../draft.js";
import { bringUp, find, give, go, more, select } from "../search.js";
import { dayOf } from "../news.js";
import { listed, now, state, update } from "../store.js";
import { clean, count } from "../text.js";
import { example, openPaper } from "../travel.js";
import { openCollect } from "./collect.js";
import { chooseFile, icon, link, onTick, onValue, picture } from "./parts.js";
import { screening } from "./review.js";
import { row } from "./row.js";
import { where } from "./where.js";
import { lostText } from "../where.js";

/** @type {Record<Sort, string>} */
const ORDERS = {
  best: "Best first",
  newest: "Newest first",
  oldest: "Oldest first",
  cited: "Most cited first",
};

/** @type {(found: Filtered) => View} */
export function results(found) {
  const isBusy = now.running !== null,
    has = now.list.rows.length > 0;
  return html`<section id="results" class="results" aria-label="Recommended papers" tabindex="-1">
    <h2 class="hush">Recommended papers</h2>
    <p id="status" class="status" role="status" aria-live="polite">${now.status}</p>
    ${screening()}
    <div id="notices" class="notices">${now.notices.map(notice)} ${lost()}</div>
    <p id="fresh" class="notice fresh" ?hidden=${!found.fresh.length}>${fresh(found)}</p>
    <div id="bounds" class="filters">${bounds()}</div>
    <div id="filters" class="filters" ?hidden=${!found.chosen.length}>${filters(found)}</div>
    <div class="tabs" role="group" aria-label="What is shown" ?hidden=${!has}>
      ${tab("list", "List")} ${tab("map", "Map and filters")} ${tab("works", "Works")}
    </div>
    <div class="tools" id="tools" ?hidden=${!has}>${tools(found)}</div>
    <div id="again" class="again" ?hidden=${!now.again || isBusy}>
      <button type="button" @click=${() => find()}
        >${icon("sort")} Search again with your changes <kbd>n</kbd></button>
    </div>
    <div id="placeholder" class="placeholder" aria-hidden="true" ?hidden=${!isBusy || has || now.where}
      ><i></i><i></i><i></i></div>
    ${now.where ? where(now.where) : nothing} ${list(found)}
    <div class="more" ?hidden=${!has || !now.list.wanted || isBusy}
      >${link("20 more papers", more, "more")}</div>
    <div id="empty" class="empty" ?hidden=${!now.instead}>
      <svg aria-hidden="true" viewBox="0 0 120 72" class="sketch"
        ><use href=${picture("icons.svg#sketch")}></use></svg>
      ${now.instead === "greeting" ? greeting() : nothingFound(now.instead?.why ?? "")}
    </div>
  </section>`;
}

/** @type {(notice: Notice) => View} */
const notice = ({ text, isFault, acts = [] }) =>
  html`<p class="notice" dir="auto">${
    isFault ? html`<span class="fault" role="alert">${text}</span>` : clean(text)
  }${acts.map(({ name, run }, i) => [i ? " · " : "", link(name, run)])}</p>`;

// That the text of the file was not searched.
function lost() {
  if (state.mode === "sentence" || !lostText() || now.instead === "greeting") return nothing;
  const without = () => {
    edit({ file: { ...state.file, sentences: 0 } });
    find();
  };
  const text = `The text of ${lostText()} is not kept; without it, only title and abstract are searched. `;
  const acts = [
    { name: "Choose the file again", run: chooseFile },
    { name: "Search without it", run: without },
  ];
  return notice({ text, acts });
}

/** @type {(found: Filtered) => View} */
function fresh({ fresh }) {
  const day = dayOf(now.list.since ?? 0);
  return html`${count(fresh.length, "new paper")} since ${day === "today" ? "earlier today" : day}.
    <button type="button" class="chip" id="only-new" aria-pressed=${now.onlyNew}
      @click=${() => update({ onlyNew: !now.onlyNew })}>Only the new ones</button>`;
}

// The bounds of years that the list was searched within, or that of its draft.
function bounds() {
  /** @type {[("yearMin" | "yearMax"), string][]} */
  const both = [
    ["yearMin", "from"],
    ["yearMax", "up to"],
  ];
  return both.map(([name, text]) => {
    const drop = () => {
      edit({ [name]: null });
      find();
    };
    const year = state.searched && state[name];
    return year
      ? html`<button type="button" class="chip on" data-bound=${name} @click=${drop}
          ><span class="hush">Remove the bound: </span>Papers ${text} ${year}<span
            aria-hidden="true"> ×</span></button>`
      : nothing;
  });
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
  /** @type {(format: string, ending: string, name: string) => View} */
  const save = (format, ending, name) =>
    html`<button type="button" data-save=${format} aria-label="Download ${ending}, ${name}"
      @click=${() => give(format, "save")}>${ending}</button>`;
  const chosen = html`<div class="export" role="group" aria-label="Export the selected papers">
    <button type="button" data-copy="bibtex" @click=${() => give("bibtex", "copy")}
      >${icon("copy")} Copy BibTeX</button>
    ${save("bibtex", ".bib", "BibTeX")} ${save("ris", ".ris", "for EndNote and others")}
    ${save("csl", ".json", "for Zotero and pandoc")}
    <button type="button" data-copy="doi" @click=${() => give("doi", "copy")}
      >${icon("copy")} DOIs</button>
  </div>`;
  const help = html`<span class="likely">probability that you cite it
    <button type="button" class="quiet" aria-label="What the percentage means"
      @click=${() => update({ help: true })}>${icon("help")}</button></span>`;
  return html`<label class="check"
      ><input type="checkbox" id="all" .checked=${n > 0 && n === shown.length}
        .indeterminate=${n > 0 && n < shown.length} @change=${all} />
      <span id="selected">${n ? `${n} selected` : "Select all"}</span></label>
    <label class="sort"><span class="hush">Order of the list</span
      ><select id="sort" @change=${onValue(sort => update({ sort: /** @type {Sort} */ (sort) }))}
        >${Object.entries(ORDERS).map(
          ([name, text]) =>
            html`<option value=${name} .selected=${now.sort === name}>${text}</option>`,
        )}</select></label>
    ${n ? chosen : nothing}
    ${now.list.rows.some(one => one.probability !== null) ? help : nothing}`;
}

/** @type {(name: Now["tab"], text: string) => View} */
const tab = (name, text) =>
  html`<button type="button" data-tab=${name} aria-pressed=${now.tab === name}
    @click=${() => show(name)}>${text}</button>`;

// A figure that was not shown is drawn two frames later: before that the page may be too short.
/** @type {(tab: Now["tab"]) => void} */
function show(tab) {
  update({ tab });
  const scroll = () => bringUp(".tabs");
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(scroll)));
}

/** @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

// The list is one stop of the Tab key: its current row and what is in it; arrow keys lead to
// the others.
/** @type {(found: Filtered) => View} */
function list({ visible }) {
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
  const current = (visible.find(one => one.id === now.current) ?? visible[0])?.id;
  const isVisible = new Set(visible);
  const place = new Map(now.list.rows.map((one, i) => [one, i + 1]));
  return html`<ol id="list" class="list" aria-busy=${now.running !== null} @focusin=${focused}
    @keydown=${pressed}>${repeat(
      listed(),
      one => one.id,
      one => row(one, place.get(one) ?? 0, one.id === current, !isVisible.has(one)),
    )}</ol>`;
}

// Whether the server has a desk that this browser has no key of.
const isClosed = () => document.documentElement.dataset.desk && !now.desk;
const closed = html` To keep drafts as files of the server, too, and to see those that are there, open
  the address that <code>citerec serve</code> prints.`;

const greeting = () =>
  html`<h2>What should this draft cite?</h2>
    <p>Paste a title and an abstract, drop a file, or paste the one sentence that needs a
      reference. The papers of <b class="name">${state.index || "a corpus"}</b> that fit best come back with the
      reasons for each.</p>
    <p>${
      state.index
        ? link("Try it with an example", example, "example")
        : link("Collect a corpus first…", openCollect)
    }</p>
    <p id="kept" class="hint">Your text is sent to this server only, and kept in this browser${
      now.desk?.folder ? html` and in <code>${now.desk.folder}</code>` : " alone"
    }.${isClosed() ? closed : nothing}</p>`;

/** @type {(why: string) => View} */
const nothingFound = why =>
  html`<h2>Nothing was found</h2>
    <p dir="auto">${clean(why) || "No paper of this corpus matches the text."}</p>
    <ul class="hint">
      <li>Is it the right corpus, above? Are the years in the settings too narrow?</li>
      <li>A longer text, such as the abstract, finds more.</li>
    </ul>`;
