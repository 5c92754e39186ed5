// One figure of the list and the draft's own references: years across, a line from a paper to one
// that it cites. It is one stop of the Tab key. Names that would overlap are left out until there
// is room; the line below has the whole title of the paper in focus or at the pointer.

import { html, nothing, svg } from "../vendor/lit-html-3.3.3/lit-html.js";
import { repeat } from "../vendor/lit-html-3.3.3/directives/repeat.js";
import { AXIS, layout, reset, reveal, zoomBy } from "../figure.js";
import { markOf, now, update } from "../store.js";
import { count, labelled } from "../text.js";
import { openPaper } from "../travel.js";

const LINE = 15, // pixels: the height of a name, at any zoom
  BETWEEN = 36; // two years of the axis
/** @type {Set<Mark | null>} */
const OWN = new Set(["cited", "taken"]);
const pen = /** @type {CanvasRenderingContext2D} */ (
  document.createElement("canvas").getContext("2d")
);

/** @type {(found: Filtered, id: string) => View} */
export function figure(found, id) {
  const plane = now.planes[id],
    isWhole = plane.k === 1;
  const own = ownOf([...now.list.rows, ...(now.connections?.own ?? [])]);
  const scene =
    plane.width && found.all.length && now.connections ? sceneOf(found, own, plane) : null;
  const pointed = scene?.nodes.find(node => node.row.id === now.pointed);
  const yours = own.length ? ` and ${count(own.length, "reference")} of yours` : "";
  const text = `${count(found.all.length, "paper")} of the list${yours}. A line leads from a paper
    to one that it cites, on its left. Size: citations in this corpus.`;
  /** @type {(text: string, help: string, run: () => void, isOff: boolean) => View} */
  const button = (text, help, run, isOff) =>
    html`<button type="button" class="quiet" aria-label=${help} title=${help} ?disabled=${isOff}
      @click=${run}>${text}</button>`;
  return html`<div class="legend">
      <span>${key(false)} the list</span>
      ${own.length ? html`<span>${key(true)} your references</span>` : nothing}
      <span class="grow"></span>
      ${button("+", "Zoom in (+)", () => zoomBy(id, 1), false)}
      ${button("−", "Zoom out (-)", () => zoomBy(id, -1), isWhole)}
      ${button("1:1", "The whole figure (0)", () => reset(id), isWhole)}
    </div>
    <div class="plane${isWhole ? "" : " zoomed"}" id=${id}
      >${scene ? drawn(scene, id) : nothing}</div>
    <p class="hint about" dir="auto">${pointed ? pointed.text : text}</p>`;
}

// The references of the draft among some papers, each once.
/** @type {(papers: Row[]) => Row[]} */
const ownOf = papers => {
  const marked = papers.filter(row => OWN.has(markOf(row.id)));
  return [...new Map(marked.map(row => [row.id, row])).values()];
};

/** @type {(isOwn: boolean, r: number) => View} */
const shape = (isOwn, r) =>
  isOwn
    ? svg`<rect class="shape" x=${-0.9 * r} y=${-0.9 * r} width=${1.8 * r} height=${1.8 * r}
        rx="2"></rect>`
    : svg`<circle class="shape" r=${r}></circle>`;

/** @type {(isOwn: boolean) => View} */
const key = isOwn =>
  html`<svg aria-hidden="true" width="14" height="14" viewBox="-7 -7 14 14"
    ><g class="node${isOwn ? " own" : ""}">${shape(isOwn, 5)}</g></svg>`;

// What is drawn: places in pixels of the window, from left to right.
/** @type {(found: Filtered, own: Row[], plane: Plane) => Scene} */
function sceneOf({ all, passes }, own, { width, k, x: left, y: top }) {
  const papers = [...all, ...own],
    links = now.connections?.links ?? [];
  const { places, years, height } = layout(papers, links, width);
  const cites = links.filter(ends => ends.every(id => places.has(id)));
  const [citing, cited] = [0, 1].map(end => Map.groupBy(cites, ends => ends[end]));
  const nodes = papers.map((row, i) => {
    const { x, y, r } = /** @type {Spot} */ (places.get(row.id)),
      isOwn = i >= all.length;
    const [cites, citedBy] = [citing, cited].map(ends => ends.get(row.id)?.length ?? 0);
    const title = `${row.title}${row.year ? ` (${row.year})` : ""}`;
    const text =
      `${title}: ${isOwn ? "your reference" : "in the list"}; ` +
      `cites ${cites}, cited by ${citedBy} of these`;
    const more = { row, r, isOwn, isOut: !isOwn && !passes(row), degree: cites + citedBy, text };
    return { ...more, x: x * k + left, y: y * k + top };
  });
  nodes.sort((a, b) => a.x - b.x || a.y - b.y);
  let last = -BETWEEN;
  const ticks = [...years].flatMap(([year, place]) => {
    const x = place * k + left;
    if (x - last < BETWEEN || x < 14 || x > width - 14) return [];
    last = x;
    return { x, text: year === null ? "?" : `${year}` };
  });
  return { nodes, cites, ticks, width, height };
}

