// The sheet of one paper: abstract, reasons, what it cites and what cites it inside the corpus.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { findLike, give, setMark } from "../search.js";
import { markOf, now, update } from "../store.js";
import { clean, count, sentence } from "../text.js";
import { closedPaper } from "../travel.js";
import { besides, bibliographic, icon, link, links, marked, named } from "./parts.js";
import { toast } from "./toast.js";

const MOST = 12; // related papers that are shown at first
/** @type {Record<string, string>} */
const STAGES = {
  bm25: "Words (BM25)",
  dense: "Meaning (vectors)",
  body: "Words of the whole text (BM25)",
  body_dense: "Meaning of the whole text (vectors)",
  expand: "Citations of similar papers",
  rerank: "Reranker",
  ranker: "Ranking model",
};

/** @type {(event: any) => void} */
const closed = event => !event.target.open && closedPaper();

export const paper = () =>
  html`<dialog id="details" class="sheet" aria-labelledby="details-title" @click=${besides}
    @close=${closed}
    >${now.paper ? sheet(now.paper) : nothing}${toast("paper")}</dialog>`;

/** @type {(paper: Paper) => View} */
function sheet({ row, depth, related, fault, all }) {
  /** @type {(name: string, help: string, run: (event: any) => void) => View} */
  const button = (name, help, run) =>
    html`<button type="button" class="quiet" aria-label=${help} data-name=${name} @click=${run}
      >${icon(name)}</button>`;
  /** @type {(event: any) => void} */
  const close = event => event.target.closest("dialog").close();
  const back = depth > 1 && button("back", "Back to the previous paper", () => history.back());
  return html`<div class="sheet-bar"
      >${back || nothing}<span class="grow"></span>${button("close", "Close", close)}</div>
    <article>
      <h2 id="details-title" dir="auto" tabindex="-1">${row ? row.title : "…"}</h2>
      ${row ? facts(row) : nothing}
      ${fault ? html`<p class="fault" role="alert">${clean(fault)}</p>` : nothing}
      ${row ? reading(row) : nothing}
      ${
        related
          ? [group("Cites", related.references, all), group("Cited by", related.cited_by, all)]
          : fault
            ? nothing
            : html`<p class="hint" role="status">Reading its citations…</p>`
      }
    </article>`;
}

/** @type {(row: Row) => View} */
function facts(row) {
  const mark = markOf(row.id);
  /** @type {(kind: Mark, text: string, picture: string) => View} */
  const button = (kind, text, picture) =>
    html`<button type="button" data-name=${kind} aria-pressed=${mark === kind}
      @click=${() => setMark(row, mark === kind ? null : kind)}>${icon(picture)}${text}</button>`;
  return html`<p class="by">${bibliographic(row, Infinity)}</p>
    <p class="links">
      ${links(row)}
      <code class="id">${clean(row.id)}</code>
    </p>
    <div class="export">
      ${button("taken", "Take", "take")} ${button("cited", "I cite it already", "check")}
      ${button("hidden", "Hide", "eye-off")}
      <button type="button" data-name="copy" @click=${() => give("bibtex", "copy", [row])}
        >${icon("copy")}Copy BibTeX</button>
      <button type="button" data-name="like" @click=${() => likeThis(row)}
        >${icon("sort")}More like this</button>
    </div>`;
}

/** @type {(row: Row) => void} */
function likeThis(row) {
  closedPaper();
  findLike(row);
}

/** @type {(row: Row) => View[]} */
const reading = row =>
  [
    row.abstract.join("") &&
      html`<h3>Abstract</h3>
      <p class="abstract" dir="auto">${marked(row.abstract)}</p>`,
    row.reasons.length > 0 &&
      html`<h3>Why it is in the list</h3>
      <ul class="reasons">${row.reasons.map(one => html`<li>${sentence(one)}</li>`)}</ul>`,
    Object.keys(row.stages).length > 0 && stages(row),
  ].filter(Boolean);

/** @type {(row: Row) => View} */
const stages = row =>
  html`<details class="stages-of">
    <summary>Scores of each stage</summary>
    <table>
      <thead>
        <tr><th scope="col">Stage</th><th scope="col">Rank</th><th scope="col">Score</th></tr>
      </thead>
      <tbody>${Object.entries(row.stages).map(
        ([name, hit]) =>
          html`<tr><th scope="row">${STAGES[name] ?? clean(name)}</th><td>${hit.rank}</td
            ><td>${hit.score.toPrecision(4)}</td></tr>`,
      )}</tbody>
    </table>
  </details>`;

/** @type {(name: string, related: Related, all: Set<string>) => View} */
function group(name, { results, total }, all) {
  const shown = all.has(name) ? results : results.slice(0, MOST);
  const rest = results.length - shown.length;
  const more = () => {
    all.add(name);
    update();
  };
  const hint = total ? `${count(total, "paper")} of this corpus` : "no paper of this corpus";
  return html`<h3>${name} <span class="hint">${hint}</span></h3>
    <ul class="related">${shown.map(
      one => html`<li>${named(one)}<span class="year">${one.year ?? ""}</span></li>`,
    )}</ul>
    ${rest ? link(`${rest} more`, more) : nothing}`;
}
