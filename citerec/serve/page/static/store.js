// What stays in this browser: drafts, each with its marks and the settings of its search, and
// how the page looks. A tab has one draft open: `state`. Two tabs with the same draft show the
// same; with two drafts they do not meet. A link holds ids and settings only; it is a view,
// `viewing`, which is kept once something in it is changed.

const OWN = "citerec:",
  PAGE = `${OWN}page`,
  OPEN = `${OWN}open`;
const MOST_DRAFTS = 30,
  MOST_IN_LINK = 100; // papers of a list
const MOST_TEXT = 2000; // characters of a sentence or title
const LOOKS = { theme: "auto", shortcuts: true, latest: "" };
const EMPTY = {
  id: "",
  changed: 0,
  index: "",
  mode: "draft",
  title: "",
  abstract: "",
  context: "",
  withDraft: false,
  meta: {},
  metaTitle: "",
  metaYear: null,
  k: 20,
  year: null,
  yearMax: null,
  marks: {},
  searched: false,
};

const nowhere = { getItem: () => null, setItem() {}, removeItem() {} }; // nothing may be kept
/** @type {(name: "localStorage" | "sessionStorage") => Pick<Storage, keyof typeof nowhere>} */
function storage(name) {
  try {
    return window[name];
  } catch {
    return nowhere;
  }
}
const kept = storage("localStorage"),
  tab = storage("sessionStorage");

export let discarded = false; // something kept here was broken
export let viewing = false;
let handlers = {};

const keyOf = id => `${OWN}draft:${id}`;
const newId = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
const isMark = one => typeof one.id === "string" && typeof one.title === "string";
const areMarks = of =>
  Object.values(of).every(({ cited, hidden }) => cited.every(isMark) && hidden.every(isMark));

function fits(value, standard) {
  return standard === null
    ? value === null || Number.isInteger(value)
    : value !== null && typeof value === typeof standard;
}

// A value that is kept here; null if there is none, or if it is broken, which removes it.
function read(key, standard) {
  try {
    const found = JSON.parse(kept.getItem(key));
    if (found === null) return null;
    const whole = { ...structuredClone(standard), ...found };
    if (
      Object.keys(standard).every(name => fits(whole[name], standard[name])) &&
      areMarks(whole.marks ?? {})
    )
      return whole;
  } catch {
    /* broken */
  }
  discarded = true;
  kept.removeItem(key);
  return null;
}

function write(key, value) {
  try {
    kept.setItem(key, JSON.stringify(value));
  } catch {
    /* no room: the page works without */
  }
}

const opened = () => tab.getItem(OPEN) ?? looks.latest;

export const looks = read(PAGE, LOOKS) ?? { ...LOOKS };
export const state = read(keyOf(opened()), EMPTY) ?? { ...structuredClone(EMPTY), id: newId() };

export function start(given) {
  handlers = given;
  addEventListener("storage", event => {
    // of another tab
    if (event.key === null || (event.key === keyOf(state.id) && event.newValue === null))
      location.reload();
    if (event.key === PAGE) Object.assign(looks, read(PAGE, LOOKS));
    if (event.key === keyOf(state.id)) {
      Object.assign(state, read(event.key, EMPTY));
      handlers.changed();
    }
  });
}

export const keepLooks = () => write(PAGE, looks);

export function keep() {
  const wasView = viewing;
  viewing = false;
  state.changed = Date.now();
  write(keyOf(state.id), state);
  tab.setItem(OPEN, state.id);
  if (looks.latest !== state.id) {
    looks.latest = state.id;
    keepLooks();
    for (const { id } of drafts().slice(MOST_DRAFTS)) remove(id);
  }
  if (wasView) handlers.adopted();
}

const hasText = draft => [draft.title, draft.abstract, draft.context].some(text => text.trim());
const hasMarks = draft => Object.values(draft.marks).some(of => of.cited.length + of.hidden.length);
export const isEmpty = () => !hasText(state) && !hasMarks(state);

// The drafts of this browser, the latest first.
export function drafts() {
  const keys = Object.keys(kept).filter(key => key.startsWith(keyOf("")));
  const found = keys
    .map(key => read(key, EMPTY))
    .filter(draft => draft && (hasText(draft) || hasMarks(draft)));
  return found.sort((a, b) => b.changed - a.changed);
}

export const remove = id => kept.removeItem(keyOf(id));

// Begins a draft; it is kept from its first change on. The corpus and the length of lists stay.
export function begin(given = {}) {
  const { index, k } = state;
  viewing = false;
  Object.assign(state, structuredClone(EMPTY), { index, k, ...given, id: newId() });
}

export function view(given) {
  begin(given);
  viewing = true;
}

// Puts a draft as it was into this tab, and is false if it is not there any more.
export function open(id = opened()) {
  const found = read(keyOf(id), EMPTY);
  if (!found) return false;
  viewing = false;
  Object.assign(state, found);
  keep();
  return true;
}

export function put(draft) {
  Object.assign(state, draft);
  keep();
}

export const setAside = draft => write(keyOf(draft.id), draft);

export function forget() {
  for (const key of Object.keys(kept))
    if (key.startsWith(OWN) && key !== PAGE) kept.removeItem(key);
  tab.removeItem(OPEN);
}

// { cited: [{ id, title }], hidden: [{ id, title }] } of the draft in its corpus
export function marks() {
  state.marks[state.index] ??= { cited: [], hidden: [] };
  return state.marks[state.index];
}

export function mark(kind, paper) {
  const of = marks();
  for (const name of ["cited", "hidden"]) of[name] = of[name].filter(one => one.id !== paper.id);
  if (kind) of[kind].push({ id: paper.id, title: paper.title });
  keep();
}

export function link(list) {
  const { cited, hidden } = marks();
  const parts = new URLSearchParams({ index: state.index });
  if (state.k !== EMPTY.k) parts.set("k", state.k);
  if (state.year) parts.set("year", state.year);
  if (state.yearMax) parts.set("year_max", state.yearMax);
  for (const { id } of cited) parts.append("cited", id);
  for (const { id } of hidden) parts.append("hidden", id);
  for (const id of list.slice(0, MOST_IN_LINK)) parts.append("list", id);
  return `${location.origin}${location.pathname}#${parts}`;
}

export const paperLink = id => `#${new URLSearchParams({ index: state.index, paper: id })}`;

// What an address brings: a sentence with or without its title, as an editor sends it, or the
// marks and the list of a link of this page; null if it brings nothing.
export function fromLink(indexes) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const text = name => (parts.get(name) ?? "").trim().slice(0, MOST_TEXT);
  const isKnown = indexes.includes(parts.get("index"));
  if (text("context"))
    return {
      index: isKnown ? parts.get("index") : indexes[0],
      context: text("context"),
      title: text("title"),
    };
  if (!isKnown) return null;
  const number = name => {
    const value = Number(parts.get(name));
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  const ids = name => [...new Set(parts.getAll(name))].slice(0, 2000);
  return {
    index: parts.get("index"),
    k: Math.min(number("k") ?? EMPTY.k, 100),
    year: number("year"),
    yearMax: number("year_max"),
    cited: ids("cited"),
    hidden: ids("hidden"),
    list: ids("list").slice(0, MOST_IN_LINK),
    paper: parts.get("paper"),
  };
}
