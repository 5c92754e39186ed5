// What stays in the browser: the draft, the marks of each index, the settings. A link of the page holds ids and settings only.

const KEY = "citerec";
const MOST_IN_LINK = 100; // papers of a list
const MOST_TEXT = 2000; // characters of a sentence or title
const EMPTY = {
  index: "", mode: "draft", title: "", abstract: "", context: "", withDraft: false, meta: {}, metaTitle: "", metaYear: null,
  k: 20, year: null, yearMax: null, marks: {}, theme: "auto", shortcuts: true, searched: false,
};

export const state = { ...EMPTY, ...read() };

if (!state.marks || typeof state.marks !== "object") state.marks = {};

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return found && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

export function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
  } catch { /* no room, or not allowed: the page works without */ }
}

export function forget() {
  const { index, theme } = state;
  Object.assign(state, structuredClone(EMPTY), { index, theme });
  keep();
}

// { cited: [{ id, title }], hidden: [{ id, title }] } of the chosen index
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

// What an address brings: a sentence with or without its title, as an editor sends it, or the marks and the list of a
// link of this page; null if it brings nothing.
export function fromLink(indexes) {
  const parts = new URLSearchParams(location.hash.slice(1));
  const text = name => (parts.get(name) ?? "").trim().slice(0, MOST_TEXT);
  const isKnown = indexes.includes(parts.get("index"));
  if (text("context")) return { index: isKnown ? parts.get("index") : indexes[0], context: text("context"), title: text("title") };
  if (!isKnown) return null;
  const number = name => {
    const value = Number(parts.get(name));
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  const ids = name => [...new Set(parts.getAll(name))].slice(0, 2000);
  return {
    index: parts.get("index"), k: Math.min(number("k") ?? EMPTY.k, 100), year: number("year"), yearMax: number("year_max"),
    cited: ids("cited"), hidden: ids("hidden"), list: ids("list").slice(0, MOST_IN_LINK), paper: parts.get("paper"),
  };
}
