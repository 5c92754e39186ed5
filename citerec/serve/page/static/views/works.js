// Papers beyond the list: those that several of the list cite, and those that cite several.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { markOf, now } from "../store.js";
import { named } from "./parts.js";

export const works = () => {
  const { prior = [], derivative = [] } = now.connections ?? {};
  return [
    group("prior", "Prior works", "cited by several of the list", prior),
    group("derivative", "Derivative works", "citing several of the list", derivative),
  ];
};

/** @type {(id: string, name: string, what: string, papers: Work[]) => View} */
function group(id, name, what, papers) {
  const shown = papers.filter(one => !markOf(one.id));
  if (!shown.length) return nothing;
  return html`<section class="facet works" id=${id}>
    <h2>${name} <span class="hint">${what}</span></h2>
    <ul class="related">${shown.map(
      one =>
        html`<li>${named(one)}<span class="year" title="Connected with ${one.links} of the list"
          >${one.year ?? ""} · ${one.links}×</span></li>`,
    )}</ul>
  </section>`;
}
