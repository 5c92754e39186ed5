// A list of references, checked: what the corpus states otherwise, and corrections.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { save } from "../browser.js";
import { now, update } from "../store.js";
import { clean, count, sentence } from "../text.js";
import { besides, icon } from "./parts.js";

const close = () => update({ checking: false });

export const check = () =>
  html`<dialog id="check" class="box" aria-labelledby="check-title" @click=${besides}
    @close=${close}>
    <button type="button" class="quiet close" aria-label="Close" @click=${close}
      >${icon("close")}</button>
    <h2 id="check-title" tabindex="-1">Your list of references</h2>
    ${now.checking ? now.checks.map(file) : nothing}
  </dialog>`;

/** @type {(check: Check) => View} */
function file({ name, entries, found, findings, missing, corrections }) {
  const facts = `${count(entries, "entry", "entries")}; ${found} could be compared with this corpus`;
  const corrected = () => save(corrections, "corrections.bib", "application/x-bibtex");
  return html`<section class="checked">
    <h3 dir="auto">${clean(name)}</h3>
    <p>${facts}${findings.length || !found ? "." : ", and no difference was found."}</p>
    ${
      corrections
        ? html`<p><button type="button" class="main" data-corrections @click=${corrected}
              >Save corrections as .bib</button></p>
            <p class="hint">Your entries of a .bib, with nothing changed but what this corpus states
              otherwise. Retracted papers and duplicates are yours to decide.</p>`
        : nothing
    }
    <ul>${[...Map.groupBy(findings, one => one.place)].map(place)}</ul>
    ${missing.length ? rest(missing) : nothing}
  </section>`;
}

/** @type {([place, findings]: [string, Finding[]]) => View} */
const place = ([place, findings]) => {
  const name = findings[0].title || findings[0].key; // neither, if it cannot be read
  return html`<li><b dir="auto">${clean(name || place)}</b>
    ${name ? html`<p class="hint" dir="auto">${clean(place)}</p>` : nothing}
    ${findings.map(({ text, problem }) =>
      text
        ? html`<p dir="auto" class=${problem === "retracted" ? "retracted" : nothing}
            >${sentence(text)}</p>`
        : nothing,
    )}</li>`;
};

/** @type {(missing: string[]) => View} */
const rest = missing =>
  html`<details>
    <summary>${count(missing.length, "entry", "entries")} not in this corpus, and not checked</summary>
    <ul>${missing.map(title => html`<li dir="auto">${clean(title)}</li>`)}</ul>
  </details>`;
