// The steps of the browser's history: each search, each opened paper and each draft is one, with its
// corpus.

import { state } from "./store.js";

/** @type {Map<string, Visit>} */
const visits = new Map(); // what the steps of this page show
let visible = ""; // the name of the visit that is shown

// A step is pushed, or takes the place of the last one, with its address (`stay`) or without.
/** @type {(visit: Visit, how: "push" | "replace" | "stay") => void} */
export function step(visit, how) {
  visible = `${performance.timeOrigin} ${visits.size}`;
  visits.set(visible, { ...visit, index: state.index });
  if (how === "push") history.pushState({ visit: visible }, "", location.pathname);
  else if (how === "replace") history.replaceState({ visit: visible }, "", location.pathname);
  else history.replaceState({ ...history.state, visit: visible }, "");
}

// What a step shows, unless it is shown already.
/** @type {(name: string) => Visit | undefined} */
export function visited(name) {
  const found = visits.get(name);
  if (!found || name === visible) return undefined;
  visible = name;
  return found;
}
