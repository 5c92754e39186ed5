// The citation map of the list: an arrow leads from a paper to the one that it cites. The layout
// is the same each time.

import { html, nothing, svg } from "../vendor/lit-html-3.3.3/lit-html.js";
import { now } from "../store.js";
import { count, nameOf } from "../text.js";
import { dot, radius } from "./plot.js";

const STEPS = 260;

// Places for nodes by springs along links and repulsion between all; it starts from a spiral, so
// it is deterministic.
/** @type {(size: number, links: number[][], width: number, height: number) => Place[]} */
function layout(size, links, width, height) {
  const nodes = Array.from({ length: size }, (_, i) => {
    const angle = i * 2.39996,
      far = 12 * Math.sqrt(i + 0.5);
    return { x: Math.cos(angle) * far, y: Math.sin(angle) * far * 0.8, dx: 0, dy: 0 };
  });
  const linked = new Set(links.flat());
  const near = Math.min(width, height) / Math.max(3.2, Math.sqrt(size));
  for (let step = 0; step < STEPS; step++) {
    const heat = near * 0.6 * (1 - step / STEPS);
    for (const node of nodes) node.dx = node.dy = 0;
    for (let i = 0; i < size; i++) {
      for (let j = 0; j < i; j++) {
        const a = nodes[i],
          b = nodes[j];
        let x = a.x - b.x,
          y = a.y - b.y,
          square = x * x + y * y;
        if (square < 0.01) {
          x = 0.1 * (i - j);
          y = 0.1;
          square = x * x + y * y;
        }
        const push = (near * near) / square;
        a.dx += x * push;
        a.dy += y * push;
        b.dx -= x * push;
        b.dy -= y * push;
      }
    }
    for (const [i, j] of links) {
      const a = nodes[i],
        b = nodes[j],
        x = a.x - b.x,
        y = a.y - b.y;
      const pull = Math.hypot(x, y) / near / 2;
      a.dx -= x * pull;
      a.dy -= y * pull;
      b.dx += x * pull;
      b.dy += y * pull;
    }
    nodes.forEach((node, i) => {
      const home = linked.has(i) ? 0.25 : 0.6;
      node.dx -= node.x * home;
      node.dy -= node.y * home * 1.5;
      const speed = Math.hypot(node.dx, node.dy) || 1;
      node.x += (node.dx / speed) * Math.min(speed, heat);
      node.y += (node.dy / speed) * Math.min(speed, heat);
    });
  }
  return fitted(nodes, width, height);
}

/** @type {(nodes: Place[], width: number, height: number) => Place[]} */
function fitted(nodes, width, height) {
  const edge = 26;
  /** @type {(values: number[], room: number) => (value: number) => number} */
  const scale = (values, room) => {
    const low = Math.min(...values),
      high = Math.max(...values);
    return value => edge + ((value - low) / (high - low || 1)) * (room - 2 * edge);
  };
  const xs = nodes.map(node => node.x),
    ys = nodes.map(node => node.y);
  const x = scale(xs, width),
    y = scale(ys, height);
  return nodes.map(node => ({ x: x(node.x), y: y(node.y) }));
}

/** @type {Map<string, Place[]>} */
const cache = new Map(); // the last layouts, by what they show

/** @type {(rows: Row[], links: number[][], width: number, height: number) => Place[]} */
function placed(rows, links, width, height) {
  const key = JSON.stringify([rows.map(row => row.id), width, height]);
  const places = cache.get(key) ?? layout(rows.length, links, width, height);
  if (cache.size > 6) cache.clear();
  cache.set(key, places);
  return places;
}

// Names of the papers with the most links, at most `most`; a name that would lie over an earlier
// one is left out.
/** @type {(rows: Row[], nodes: Spot[], most: number, width: number) => View[]} */
function names(rows, nodes, most, width) {
  const ranked = nodes.map((node, i) => ({ ...node, i })).filter(node => node.degree);
  ranked.sort((a, b) => b.degree - a.degree);
  /** @type {(Place & { text: string, long: number, left: number, anchor: string })[]} */
  const shown = [];
  for (const { x, y: middle, size, i } of ranked) {
    if (shown.length === most) break;
    const text = nameOf(rows[i]),
      long = text.length * 6,
      y = middle - size - 3;
    const anchor = x < 50 ? "start" : x > width - 50 ? "end" : "middle";
    const left = x - { start: 0, middle: long / 2, end: long }[anchor];
    /** @type {(one: { y: number, left: number, long: number }) => boolean} */
    const isOver = one =>
      Math.abs(one.y - y) < 11 && left < one.left + one.long && one.left < left + long;
    if (!shown.some(isOver)) shown.push({ text, x, y, long, left, anchor });
  }
  return shown.map(
    ({ text, x, y, anchor }) =>
      svg`<text x=${x.toFixed(1)} y=${y.toFixed(1)} text-anchor=${anchor}>${text}</text>`,
  );
}

/** @type {(x: number, y: number) => string} */
const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// The bent line from one circle to the edge of another.
/** @type {(a: Spot, b: Spot) => string} */
function bent(a, b) {
  const far = Math.hypot(b.x - a.x, b.y - a.y) || 1,
    end = b.size + 4,
    bend = 0.12;
  const x = b.x - ((b.x - a.x) / far) * end,
    y = b.y - ((b.y - a.y) / far) * end;
  const middle = at((a.x + x) / 2 - (y - a.y) * bend, (a.y + y) / 2 + (x - a.x) * bend);
  return `M${at(a.x, a.y)}Q${middle} ${at(x, y)}`;
}

/** @type {(found: Filtered, name: string, size: [number, number], labels: number) => View} */
export function map({ all, passes }, name, [width, height], labels) {
  const place = new Map(all.map((row, i) => [row.id, i]));
  const { links: cites, rows } = now.list;
  const links = cites
    .map(([i, j]) => [place.get(rows[i].id) ?? -1, place.get(rows[j].id) ?? -1])
    .filter(pair => !pair.includes(-1));
  if (!links.length) return nothing;
  const nodes = placed(all, links, width, height).map((node, i) => ({
    ...node,
    degree: links.filter(link => link.includes(i)).length,
    size: radius(all[i].citations, width > 400 ? 1.3 : 0.9),
  }));
  const years = all.map(row => row.year).filter(year => year !== null);
  const [first, last] = [Math.min(...years), Math.max(...years)];
  /** @type {(row: Row) => number} */
  const age = ({ year }) =>
    year === null ? 0 : Math.round((4 * (year - first)) / Math.max(1, last - first));
  const lit = place.get(now.pointed ?? "") ?? -1;
  const text = `${count(links.length, "citation")} among ${count(all.length, "paper")} of the list`;
  return html`<svg viewBox="0 0 ${width} ${height}" role="img" aria-label=${text}>
    <defs>
      <marker id="${name}-arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="5"
        markerHeight="5" orient="auto"><path d="M0 0 6 3 0 6z" class="head"></path></marker>
    </defs>
    <g class="edges">${links.map(
      ([i, j]) =>
        svg`<path d=${bent(nodes[i], nodes[j])} class=${i === lit || j === lit ? "lit" : ""}
          marker-end="url(#${name}-arrow)"></path>`,
    )}</g>
    <g>${all.map((row, i) => {
      const kind = `node age${age(row)}${passes(row) ? "" : " out"}`;
      const { x, y, size } = nodes[i];
      return dot(row, x, y, size, kind, row.year ? ` (${row.year})` : "");
    })}</g>
    <g class="labels">${names(all, nodes, labels, width)}</g>
  </svg>`;
}