/** @type {(scene: Scene, id: string) => View} */
function drawn({ nodes, cites, ticks, width, height }, id) {
  const at = new Map(nodes.map(node => [node.row.id, node]));
  const current = at.get(now.node ?? "") ?? nodes[0],
    bottom = height - AXIS;
  /** @type {(event: any) => void} */
  const focused = event => {
    const node = at.get(event.target.dataset.id);
    if (!node) return;
    update({ node: node.row.id, pointed: node.row.id });
    reveal(id, node, bottom);
  };
  /** @type {(event: any) => void} */
  const pressed = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const next = nextOf(event.key, nodes, current);
    if (next) event.currentTarget.querySelector(`[data-id="${CSS.escape(next.row.id)}"]`).focus();
    else if (event.key === "Enter") openPaper(current.row.id);
    else if (event.key === "0") reset(id);
    else if (event.key === "-") zoomBy(id, -1, current);
    else if ("+=".includes(event.key)) zoomBy(id, 1, current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  /** @type {(node: PaperNode) => View} */
  const drawnNode = ({ row, x, y, r, isOwn, isOut, text }) => {
    const kinds = [isOwn && " own", isOut && " out", row.id === now.pointed && " pointed"];
    return svg`<g class="node${kinds.filter(Boolean).join("")}" role="button" aria-label=${text}
      data-id=${row.id} tabindex=${row === current.row ? 0 : -1}
      transform="translate(${x} ${y})" @click=${() => openPaper(row.id)}
      @pointerenter=${() => update({ pointed: row.id })}
      @pointerleave=${() => update({ pointed: null })}
      ><circle class="hit" r="12"></circle>${shape(isOwn, r)}</g>`;
  };
  const edges = cites.map(ends => {
    const [from, to] = ends.map(id => /** @type {PaperNode} */ (at.get(id)));
    const isLit = ends.includes(now.pointed ?? "");
    if (!isLit && from.isOwn && to.isOwn) return nothing; // too many to be read
    const bend = (to.x - from.x) / 8;
    const middle = `${(from.x + to.x) / 2} ${(from.y + to.y) / 2 + bend}`;
    return svg`<path class=${isLit ? "lit" : ""}
      d="M${from.x} ${from.y}Q${middle} ${to.x} ${to.y}"></path>`;
  });
  return html`<svg class="figure" width=${width} height=${height}
    viewBox="0 0 ${width} ${height}" role="group" @keydown=${pressed} @focusin=${focused}
    @focusout=${() => update({ pointed: null })}
    aria-label="Papers by year: arrow keys move, Enter opens, + and - zoom, 0 shows all">
    <g class="axis">${ticks.map(
      ({ x, text }) =>
        svg`<line x1=${x} x2=${x} y2=${bottom}></line
          ><text x=${x} y=${height - 6} text-anchor="middle">${text}</text>`,
    )}</g>
    <svg width=${width} height=${bottom}>
      <g class="edges" stroke-opacity=${Math.max(0.15, Math.min(0.5, 40 / edges.length))}
        >${edges}</g>
      <g>${repeat(nodes, node => node.row.id, drawnNode)}</g>
      <g class="labels" aria-hidden="true">${labels(nodes, width, bottom)}</g>
    </svg>
  </svg>`;
}

/** @type {Record<string, number>} */
const STEPS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

// The paper to which a key leads: the next in time, or the nearest one above or below.
/** @type {(key: string, nodes: PaperNode[], from: PaperNode) => PaperNode | undefined} */
function nextOf(key, nodes, from) {
  const at = nodes.indexOf(from) + (STEPS[key] ?? 0);
  if (STEPS[key]) return nodes[Math.max(0, Math.min(nodes.length - 1, at))];
  const sign = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!sign) return undefined;
  /** @type {(node: PaperNode) => number} */
  const far = node => Math.hypot(3 * (node.x - from.x), node.y - from.y);
  const beyond = nodes.filter(node => sign * (node.y - from.y) > 1);
  return beyond.sort((a, b) => far(a) - far(b))[0] ?? from;
}

// First authors at the papers with the most citations; the pointed one always has its name.
/** @type {(nodes: PaperNode[], width: number, height: number) => View[]} */
function labels(nodes, width, height) {
  pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  /** @type {(node: PaperNode) => number} */
  const weight = ({ row, degree }) => (row.id === now.pointed ? Infinity : degree);
  const taken = nodes.map(({ x, y, r }) => ({ x: x - r, y: y - r, width: 2 * r, height: 2 * r }));
  const ranked = nodes.toSorted((a, b) => weight(b) - weight(a));
  const names = labelled(nodes.map(node => node.row));
  return ranked.flatMap(({ row, x, y, r, isOut }) => {
    const text = names.get(row.id) ?? "";
    const size = { width: pen.measureText(text).width + 2, height: LINE };
    const nearby = [
      { x: x + r + 2, y: y - LINE / 2 },
      { x: x - size.width / 2, y: y - r - LINE },
      { x: x - size.width / 2, y: y + r },
      { x: x - r - 2 - size.width, y: y - LINE / 2 },
    ];
    const place = nearby
      .map(place => ({ ...place, ...size }))
      .find(box => isWithin(box, width, height) && !taken.some(other => isOver(box, other)));
    if (!place || isOut) return [];
    taken.push(place);
    return svg`<text x=${place.x + 1} y=${place.y + 11} class=${row.id === now.pointed ? "lit" : ""}
      >${text}</text>`;
  });
}

/** @type {(box: Box, width: number, height: number) => boolean} */
const isWithin = ({ x, y, ...box }, width, height) =>
  x >= 0 && y >= 0 && x + box.width <= width && y + box.height <= height;

/** @type {(a: Box, b: Box) => boolean} */
const isOver = (a, b) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
