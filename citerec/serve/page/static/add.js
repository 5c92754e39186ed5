// Adding one paper that the author cites, by words of its title or by its DOI.

import { setMark } from "./search.js";
import { Problem, get } from "./server.js";
import { now, state, update } from "./store.js";

const MOST = 6,
  READ = 50, // papers, of which those are shown
  LEAST = 3, // characters of a title
  PAUSE = 200; // milliseconds without a key, after which the text is looked up
const DOI = /\b10\.\d{4,9}\/\S+/;
let timer = 0,
  lookingUp = new AbortController();

/** @type {(text: string) => void} */
export function lookUp(text) {
  clearTimeout(timer);
  lookingUp.abort();
  lookingUp = new AbortController();
  const { signal } = lookingUp,
    wanted = text.trim();
  if (wanted.length < LEAST) {
    update({ adding: { text, found: null, active: 0 } });
    return;
  }
  update({ adding: { ...now.adding, text } });
  timer = setTimeout(async () => {
    const found = await papers(wanted, signal);
    if (!signal.aborted) update({ adding: { text, found, active: 0 } });
  }, PAUSE);
}

// Titles that have most of the typed words, of which the last may be half of one, first.
/** @type {(text: string, papers: Brief[]) => Brief[]} */
function nearest(text, papers) {
  const typed = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  /** @type {(paper: Brief) => number} */
  const fit = ({ title }) => {
    const words = title.toLowerCase().split(/[^\p{L}\p{N}]+/u);
    return typed.filter(part => words.some(word => word.startsWith(part))).length;
  };
  return papers.toSorted((a, b) => fit(b) - fit(a)).slice(0, MOST);
}

/** @type {(text: string, signal: AbortSignal) => Promise<Brief[] | null>} */
async function papers(text, signal) {
  const { index } = state,
    [doi] = text.match(DOI) ?? [];
  try {
    if (!doi) {
      const asked = { index, q: text, limit: READ, as_typed: true };
      const { results } = await get("v1/search", asked, signal);
      return nearest(text, results);
    }
    return [(await get(`v1/papers/${encodeURIComponent(doi)}`, { index, limit: 1 }, signal)).paper];
  } catch (error) {
    return error instanceof Problem ? [] : null;
  }
}

/** @type {(paper: Brief) => void} */
export function add(paper) {
  setMark(paper, "cited");
  lookUp("");
}

/** @type {(event: KeyboardEvent) => void} */
export function keyed(event) {
  const { found, active } = now.adding;
  const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") lookUp("");
  else if (steps && found?.length) {
    const next = (active + steps + found.length) % found.length;
    update({ adding: { ...now.adding, active: next } });
  } else if (event.key !== "Enter") return;
  else if (found?.length) add(found[active]);
  event.preventDefault(); // Enter would send the form
}
