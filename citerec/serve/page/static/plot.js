// The plot: year by score; circles grow with citations. The list holds the same papers, for those
// who cannot see it.

import { $, $$, clean, count, h, plain, s } from "./dom.js";

const WIDTH = 340,
  HEIGHT = 210,
  LEFT = 36,
  RIGHT = 10,
  TOP = 12,
  BOTTOM = 24;

export const radius = (citations, scale = 1) =>
  scale * (3.2 + 2.1 * Math.sqrt(Math.min(citations, 400)) ** 0.9);

function ticksOf(low, high, most) {
  const step =
    [1, 2, 5, 10, 20, 50, 100, 200, 500].find(size => (high - low) / size <= most) ?? 1000;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

export function draw(rows, passes, on) {
  const dated = rows.filter(row => row.year !== null && row.score !== null);
  const figure = $("#plot-figure");
  figure.hidden = dated.length < 2;
  if (figure.hidden) return;
  const calibrated = dated.every(row => row.probability !== null);
  $("#plot-measure").textContent = calibrated ? "probability" : "score";
  const valueOf = row => (calibrated ? row.probability : row.score);
  const values = dated.map(valueOf),
    years = dated.map(row => row.year);
  const [first, last] = [Math.min(...years), Math.max(...years)];
  const [low, high] = calibrated
    ? [0, Math.max(0.1, ...values)]
    : [Math.min(...values), Math.max(...values)];
  const x = year =>
    LEFT + 18 + ((year - first) / Math.max(1, last - first)) * (WIDTH - LEFT - RIGHT - 34);
  const y = value =>
    HEIGHT - BOTTOM - 8 - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM - 16);
  const label = value => (calibrated ? `${Math.round(value * 100)}%` : value.toPrecision(2));
  const lines = [0, 0.5, 1].map(part => low + part * (high - low));
  const svg = s(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label":
        `Plot of ${count(dated.length, "paper")} from ${first} to ${last}; ` +
        "the list holds the same papers",
    },
    s(
      "g",
      { class: "axis" },
      lines
        .map(value => [
          s("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
          s("text", { x: LEFT - 5, y: y(value) + 3.5, "text-anchor": "end" }, label(value)),
        ])
        .flat(),
      ticksOf(first, last, 5).map(year =>
        s("text", { x: x(year), y: HEIGHT - 5, "text-anchor": "middle" }, year),
      ),
    ),
    s(
      "g",
      {},
      [...dated]
        .sort((a, b) => b.citations - a.citations)
        .map(row =>
          s(
            "circle",
            {
              cx: x(row.year).toFixed(1),
              cy: y(valueOf(row)).toFixed(1),
              r: radius(row.citations).toFixed(1),
              class: passes(row) ? "dot" : "dot out",
              "data-id": row.id,
              on: {
                click: () => on.open(row),
                pointerenter: () => on.point(row.id),
                pointerleave: () => on.point(null),
              },
            },
            s(
              "title",
              {},
              `${plain(row.title)} (${row.year}): ${label(valueOf(row))}, ` +
                `cited ${count(row.citations, "time")} here`,
            ),
          ),
        ),
    ),
  );
  $("#plot").replaceChildren(svg);
  if (dated.length < rows.length)
    $("#plot").append(
      h("p", { class: "hint" }, `${count(rows.length - dated.length, "paper")} without a year`),
    );
}

/** @param {string | null} id */
export function point(id) {
  for (const dot of $$(".dot, .node")) dot.classList.toggle("pointed", dot.dataset.id === id);
}

export const nameOf = row => {
  const first = clean(row.authors[0] ?? "");
  const surname = first.includes(",") ? first.split(",")[0] : first.split(" ").at(-1);
  return [surname || plain(row.title).split(" ").slice(0, 2).join(" "), row.year ?? ""]
    .join(" ")
    .trim();
};
