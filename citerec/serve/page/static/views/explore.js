// Filters and the figure of the list.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { guard } from "../vendor/lit-html-3.3.3/directives/guard.js";
import { toggle } from "../facets.js";
import { now, state, update } from "../store.js";
import { count } from "../text.js";
import { figure } from "./figure.js";
import { besides, icon, link } from "./parts.js";
import { toast } from "./toast.js";
import { works } from "./works.js";

const MOST_VENUES = 8;

/** @type {(found: Filtered) => View} */
export const explore = found =>
  html`<aside id="explore" class="explore" aria-label="Map and filters of the list"
    ?hidden=${!now.list.rows.length}>
    <section class="facet">
      <h2>Year</h2>
      <div id="years" class="years" role="group" aria-label="Filter by year">${years(found)}</div>
    </section>
    <section class="facet" id="venue-facet" ?hidden=${!found.venues.some(one => one.name)}>
      <h2>Venue</h2>
      <div id="venues" class="venues" role="group" aria-label="Filter by venue"
        >${venues(found)}</div>
    </section>
    ${guard([...shown(), now.planes.plane], () => picture(found))}
  </aside>`;

// What the figure shows; it is drawn anew when some of it is another.
const shown = () => [
  ...[now.list, state.marks[state.index], now.years, now.venues, now.onlyNew],
  ...[now.connections, now.pointed, now.node],
];

/** @type {(found: Filtered) => View} */
const picture = found =>
  html`<figure class="picture" aria-labelledby="figure-name">
    <figcaption><span id="figure-name">Years and citations</span
      ><button type="button" id="enlarge" class="quiet" aria-label="Enlarge the figure"
        @click=${() => update({ enlarged: true })}>${icon("enlarge")}</button></figcaption>
    ${figure(found, "plane")}
  </figure>
  ${works()}`;

/** @type {(found: Filtered) => View} */
function years({ years }) {
  const most = Math.max(1, ...years.map(bin => bin.n));
  return years.map(({ name, from, n }) => {
    const text = `${name}: ${count(n, "paper")}`;
    const height = n ? Math.max(8, (n / most) * 100) : 0;
    return html`<button type="button" title=${text} aria-pressed=${now.years.has(name)}
      @click=${() => toggle("years", name)}
      ><span class="hush">${text}</span
      ><span class="n" aria-hidden="true">${n || ""}</span
      ><span class="well" aria-hidden="true"><i .style=${`height: ${height}%`}></i></span
      ><span class="tick" aria-hidden="true"
        >${from === null ? "?" : `’${String(from).slice(-2)}`}</span></button>`;
  });
}

/** @type {(found: Filtered) => View} */
function venues({ venues }) {
  const shown = now.allVenues ? venues : venues.slice(0, MOST_VENUES);
  const more = venues.length - shown.length;
  return [
    shown.map(
      ({ name, n }) =>
        html`<button type="button" class="chip" aria-pressed=${now.venues.has(name)}
          @click=${() => toggle("venues", name)}
          ><span class="name" dir="auto">${name || "no venue"}</span
          ><span class="n">${n}</span></button>`,
    ),
    more ? link(`${more} more`, () => update({ allVenues: true })) : nothing,
  ];
}

// The figure on its own.
/** @type {(found: Filtered) => View} */
export const enlarged = found =>
  html`<dialog id="picture" class="large" aria-labelledby="large-name" @click=${besides}
    @close=${() => update({ enlarged: false })}>
    <button type="button" class="quiet close" aria-label="Close"
      @click=${() => update({ enlarged: false })}>${icon("close")}</button>
    <h2 id="large-name">Years and citations</h2>
    ${guard([...shown(), now.enlarged, now.planes.large], () => figure(found, "large"))}
    ${toast("picture")}
  </dialog>`;
