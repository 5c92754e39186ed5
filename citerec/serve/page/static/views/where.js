// The text, with the sentences that may lack a reference marked, and the papers for each.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { setMark } from "../search.js";
import { markOf } from "../store.js";
import { clean, count, sentence } from "../text.js";
import { openPaper } from "../travel.js";
import { goClaim, markMost, markedIn, toggleClaim } from "../where.js";
import { bibliographic, icon, links, onValue } from "./parts.js";

/** @type {Record<string, number>} */
const STEPS = {
  ArrowDown: 1,
  ArrowRight: 1,
  ArrowUp: -1,
  ArrowLeft: -1,
  Home: -Infinity,
  End: Infinity,
};

// Its marked sentences are one stop of the Tab key; arrow keys lead from one to the next.
/** @type {(where: Where) => View} */
export function where(where) {
  const shown = markedIn(where);
  const current = (shown.find(one => one.id === where.current) ?? shown[0])?.id;
  /** @type {(event: any) => void} */
  const pressed = event => {
    const { target, key } = event;
    if (key === "Escape" && where.current && where.open.has(where.current)) {
      toggleClaim(where.current);
      goClaim(0);
      event.stopPropagation();
    }
    if (!target.matches(".claim") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (STEPS[key]) goClaim(STEPS[key]);
    else if (key === "Enter" || key === " ") toggleClaim(target.dataset.id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div id="where" class="where">
    <div class="where-tools">
      ${choice(where)}
      <span class="steps">
        ${step("Previous", -1)} ${step("Next", 1)}
      </span>
      <p class="hint">Sentences that cite a paper, the abstract, and what you say of your own work
        are left alone. A click on a sentence shows or hides its papers.</p>
    </div>
    <div class="whole" role="group" aria-label="Your text" @keydown=${pressed}
      >${runs(where).map(part => stretch(part, where, current))}</div>
  </div>`;
}

/** @type {(name: string, steps: number) => View} */
const step = (name, steps) =>
  html`<button type="button" data-step=${steps} aria-label="${name} sentence"
    @click=${() => goClaim(steps)}>${name}</button>`;

/** @type {(where: Where) => View} */
function choice({ claims, most }) {
  const total = claims.length,
    isRanked = claims.some(one => one.sureness !== null);
  const numbers = [5, 10].filter(n => n < total);
  if (!numbers.length) return nothing;
  const name = isRanked ? "most likely" : "first";
  return html`<label class="sort">Underline
    <select id="most" @change=${onValue(markMost)}>
      ${numbers.map(
        n => html`<option value=${n} .selected=${most === n}>the ${n} ${name}</option>`,
      )}
      <option value="Infinity" .selected=${most > total}>all ${total}</option>
    </select></label>`;
}

/** @type {(one: Placed, where: Where) => boolean} */
const isMarked = ({ parts }, where) => parts.some(part => isShown(part.claim, where));

// Paragraphs with a marked sentence, each alone, and what is between them. The name of a section
// stands once: above the run that it begins, if one of its sentences is marked; else in its run.
/** @type {(where: Where) => { name: string, run: Placed[] }[]} */
function runs(where) {
  const { paragraphs } = where;
  /** @type {{ name: string, run: Placed[] }[]} */
  const found = [];
  let isOpen = false;
  paragraphs.forEach((one, at) => {
    const { section } = one;
    const isFirst = section !== paragraphs[at - 1]?.section;
    const next = paragraphs.findIndex((other, i) => i > at && other.section !== section);
    const of = paragraphs.slice(at, next < 0 ? undefined : next);
    const isNamed = isFirst && of.some(other => isMarked(other, where));
    const isAlone = isMarked(one, where);
    if (isAlone || isNamed || !isOpen) found.push({ name: isNamed ? section : "", run: [] });
    found.at(-1)?.run.push(isFirst && !isNamed ? one : { ...one, section: "" });
    isOpen = !isAlone;
  });
  return found;
}

/** @type {(name: string) => View} */
const heading = name => (name ? html`<p class="section" dir="auto">${clean(name)}</p>` : nothing);

/** @type {(part: ReturnType<typeof runs>[number], where: Where, current: string | undefined) => View} */
function stretch({ name, run }, where, current) {
  if (isMarked(run[0], where)) return [heading(name), paragraph(run[0], where, current)];
  const n = run.reduce((sum, one) => sum + one.parts.length, 0);
  return html`${heading(name)}<details class="rest">
    <summary>${count(n, "sentence")} not underlined</summary>
    ${run.map(one => paragraph(one, where, current))}
  </details>`;
}

/** @type {(claim: Claim | null, where: Where) => boolean} */
const isShown = (claim, { most }) => claim !== null && claim.rank < most;

/** @type {(one: Placed, where: Where, current: string | undefined) => View} */
function paragraph({ section, parts }, where, current) {
  /** @type {(claim: Claim | null) => boolean} */
  const isOpen = claim => claim !== null && isShown(claim, where) && where.open.has(claim.id);
  /** @type {Placed["parts"][]} */
  const pieces = [[]]; // each ends with a sentence whose papers are shown
  for (const part of parts) {
    pieces.at(-1)?.push(part);
    if (isOpen(part.claim)) pieces.push([]);
  }
  /** @type {(piece: Placed["parts"]) => View} */
  const drawn = piece => {
    const last = piece.at(-1)?.claim ?? null;
    return html`<p dir="auto">${piece.map(({ text, claim }) => [
      claim && isShown(claim, where)
        ? marked(claim, claim.id === current, claim === last && isOpen(last))
        : shown(text),
      " ",
    ])}</p>
      ${last && isOpen(last) ? candidates(last) : nothing}`;
  };
  return html`${heading(section)}
    ${pieces.filter(piece => piece.length).map(drawn)}`;
}

/** @type {(text: string) => string} */
const shown = text => clean(text).replaceAll("[CITE]", "[…]");

/** @type {(claim: Claim, isCurrent: boolean, isOpen: boolean) => View} */
function marked({ id, text, sureness }, isCurrent, isOpen) {
  const level = sureness === null || sureness > 0.8 ? 3 : sureness > 0.5 ? 2 : 1;
  return html`<span class="claim level${level}" role="button" data-id=${id}
    tabindex=${isCurrent ? 0 : -1} aria-expanded=${isOpen}
    @click=${() => toggleClaim(id)}><span class="hush">May lack a reference: </span
    >${shown(text)}</span>`;
}

/** @type {(claim: Claim) => View} */
const candidates = ({ papers }) =>
  html`<div class="candidates" role="group" aria-label="Papers for this sentence">
    ${papers.length ? nothing : html`<p class="hint">No paper of this corpus fits.</p>`}
    <ol>${papers.map(candidate)}</ol>
  </div>`;

/** @type {(row: Row) => View} */
function candidate(row) {
  const mark = markOf(row.id);
  /** @type {(kind: Mark, text: string, picture: string) => View} */
  const act = (kind, text, picture) =>
    html`<button type="button" class="act" data-act=${kind} aria-pressed=${mark === kind}
      aria-label="${text}: ${row.title}" @click=${() => setMark(row, mark === kind ? null : kind, true)}
      >${icon(picture)}<span>${text}</span></button>`;
  return html`<li data-id=${row.id}>
    <button type="button" class="title" dir="auto" data-act="open"
      @click=${() => openPaper(row.id)}>${row.title}</button>
    <p class="by">${bibliographic(row)} ${links(row)}</p>
    ${row.reasons.length ? html`<p class="hint">${sentence(row.reasons[0])}</p>` : nothing}
    <div class="marks">
      ${act("taken", "Take", "take")} ${act("cited", "I cite it already", "check")}
      ${act("hidden", "Hide", "eye-off")}
    </div>
  </li>`;
}
