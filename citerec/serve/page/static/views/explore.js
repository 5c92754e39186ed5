// Filters and pictures of the list.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { guard } from "../vendor/lit-html-3.3.3/directives/guard.js";
import { toggle } from "../facets.js";
import { now, state, update } from "../store.js";
import { count } from "../text.js";
import { map } from "./map.js";
import { besides, icon, link } from "./parts.js";
import { plot } from "./plot.js";
import { toast } from "./toast.js";

const MOST_VENUES = 8;

/** @type {(found: Filtered) => View} */
export const explore = found =>
  html`<aside id="explore" class="explore" aria-label="Filters and plots of the list"
    ?hidden=${!found.all.length}>
    <section class="facet">
      <h2>Year</h2>
      <div id="years" class="years" role="group" aria-label="Filter by year">${years(found)}</div>
    </section>
    <section class="facet" id="venue-facet" ?hidden=${!found.venues.some(one => one.name)}>
      <h2>Venue</h2>
      <div id="venues" class="venues" role="group" aria-label="Filter by venue"
        >${venues(found)}</div>
    </section>
    ${guard([now.list, state.marks[state.index], now.years, now.venues, now.pointed], () =>
      pictures(found),
    )}
  </aside>`;

/** @type {(found: Filtered) => View} */
function pictures(found) {
  const drawn = map(found, "map", [340, 250], 6);
  const enlarge = () => update({ enlarged: true });
  return html`${plot(found)}
    <figure class="picture" id="map-figure" ?hidden=${drawn === nothing}>
      <figcaption>Citations within the list<button type="button" id="enlarge" class="quiet"
        aria-label="Enlarge the map" @click=${enlarge}>${icon("enlarge")}</button></figcaption>
      <div id="map">${drawn}</div>
    </figure>`;
}

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

// The map on its own.
/** @type {(found: Filtered) => View} */
export const picture = found =>
  html`<dialog id="picture" class="large" aria-label="Citations within the list"
    @click=${besides} @close=${() => update({ enlarged: false })}>
    <button type="button" class="quiet close" aria-label="Close"
      @click=${() => update({ enlarged: false })}>×</button>
    <h2>Citations within the list</h2>
    <p class="hint"
      >An arrow leads to the cited paper; circles grow with citations, darker ones are newer.</p>
    <div id="large-map">${now.enlarged ? map(found, "large-map", [1000, 640], 14) : nothing}</div>
    ${toast("picture")}
  </dialog>`;
