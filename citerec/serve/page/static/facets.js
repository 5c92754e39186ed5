// Year and venue filters over the list.

import { listed, now, rows, update } from "./store.js";
import { clean } from "./text.js";

const MOST_BARS = 14;

/** @type {(all: Row[]) => Bin[]} */
function binsOf(all) {
  const known = all.map(row => row.year).filter(year => year !== null);
  const bins = [];
  if (known.length) {
    const first = Math.min(...known),
      last = Math.max(...known);
    const width =
      [1, 2, 5, 10, 20, 50, 100, 500].find(size => (last - first + 1) / size <= MOST_BARS) ?? 1000;
    for (let from = first - (width > 1 ? first % width : 0); from <= last; from += width) {
      const to = from + width - 1;
      const name = width === 1 ? String(from) : `${from}–${Math.min(to, last)}`;
      bins.push({ from, to, name });
    }
  }
  if (known.length < all.length) bins.push({ from: null, to: 0, name: "no year" });
  return bins;
}

// The papers of the list and what the filters do to them; a filter of which no paper is left
// does nothing.
/** @returns {Filtered} */
export function filtered() {
  const all = rows(),
    bins = binsOf(all);
  /** @type {(bin: Bin) => (row: Row) => boolean} */
  const within = bin => row =>
    bin.from === null || row.year === null
      ? bin.from === row.year
      : row.year >= bin.from && row.year <= bin.to;
  const venues = [...new Set(all.map(row => clean(row.venue)))];
  const chosenBins = bins.filter(bin => now.years.has(bin.name));
  const chosenVenues = venues.filter(name => now.venues.has(name));
  /** @type {(row: Row) => boolean} */
  const inYears = row => !chosenBins.length || chosenBins.some(bin => within(bin)(row));
  /** @type {(row: Row) => boolean} */
  const inVenues = row => !chosenVenues.length || chosenVenues.includes(clean(row.venue));
  const fresh = all.filter(row => now.list.fresh.has(row.id));
  const isOnlyNew = now.onlyNew && fresh.length > 0,
    among = isOnlyNew ? fresh : all;
  const byVenue = among.filter(inVenues),
    byYear = among.filter(inYears);
  /** @type {(row: Row) => boolean} */
  const passes = row => (!isOnlyNew || now.list.fresh.has(row.id)) && inYears(row) && inVenues(row);
  return {
    all,
    fresh,
    passes,
    shown: byVenue.filter(inYears),
    visible: listed().filter(passes),
    // a facet counts what the other facet lets through
    years: bins.map(bin => ({ ...bin, n: byVenue.filter(within(bin)).length })),
    venues: venues
      .map(name => ({ name, n: byYear.filter(row => clean(row.venue) === name).length }))
      .sort((a, b) => b.n - a.n || a.name.localeCompare(b.name)),
    chosen: [
      ...chosenBins.map(({ name }) => ({ facet: /** @type {Facet} */ ("years"), name })),
      ...chosenVenues.map(name => ({ facet: /** @type {Facet} */ ("venues"), name })),
    ],
  };
}

/** @type {(facet: Facet, name: string) => void} */
export function toggle(facet, name) {
  update({ [facet]: now[facet].symmetricDifference(new Set([name])) });
}

export const unfilter = () => update({ years: new Set(), venues: new Set(), onlyNew: false });

// Filters that do nothing in a new list are forgotten.
export function prune() {
  const { chosen, fresh } = filtered();
  now.onlyNew &&= fresh.length > 0;
  for (const facet of /** @type {Facet[]} */ (["years", "venues"]))
    now[facet] = new Set(chosen.filter(one => one.facet === facet).map(one => one.name));
}
