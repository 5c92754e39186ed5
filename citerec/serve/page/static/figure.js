// The figure: places for its papers, and what zooms it. D3 computes; lit-html draws.

import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceY,
  select,
  zoom,
  zoomIdentity,
} from "./vendor/d3-force-zoom-3.0.0/d3.js";
import { $, motion } from "./browser.js";
import { now, update } from "./store.js";

const MARGIN = 26; // around the papers
export const AXIS = 22; // the height of the years below them
const APART = 24; // pixels between the middles of two papers at least: what a finger can hit
const TICKS = 120,
  MOST_TICKS = 1500; // until none overlap
const MOST_ZOOM = 12,
  STEP = 1.5;

/** @type {(row: Row) => number} */
const radius = row => 4.5 + Math.min(7, Math.sqrt(row.citations) / 2);

// Places of years from left to right. A year with many papers has more room, and a gap of many
// years takes that of a few.
/** @type {(years: (number | null)[], width: number) => Map<number | null, number>} */
function slots(years, width) {
  const papers = Map.groupBy(years, year => year);
  const all = [...papers.keys()].sort((a, b) => (a ?? -Infinity) - (b ?? -Infinity));
  /** @type {(year: number | null) => number} */
  const crowd = year => (papers.get(year)?.length ?? 0) / 8;
  let far = 0;
  const places = all.map((year, i) => {
    const before = all[i - 1];
    const gap = year === null || before === null ? 1 : year - before;
    if (i) far += Math.log2(1 + gap) + crowd(before) + crowd(year);
    return far;
  });
  const room = width - 2 * MARGIN;
  return new Map(all.map((year, i) => [year, MARGIN + room * (far ? places[i] / far : 0.5)]));
}

/** @type {(nodes: Spot[]) => boolean} */
const overlap = nodes =>
  nodes.some((a, i) =>
    nodes.some((b, j) => j < i && Math.hypot(a.x - b.x, a.y - b.y) < a.room + b.room - 1.5),
  );

/** @type {Map<string, Layout>} */
const layouts = new Map(); // the last ones

// The same papers and citations have the same places each time.
/** @type {(papers: Row[], cites: [string, string][], width: number) => Layout} */
export function layout(papers, cites, width) {
  const sorted = papers.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const ids = sorted.map(row => row.id);
  const key = JSON.stringify([ids, cites, width]);
  const known = layouts.get(key);
  if (known) return known;
  const places = new Map(ids.map((id, i) => [id, i]));
  const links = cites.flatMap(([one, other]) => {
    const [source, target] = [places.get(one), places.get(other)];
    return source === undefined || target === undefined ? [] : { source, target };
  });
  const years = slots(
    sorted.map(row => row.year),
    width,
  );
  /** @type {Spot[]} */
  const nodes = sorted.map(row => {
    const r = radius(row);
    return {
      id: row.id,
      fx: years.get(row.year),
      x: 0,
      y: NaN,
      r,
      room: Math.max(r + 3, APART / 2),
    };
  });
  const simulation = forceSimulation(nodes)
    .force("link", forceLink(links))
    .force("charge", forceManyBody().strength(-20).distanceMax(150))
    .force("y", forceY().strength(0.05))
    .force(
      "collide",
      forceCollide(/** @type {(one: any) => number} */ (one => one.room)).iterations(3),
    )
    .alphaDecay(1 - 0.001 ** (1 / TICKS))
    .stop()
    .tick(TICKS);
  for (let i = TICKS; i < MOST_TICKS && overlap(nodes); i += 50) simulation.tick(50);
  const found = { years, ...heightened(nodes, width) };
  if (layouts.size > 8) layouts.clear();
  layouts.set(key, found);
  return found;
}

// Stretches places to a height that suits the width; they are never moved together.
/** @type {(nodes: Spot[], width: number) => { places: Map<string, Spot>, height: number }} */
function heightened(nodes, width) {
  const ys = nodes.map(node => node.y),
    low = Math.min(...ys),
    spread = Math.max(...ys) - low;
  const wanted = Math.min(460, Math.max(170, width / 2)) - 2 * MARGIN;
  const by = spread ? Math.max(1, wanted / spread) : 1;
  const places = nodes.map(node => ({ ...node, y: MARGIN + (node.y - low) * by }));
  const height = Math.round(2 * MARGIN + spread * by + AXIS);
  return { places: new Map(places.map(node => [node.id, node])), height };
}

// Zoom and pan

/** @type {Record<string, any>} */
const zooms = {}; // by the id of the element in which a figure is drawn

/** @type {(id: string, changes: Partial<Plane>) => void} */
const change = (id, changes) =>
  update({ planes: { ...now.planes, [id]: { ...now.planes[id], ...changes } } });

// The wheel scrolls the page, unless the figure is alone or Ctrl is held; a finger scrolls it,
// too, unless the figure is zoomed (touch-action in panels.css).
export function watchPlanes() {
  const observer = new ResizeObserver(entries =>
    requestAnimationFrame(() => {
      for (const { target, contentRect } of entries) {
        const width = Math.floor(contentRect.width),
          id = target.id;
        zooms[id].translateExtent([
          [0, 0],
          [width, contentRect.height],
        ]);
        if (width === now.planes[id].width) continue;
        if (width) reset(id);
        change(id, { width });
      }
    }),
  );
  for (const id of Object.keys(now.planes)) {
    zooms[id] = zoom()
      .scaleExtent([1, MOST_ZOOM])
      .duration(motion() === "smooth" ? 200 : 0)
      .filter(event => (event.type === "wheel" ? event.ctrlKey || now.enlarged : !event.button))
      .on("zoom", ({ transform: { k, x, y } }) => change(id, { k, x, y }));
    select($(`#${id}`)).call(zooms[id]);
    observer.observe($(`#${id}`));
  }
}

/** @type {(id: string, steps: number, at?: { x: number, y: number }) => void} */
export const zoomBy = (id, steps, at) =>
  select($(`#${id}`)).call(zooms[id].scaleBy, STEP ** steps, at && [at.x, at.y]);

/** @type {(id: string) => void} */
export const reset = id => select($(`#${id}`)).call(zooms[id].transform, zoomIdentity);

// Brings a paper into the middle, if it is not seen.
/** @type {(id: string, at: { x: number, y: number, r: number }, height: number) => void} */
export function reveal(id, { x, y, r }, height) {
  const { width, k, ...by } = now.planes[id];
  if (x < r || y < r || x > width - r || y > height - r)
    select($(`#${id}`)).call(zooms[id].translateTo, (x - by.x) / k, (y - by.y) / k);
}
