// All state. What stays in this browser: drafts, each with its marks and the settings of its
// search, and how the page looks. A tab has one draft open: `state`. Two tabs with the same draft
// show the same; with two drafts they do not meet. A link holds ids and settings only; it is a
// view, `viewing`, which is kept once something in it is changed. What goes with the tab is `now`;
// `update` changes it and draws the page anew.

const OWN = "citerec:",
  PAGE = `${OWN}page`,
  OPEN = `${OWN}open`;
const MOST_DRAFTS = 30,
  MOST_IN_LINK = 100; // papers of a list
const MOST_TEXT = 2000; // characters of a sentence or title
const LOOKS = { theme: "auto", shortcuts: true, latest: "", style: "apa" };
/** @type {Mark[]} */
const KINDS = ["taken", "cited", "hidden"];
/** @type {Marks} */
const NO_MARKS = { taken: [], cited: [], hidden: [] };
/** @type {Draft} */
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
  yearMin: null,
  marks: {},
  keys: [],
  lists: [],
  searched: false,
};

/** @type {List} */
export const NO_LIST = { rows: [], selected: new Set(), fresh: new Set(), since: null };

const PLANE = { width: 0, k: 1, x: 0, y: 0 }; // where a figure is drawn

/** @type {Now} */
export const now = {
  indexes: [],
  list: NO_LIST,
  text: null,
  where: null,
  instead: "greeting",
  status: "",
  stages: [],
  notices: [],
  brought: [],
  running: null,
  again: false,
  years: new Set(),
  venues: new Set(),
  allVenues: false,
  onlyNew: false,
  sort: "best",
  exploring: false,
  current: null,
  pointed: null,
  node: null,
  connections: null,
  planes: { plane: { ...PLANE }, large: { ...PLANE } },
  paper: null,
  enlarged: false,
  help: false,
  drafting: false,
  shelf: null,
  typing: null,
  adding: { text: "", found: null, active: 0 },
  dropping: false,
  question: null,
  read: null,
  trouble: null,
  toast: null,
};

let draw = () => {};
let drawing = false,
  stale = false;

/** @type {(view: () => void) => void} */
export const drawnBy = view => {
  draw = view;
};

// Drawing may move the focus, whose events may change something: that is drawn after it.
/** @type {(changes?: Partial<Now>) => void} */
export function update(changes = {}) {
  Object.assign(now, changes);
  stale = true;
  if (drawing) return;
  drawing = true;
  try {
    while (stale) {
      stale = false;
      draw();
    }
  } finally {
    drawing = false;
  }
}

/** @type {Record<Sort, (one: Row) => number>} */
const BY = {
  best: () => 0,
  newest: row => -(row.year ?? 0),
  oldest: row => row.year ?? Infinity,
  cited: row => -(Number(row.times_cited) || row.citations),
};

// The papers of the list in the chosen order; those with a mark are not shown.
export const rows = () => {
  const away = new Set(KINDS.flatMap(kind => marks()[kind].map(one => one.id)));
  const by = BY[now.sort];
  return now.list.rows.filter(row => !away.has(row.id)).sort((a, b) => by(a) - by(b));
};

/**
 * @param {"localStorage" | "sessionStorage"} name
 * @returns {Pick<Storage, "getItem" | "setItem" | "removeItem">}
 */
function storage(name) {
  try {
    return window[name];
  } catch {
    const memory = new Map(); // nothing may be kept
    return {
      getItem: key => memory.get(key) ?? null,
      setItem: (key, value) => memory.set(key, value),
      removeItem: key => memory.delete(key),
    };
  }
}
const kept = storage("localStorage");
export const tab = storage("sessionStorage");

export let discarded = false; // something kept here was broken
export let viewing = false;
let handlers = { adopted() {}, changed() {} };

/** @type {(id: string) => string} */
const keyOf = id => `${OWN}draft:${id}`;
const newId = () => Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
/** @type {(one: any) => boolean} */
const isMark = one => typeof one.id === "string" && typeof one.title === "string";
/** @type {(one: any) => boolean} */
const isTaken = one => typeof one.note === "string" && Array.isArray(one.reasons);
/** @type {(marks: Record<string, Marks>) => boolean} */
const areMarks = marks =>
  Object.values(marks).every(
    of => KINDS.every(kind => of[kind].every(isMark)) && of.taken.every(isTaken),
  );

/** @type {(lists: any[]) => boolean} */
const areLists = lists => lists.every(one => Number.isInteger(one.at) && Array.isArray(one.ids));

/** @type {(value: any, standard: any) => boolean} */
function fits(value, standard) {
  return standard === null
    ? value === null || Number.isInteger(value)
    : value !== null &&
        typeof value === typeof standard &&
        Array.isArray(value) === Array.isArray(standard);
}

