// What the page uses of D3; `npm run vendor` makes one file of it.

export { forceCollide, forceLink, forceManyBody, forceSimulation, forceY } from "d3-force";
export { select } from "d3-selection";
export { zoom, zoomIdentity } from "d3-zoom";
