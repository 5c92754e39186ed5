// Year and venue facets over the list, in the browser.

import { $, $$, clean, count, h } from "./dom.js";

const MOST_BARS = 14,
  MOST_VENUES = 8;
const none = "";
let years = new Set(),
  venues = new Set(); // chosen bins and venues; empty for all
let bins = [],
  changed = () => {},
  allVenues = false;

export const start = listener => {
  changed = listener;
};
export const active = () => years.size + venues.size > 0;
export function clear() {
  years.clear();
  venues.clear();
}

export function passes(row) {
  return (
    (!years.size || years.has(binOf(row.year))) && (!venues.size || venues.has(clean(row.venue)))
  );
}

function binOf(year) {
  return (
    bins.find(bin =>
      year === null ? bin.from === null : bin.from !== null && year >= bin.from && year <= bin.to,
    )?.name ?? none
  );
}

function binsOf(rows) {
  const known = rows.map(row => row.year).filter(year => year !== null);
  const made = [];
  if (known.length) {
    const first = Math.min(...known),
      last = Math.max(...known);
    const width =
      [1, 2, 5, 10, 20, 50, 100, 500].find(size => (last - first + 1) / size <= MOST_BARS) ?? 1000;
    for (let from = first - (width > 1 ? first % width : 0); from <= last; from += width) {
      made.push({
        from,
        to: from + width - 1,
        name: width === 1 ? String(from) : `${from}–${Math.min(from + width - 1, last)}`,
      });
    }
  }
  if (known.length < rows.length) made.push({ from: null, to: null, name: "no year" });
  return made;
}

export function draw(rows) {
  bins = binsOf(rows);
  years = new Set([...years].filter(name => bins.some(bin => bin.name === name)));
  const names = new Set(rows.map(row => clean(row.venue)));
  venues = new Set([...venues].filter(name => names.has(name)));
  drawYears(rows);
  drawVenues(rows);
  drawFilters();
}

function toggle(set, name) {
  if (!set.delete(name)) set.add(name);
  changed();
}

// A facet counts what the other facet lets through.
function drawYears(rows) {
  const kept = rows.filter(row => !venues.size || venues.has(clean(row.venue)));
  const counts = bins.map(bin => kept.filter(row => binOf(row.year) === bin.name).length);
  const most = Math.max(1, ...counts);
  $("#years").replaceChildren(
    ...bins.map((bin, i) => {
      const bar = h("i");
      bar.style.height = `${counts[i] ? Math.max(8, (counts[i] / most) * 100) : 0}%`;
      const short = bin.from === null ? "?" : `’${String(bin.from).slice(-2)}`;
      return h(
        "button",
        {
          type: "button",
          "aria-pressed": years.has(bin.name),
          title: `${bin.name}: ${count(counts[i], "paper")}`,
          on: {
            click: () => {
              toggle(years, bin.name);
              refocus("#years", i);
            },
          },
        },
        h("span", { class: "hush" }, `${bin.name}: ${count(counts[i], "paper")}`),
        h("span", { class: "n", "aria-hidden": "true" }, counts[i] || ""),
        h("span", { class: "well", "aria-hidden": "true" }, bar),
        h("span", { class: "tick", "aria-hidden": "true" }, short),
      );
    }),
  );
}

function drawVenues(rows) {
  const kept = rows.filter(row => !years.size || years.has(binOf(row.year)));
  const counts = new Map();
  for (const row of rows) counts.set(clean(row.venue), 0);
  for (const row of kept) counts.set(clean(row.venue), counts.get(clean(row.venue)) + 1);
  const sorted = [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
  $("#venue-facet").hidden = !sorted.some(([name]) => name);
  const shown = allVenues ? sorted : sorted.slice(0, MOST_VENUES);
  const more = sorted.length - shown.length;
  $("#venues").replaceChildren(
    ...shown.map(([name, n], i) =>
      h(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-pressed": venues.has(name),
          on: {
            click: () => {
              toggle(venues, name);
              refocus("#venues", i);
            },
          },
        },
        h("span", { class: "name", dir: "auto" }, name || "no venue"),
        h("span", { class: "n" }, n),
      ),
    ),
    more > 0
      ? h(
          "button",
          {
            type: "button",
            class: "link",
            on: {
              click: () => {
                allVenues = true;
                changed();
              },
            },
          },
          `${more} more`,
        )
      : "",
  );
}

const refocus = (place, i) => $$("button", $(place))[i]?.focus();

function drawFilters() {
  const place = $("#filters");
  place.hidden = !active();
  const chip = (set, name) =>
    h(
      "button",
      { type: "button", class: "chip on", on: { click: () => toggle(set, name) } },
      h("span", { class: "hush" }, "Remove the filter "),
      h("span", { dir: "auto" }, name || "no venue"),
      h("span", { "aria-hidden": "true" }, " ×"),
    );
  place.replaceChildren(
    "Only",
    ...[...years].map(name => chip(years, name)),
    ...[...venues].map(name => chip(venues, name)),
    h(
      "button",
      {
        type: "button",
        class: "link",
        on: {
          click: () => {
            clear();
            changed();
          },
        },
      },
      "Show all",
    ),
  );
}
