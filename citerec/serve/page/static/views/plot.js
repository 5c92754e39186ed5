// The plot: year by score; circles grow with citations. The list holds the same papers, for those
// who cannot see it.

import { html, nothing, svg } from "../vendor/lit-html-3.3.3/lit-html.js";
import { now, update } from "../store.js";
import { count, plain } from "../text.js";
import { openPaper } from "../travel.js";

const WIDTH = 340,
  HEIGHT = 210,
  LEFT = 36,
  RIGHT = 10,
  TOP = 12,
  BOTTOM = 24;

/** @type {(citations: number, scale?: number) => number} */
export const radius = (citations, scale = 1) =>
  scale * (3.2 + 2.1 * Math.sqrt(Math.min(citations, 400)) ** 0.9);

/** @type {(low: number, high: number, most: number) => number[]} */
function ticksOf(low, high, most) {
  const step =
    [1, 2, 5, 10, 20, 50, 100, 200, 500].find(size => (high - low) / size <= most) ?? 1000;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

// The circle of a paper, which opens it and is pointed out where else the paper is shown.
/** @type {(row: Row, x: number, y: number, r: number, kind: string, more: string) => View} */
export function dot(row, x, y, r, kind, more) {
  const { id } = row;
  return svg`<circle cx=${x.toFixed(1)} cy=${y.toFixed(1)} r=${r.toFixed(1)} data-id=${id}
    class="${kind}${now.pointed === id ? " pointed" : ""}" @click=${() => openPaper(id)}
    @pointerenter=${() => update({ pointed: id })} @pointerleave=${() => update({ pointed: null })}
    ><title>${plain(row.title)}${more}</title></circle>`;
}

/** @type {(found: Filtered) => View} */
export function plot({ all, passes }) {
  const dated = all.filter(row => row.year !== null && row.score !== null);
  const isCalibrated = dated.every(row => row.probability !== null);
  const figure = dated.length > 1 ? drawn(dated, passes, isCalibrated) : nothing;
  const without = all.length - dated.length;
  return html`<figure class="picture" id="plot-figure" ?hidden=${dated.length < 2}>
    <figcaption><span>Year and ${isCalibrated ? "probability" : "score"}</span
      ><span class="hint">size: citations</span></figcaption>
    <div id="plot">${figure}${
      without ? html`<p class="hint">${count(without, "paper")} without a year</p>` : nothing
    }</div>
  </figure>`;
}

/** @type {(dated: any[], passes: (row: Row) => boolean, isCalibrated: boolean) => View} */
function drawn(dated, passes, isCalibrated) {
  /** @type {(row: any) => number} */
  const valueOf = row => (isCalibrated ? row.probability : row.score);
  const values = dated.map(valueOf),
    years = dated.map(row => row.year);
  const [first, last] = [Math.min(...years), Math.max(...years)];
  const [low, high] = isCalibrated
    ? [0, Math.max(0.1, ...values)]
    : [Math.min(...values), Math.max(...values)];
  /** @type {(value: number, from: number, to: number) => number} */
  const part = (value, from, to) => (value - from) / (to - from || 1);
  /** @type {(year: number) => number} */
  const x = year => LEFT + 18 + part(year, first, last) * (WIDTH - LEFT - RIGHT - 34);
  /** @type {(value: number) => number} */
  const y = value => HEIGHT - BOTTOM - 8 - part(value, low, high) * (HEIGHT - TOP - BOTTOM - 16);
  /** @type {(value: number) => string} */
  const label = value => (isCalibrated ? `${Math.round(value * 100)}%` : value.toPrecision(2));
  const lines = [low, (low + high) / 2, high].map(
    value =>
      svg`<line x1=${LEFT} x2=${WIDTH - RIGHT} y1=${y(value)} y2=${y(value)}></line
        ><text x=${LEFT - 5} y=${y(value) + 3.5} text-anchor="end">${label(value)}</text>`,
  );
  const ticks = ticksOf(first, last, 5).map(
    year => svg`<text x=${x(year)} y=${HEIGHT - 5} text-anchor="middle">${year}</text>`,
  );
  /** @type {(row: any) => View} */
  const circle = row => {
    const cited = `cited ${count(row.citations, "time")} here`;
    const more = ` (${row.year}): ${label(valueOf(row))}, ${cited}`;
    const kind = passes(row) ? "dot" : "dot out";
    return dot(row, x(row.year), y(valueOf(row)), radius(row.citations), kind, more);
  };
  const text =
    `Plot of ${count(dated.length, "paper")} from ${first} to ${last}; ` +
    "the list holds the same papers";
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${text}>
    <g class="axis">${lines}${ticks}</g>
    <g>${[...dated].sort((a, b) => b.citations - a.citations).map(circle)}</g>
  </svg>`;
}
