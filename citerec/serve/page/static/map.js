// The citation map of the list: an arrow leads from a paper to the one that it cites. The layout
// is the same each time.

import { $, count, plain, s } from "./dom.js";
import { nameOf, radius } from "./plot.js";

const STEPS = 260;

// Places for nodes by springs along links and repulsion between all; it starts from a spiral, so
// it is deterministic.
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

function fitted(nodes, width, height) {
  const edge = 26;
  const scale = (values, room) => {
    const low = Math.min(...values),
      high = Math.max(...values);
    return value => edge + ((value - low) / (high - low || 1)) * (room - 2 * edge);
  };
  const x = scale(
      nodes.map(node => node.x),
      width,
    ),
    y = scale(
      nodes.map(node => node.y),
      height,
    );
  return nodes.map(node => ({ x: x(node.x), y: y(node.y) }));
}

const cache = new Map(); // the last layouts, by what they show

function placed(rows, links, width, height) {
  const key = JSON.stringify([rows.map(row => row.id), width, height]);
  if (!cache.has(key)) {
    if (cache.size > 6) cache.delete(cache.keys().next().value);
    cache.set(key, layout(rows.length, links, width, height));
  }
  return cache.get(key);
}

// Names of the papers with the most links, at most `most`; a name that would lie over an earlier
// one is left out.
function names(rows, places, degree, size, width, most) {
  const ranked = degree
    .map((n, i) => [n, i])
    .filter(([n]) => n)
    .sort(([a], [b]) => b - a)
    .map(([, i]) => i);
  const shown = [];
  for (const i of ranked) {
    if (shown.length === most) break;
    const { x } = places[i],
      y = places[i].y - size(i) - 3,
      long = nameOf(rows[i]).length * 6;
    const anchor = x < 50 ? "start" : x > width - 50 ? "end" : "middle";
    const left = { start: x, middle: x - long / 2, end: x - long }[anchor];
    if (
      shown.some(
        one => Math.abs(one.y - y) < 11 && left < one.left + one.long && one.left < left + long,
      )
    )
      continue;
    shown.push({ i, x, y, long, left, anchor });
  }
  return shown.map(one =>
    s(
      "text",
      { x: one.x.toFixed(1), y: one.y.toFixed(1), "text-anchor": one.anchor },
      nameOf(rows[one.i]),
    ),
  );
}

export function draw(
  place,
  rows,
  links,
  passes,
  on,
  { width = 340, height = 250, labels = 6 } = {},
) {
  const figure = $("#map-figure");
  figure.hidden = links.length === 0;
  if (figure.hidden) return;
  const places = placed(rows, links, width, height);
  const degree = rows.map((_, i) => links.filter(link => link.includes(i)).length);
  const size = i => radius(rows[i].citations, width > 400 ? 1.3 : 0.9);
  const years = rows.map(row => row.year).filter(year => year !== null);
  const [first, last] = [Math.min(...years), Math.max(...years)];
  const age = row =>
    row.year === null ? 0 : Math.round((4 * (row.year - first)) / Math.max(1, last - first));
  const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const line = ([i, j]) => {
    const a = places[i],
      b = places[j],
      far = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const end = size(j) + 4,
      bend = 0.12;
    const x = b.x - ((b.x - a.x) / far) * end,
      y = b.y - ((b.y - a.y) / far) * end;
    const mx = (a.x + x) / 2 - (y - a.y) * bend,
      my = (a.y + y) / 2 + (x - a.x) * bend;
    return s("path", {
      d: `M${at(a.x, a.y)}Q${at(mx, my)} ${at(x, y)}`,
      "marker-end": `url(#${place.id}-arrow)`,
      "data-ends": `${i} ${j}`,
    });
  };
  const svg = s(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label":
        `${count(links.length, "citation")} among ` + `${count(rows.length, "paper")} of the list`,
    },
    s(
      "defs",
      {},
      s(
        "marker",
        {
          id: `${place.id}-arrow`,
          viewBox: "0 0 6 6",
          refX: 5,
          refY: 3,
          markerWidth: 5,
          markerHeight: 5,
          orient: "auto",
        },
        s("path", { d: "M0 0 6 3 0 6z", class: "head" }),
      ),
    ),
    s("g", { class: "edges" }, links.map(line)),
    s(
      "g",
      {},
      rows.map((row, i) => {
        const light = ends => {
          for (const path of svg.querySelectorAll(".edges path"))
            path.classList.toggle("lit", ends && path.dataset.ends.split(" ").includes(String(i)));
        };
        return s(
          "circle",
          {
            cx: places[i].x.toFixed(1),
            cy: places[i].y.toFixed(1),
            r: size(i).toFixed(1),
            class: `node age${age(row)}${passes(row) ? "" : " out"}`,
            "data-id": row.id,
            on: {
              click: () => on.open(row),
              pointerenter: () => {
                light(true);
                on.point(row.id);
              },
              pointerleave: () => {
                light(false);
                on.point(null);
              },
            },
          },
          s("title", {}, `${plain(row.title)}${row.year ? ` (${row.year})` : ""}`),
        );
      }),
    ),
    s("g", { class: "labels" }, names(rows, places, degree, size, width, labels)),
  );
  place.replaceChildren(svg);
}
