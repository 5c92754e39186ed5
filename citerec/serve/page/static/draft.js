// The draft: what is searched for, and when an edited draft is another one.

import { EMPTY, hasMarks, merged } from "./kept.js";
import { keep, marks, now, state, update } from "./store.js";
import * as store from "./store.js";
import { isOf, isSame } from "./text.js";
import { bodyText, fullText } from "./where.js";

const MOST_TITLE = 4000; // characters
const EACH = { context: "all", k: 3, explain: true };

// A light edit is one of the same text; a text that is replaced in steps is compared as a whole.
export function remember() {
  const { was } = state;
  if (isOf(was.title ?? "", state.title) && isOf(was.abstract ?? "", state.abstract))
    store.settled();
}

// Puts another text in the place of that of the draft.
/** @type {(changes: Partial<Draft>) => void} */
export function replace(changes) {
  settle();
  store.settled();
  Object.assign(state, changes);
  settle();
}

// A text of which neither half of the title nor half of the abstract stays is that of a new draft,
// to which the marks of the former do not belong: they stay with it, and the author is asked.
export function settle() {
  const { was } = state;
  if (!isNamed(was) || !isNamed(state) || isSame(was, state)) return;
  const last = structuredClone(state);
  const { file, keys, lists, searched } = last;
  if (!hasMarks(last) && !searched) return;
  const old = { ...last, ...was };
  store.setAside(old);
  const { title, abstract, context, mode, withDraft, yearMax, yearMin } = last;
  const year = last.year === last.metaYear ? null : last.year;
  store.begin({ title, abstract, context, mode, withDraft, year, yearMax, yearMin });
  keep();
  const undo = () => {
    const both = merged(EMPTY, state, last).marks;
    store.remove(state.id);
    Object.assign(state, { id: old.id, marks: both, keys, lists, searched });
    if (!state.file.name) state.file = file;
    store.settled();
    store.put(state);
    update({ question: null });
  };
  const question = { draft: state.id, title: store.titleOf(old), undo };
  update({ again: false, question });
}

/** @type {(draft: Draft["was"]) => boolean} */
const isNamed = ({ title, abstract }) => Boolean(title?.trim() || abstract?.trim());

// Changes the open draft as its author edits it.
/** @type {(changes: Partial<Draft>) => void} */
export function edit(changes) {
  Object.assign(state, changes);
  keep();
  update();
}

/** @type {(name: "title" | "abstract" | "context", text: string) => void} */
export function write(name, text) {
  state[name] = text;
  edit(state.title ? {} : { meta: {} });
}

// What is searched for; a text if something is missing.
/** @type {(mode?: Draft["mode"]) => string | object} */
export function request(mode = state.mode) {
  const { taken, cited, hidden } = marks();
  const known = [...cited, ...taken.filter(one => !one.bibtex)];
  /** @type {(papers: Named[]) => string[] | null} */
  const ids = papers => (papers.length ? papers.map(paper => paper.id) : null);
  const common = {
    index: state.index || null,
    k: state.k,
    year_max: state.yearMax,
    year_min: state.yearMin,
    cited: ids(known),
    rejected: ids(hidden),
  };
  // the first line of a free text is its title
  const [title, abstract] = [state.title.trim(), state.abstract.trim()];
  const [first, ...rest] = title ? [title, abstract] : abstract.split(/\n+/);
  const meta = isOf(state.title, state.metaTitle) ? state.meta : {}; // is that of the file's title
  const body = mode === "draft" ? bodyText() : undefined;
  const query = { title: first, abstract: rest.join(" "), body, year: state.year, ...meta };
  const draft = first.trim() ? { query } : null;
  if (mode === "each") {
    const title = first.trim().slice(0, MOST_TITLE) || "Untitled";
    const year_max = state.yearMax ?? state.year;
    if (draft || fullText())
      return { ...common, ...EACH, title, abstract: rest.join(" "), year_max };
    return "Choose a file, or paste its text.";
  }
  if (mode === "sentence") {
    if (!state.context.trim()) return "Write the sentence that needs a reference.";
    return { ...common, context: state.context, ...(state.withDraft ? draft : {}) };
  }
  if (draft) return { ...common, ...draft };
  if (known.length) return common;
  return now.read && "busy" in now.read ? now.read.busy : "Write a title, or choose a file.";
}