// A value that is kept here; null if there is none, or if it is broken, which removes it.
/** @type {<T extends object>(key: string, standard: T) => T | null} */
function read(key, standard) {
  try {
    const found = JSON.parse(kept.getItem(key) ?? "null");
    if (found === null) return null;
    const whole = { ...structuredClone(standard), ...found };
    if (
      Object.entries(standard).every(([name, value]) => fits(whole[name], value)) &&
      areMarks(whole.marks ?? {}) &&
      areLists(whole.lists ?? [])
    )
      return whole;
  } catch {
    /* broken */
  }
  discarded = true;
  kept.removeItem(key);
  return null;
}

/** @type {(key: string, value: object) => void} */
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

/** @type {(given: typeof handlers) => void} */
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

/** @type {(draft: Draft) => boolean} */
const hasText = draft => [draft.title, draft.abstract, draft.context].some(text => text.trim());
/** @type {(draft: Draft) => boolean} */
export const hasMarks = draft =>
  Object.values(draft.marks).some(of => KINDS.some(kind => of[kind].length));
export const isEmpty = () => !hasText(state) && !hasMarks(state);

// The drafts of this browser, the latest first.
export function drafts() {
  const keys = Object.keys(kept).filter(key => key.startsWith(keyOf("")));
  const found = keys.flatMap(key => read(key, EMPTY) ?? []);
  return found
    .filter(draft => hasText(draft) || hasMarks(draft))
    .sort((a, b) => b.changed - a.changed);
}

/** @type {(id: string) => void} */
export const remove = id => kept.removeItem(keyOf(id));

// Begins a draft; it is kept from its first change on. The corpus and the length of lists stay.
export function begin(given = {}) {
  const { index, k } = state;
  viewing = false;
  Object.assign(state, structuredClone(EMPTY), { index, k, ...given, id: newId() });
}

/** @type {(given: Partial<Draft>) => void} */
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

/** @type {(draft: Draft) => void} */
export function put(draft) {
  Object.assign(state, draft);
  keep();
}

/** @type {(draft: Draft) => void} */
export const setAside = draft => write(keyOf(draft.id), draft);

export function forget() {
  for (const key of Object.keys(kept))
    if (key.startsWith(OWN) && key !== PAGE) kept.removeItem(key);
  tab.removeItem(OPEN);
}

// The marked papers of the draft in its corpus, by the kind of their mark.
/** @type {() => Marks} */
export const marks = () => state.marks[state.index] ?? NO_MARKS;

/** @type {(kind: Mark | null, paper: Taken) => void} */
export function mark(kind, paper) {
  const { id, title } = paper;
  const others = KINDS.map(name => [name, marks()[name].filter(one => one.id !== id)]);
  /** @type {Marks} */
  const of = Object.fromEntries(others);
  if (kind === "taken") of.taken.push(paper);
  else if (kind) of[kind].push({ id, title });
  state.marks[state.index] = of;
  keep();
}

/** @type {(id: string) => Mark | null} */
export const markOf = id => KINDS.find(name => marks()[name].some(one => one.id === id)) ?? null;

/** @type {(name?: string | null) => void} */
export function chooseIndex(name) {
  const found = now.indexes.find(one => one.name === name) ?? now.indexes[0];
  state.index = found?.name ?? "";
}

/** @type {(list: string[]) => string} */
export function link(list) {
  const parts = new URLSearchParams({ index: state.index });
  if (state.k !== EMPTY.k) parts.set("k", String(state.k));
  if (state.year) parts.set("year", String(state.year));
  if (state.yearMax) parts.set("year_max", String(state.yearMax));
  if (state.yearMin) parts.set("year_min", String(state.yearMin));
  for (const kind of KINDS) for (const { id } of marks()[kind]) parts.append(kind, id);
  for (const id of list.slice(0, MOST_IN_LINK)) parts.append("list", id);
  return `${location.origin}${location.pathname}#${parts}`;
}

/** @type {(id: string) => string} */
export const paperLink = id => `#${new URLSearchParams({ index: state.index, paper: id })}`;

// What an address brings: a sentence with or without its title, as an editor sends it, or the
// marks and the list of a link of this page; null if it brings nothing.
/** @returns {Sentence | Brought | null} */
export function fromLink() {
  const indexes = now.indexes.map(one => one.name);
  const parts = new URLSearchParams(location.hash.slice(1));
  /** @type {(name: string) => string} */
  const text = name => (parts.get(name) ?? "").trim().slice(0, MOST_TEXT);
  const index = indexes.find(name => name === parts.get("index"));
  const context = text("context");
  if (context) return { index: index ?? indexes[0], context, title: text("title") };
  if (!index) return null;
  /** @type {(name: string) => number | null} */
  const number = name => {
    const value = Number(parts.get(name));
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  /** @type {(name: string) => string[]} */
  const ids = name => [...new Set(parts.getAll(name))].slice(0, 2000);
  return {
    index,
    k: Math.min(number("k") ?? EMPTY.k, 100),
    year: number("year"),
    yearMax: number("year_max"),
    yearMin: number("year_min"),
    taken: ids("taken"),
    cited: ids("cited"),
    hidden: ids("hidden"),
    list: ids("list").slice(0, MOST_IN_LINK),
    paper: parts.get("paper"),
  };
}
