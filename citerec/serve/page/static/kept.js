// What this browser keeps for the page: how it looks, and drafts, each in one record that is
// replaced whole. What it does not take, because its storage is full or closed to the page, stays
// in the memory of the tab: it is read first, and written as soon as there is room. `faults` is
// what the author is told.

const OWN = "citerec:",
  DRAFT = `${OWN}draft:`,
  BROKEN = `${OWN}broken:`;
export const PAGE = `${OWN}page`,
  OPEN = `${OWN}open`; // the draft that the tab has open
/** @type {Mark[]} */
export const KINDS = ["taken", "cited", "hidden"];
/** @type {Draft} */
export const EMPTY = {
  id: "",
  changed: 0,
  index: "",
  mode: "draft",
  title: "",
  abstract: "",
  context: "",
  file: { name: "", sentences: 0 },
  withDraft: false,
  meta: {},
  metaTitle: "",
  metaYear: null,
  k: 20,
  year: null,
  yearMax: null,
  yearMin: null,
  was: {},
  marks: {},
  keys: [],
  lists: [],
  searched: false,
};

/** @type {(name: "localStorage" | "sessionStorage", second?: Storing) => Storing} */
function storage(name, second) {
  const spilt = second?.keys().filter(key => key.startsWith(OWN) && key !== OPEN) ?? [];
  const memory = new Map(spilt.map(key => [key, second?.getItem(key) ?? ""]));
  /** @type {any} */
  let lasting = null; // a Storage, unless it is closed to the page
  try {
    window[name].getItem(OWN);
    lasting = window[name];
  } catch {
    /* `memory` has all */
  }
  /** @type {(key: string) => string | null} */
  const stored = key => lasting?.getItem(key) ?? null;
  return {
    isOpen: lasting !== null,
    memory,
    stored,
    keys: () => [...new Set([...Object.keys(lasting ?? {}), ...memory.keys()])],
    getItem: key => memory.get(key) ?? stored(key),
    setItem(key, value) {
      memory.set(key, value);
      try {
        lasting.setItem(key, value);
      } catch {
        second?.setItem(key, value); // no room: what was stored is as it was
        return false;
      }
      second?.removeItem(key);
      return memory.delete(key);
    },
    removeItem(key) {
      memory.delete(key);
      second?.removeItem(key);
      lasting?.removeItem(key);
    },
  };
}
export const tab = storage("sessionStorage");
export const kept = storage("localStorage", tab); // what has no room there outlives a reload

// What hears of each draft that is written or removed here; the desk has a copy of those it `has`.
/** @type {Hooks} */
export const hooks = { changed() {}, removed() {}, has: () => false };

/** @type {Faults} */
export const faults = { removed: new Set(), dropped: [], broken: 0 };

/** @type {(id: string) => string} */
export const keyOf = id => `${DRAFT}${id}`;

/** @type {(draft: Draft) => boolean} */
const hasText = draft => [draft.title, draft.abstract, draft.context].some(text => text.trim());
/** @type {(draft: Draft) => boolean} */
export const hasMarks = draft =>
  Object.values(draft.marks).some(of => KINDS.some(kind => of[kind].length));
/** @type {(draft: Draft) => boolean} */
export const hasContent = draft => hasText(draft) || hasMarks(draft);

// Reading

/** @type {(value: any) => boolean} */
const isText = value => typeof value === "string";
/** @type {(one: any) => boolean} */
const isMark = one =>
  isText(one.id) && isText(one.title) && isText(one.note ?? "") && fits(one.at ?? null, null);
/** @type {(one: any) => boolean} */
const isTaken = one =>
  [one.note, one.doi, one.coins, ...one.reasons].every(isText) && fits(one.year, null);
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

// A value with what it lacks of the standard; null if it is broken.
/** @type {<T extends object>(found: any, standard: T) => T | null} */
function checked(found, standard) {
  try {
    if (typeof found !== "object" || Array.isArray(found)) return null;
    const whole = { ...structuredClone(standard), ...found };
    const isWhole =
      Object.entries(standard).every(([name, value]) => fits(whole[name], value)) &&
      areMarks(whole.marks ?? {}) &&
      areLists(whole.lists ?? []);
    return isWhole && found ? whole : null;
  } catch {
    return null;
  }
}

/** @type {(found: any) => Draft | null} */
export const draftIn = found => (found?.id ? checked(found, EMPTY) : null);

/** @type {<T extends object>(text: string | null | undefined, standard: T) => T | null} */
function parsed(text, standard) {
  try {
    return checked(JSON.parse(text ?? "null"), standard);
  } catch {
    return null;
  }
}

// A value that is kept here; null if there is none, or if it is broken, which sets it apart.
/** @type {<T extends object>(key: string, standard: T) => T | null} */
export function read(key, standard) {
  const text = kept.getItem(key);
  if (text === null) return null;
  const whole = parsed(text, standard);
  if (whole && (!("id" in whole) || keyOf(`${whole.id}`) === key)) return whole;
  setApart(key, text);
  return null;
}

/** @type {(key: string, text: string) => void} */
function setApart(key, text) {
  const name = `${Date.now().toString(36)}:${key.slice(OWN.length)}`;
  kept.removeItem(key);
  kept.setItem(`${BROKEN}${name}`, text);
  faults.broken++;
}

// All drafts, the latest first.
/** @returns {Draft[]} */
const all = () =>
  kept
    .keys()
    .filter(key => key.startsWith(DRAFT))
    .flatMap(key => read(key, EMPTY) ?? [])
    .sort((a, b) => b.changed - a.changed);
export const drafts = () => all().filter(hasContent);
export const withoutMarks = () => all().filter(draft => !hasMarks(draft));

// What could not be read, as it was found.
export const broken = () =>
  Object.fromEntries(
    kept
      .keys()
      .filter(key => key.startsWith(BROKEN))
      .map(key => [key, kept.getItem(key)]),
  );

// Writing

/** @type {Map<string, string | null>} */
const bases = new Map(); // what was stored of a draft when this tab read or wrote it last

// What is stored of a draft is what this tab has of it; another tab's changes come after.
/** @type {(id: string) => void} */
export function know(id) {
  const key = keyOf(id);
  bases.set(key, kept.stored(key));
}

/** @type {(id: string) => boolean} */
export const isKnown = id => typeof bases.get(keyOf(id)) === "string";

// A draft with what another tab has stored of it since.
/** @type {(draft: Draft) => Draft} */
export function joined(draft) {
  const key = keyOf(draft.id),
    stored = kept.stored(key),
    base = bases.get(key);
  bases.set(key, stored);
  if (stored === null || stored === base) return draft;
  const theirs = parsed(stored, EMPTY);
  if (theirs) return merged(parsed(base, EMPTY) ?? EMPTY, draft, theirs);
  setApart(key, stored);
  return draft;
}

// Keeps a draft, and returns it as it is kept.
/** @type {(draft: Draft) => Draft} */
export function write(draft) {
  const key = keyOf(draft.id),
    whole = joined(draft),
    text = JSON.stringify(whole);
  faults.removed.delete(key);
  if (kept.setItem(key, text) || makeRoom(key, text)) bases.set(key, text);
  hooks.changed();
  return whole;
}

// Drops drafts without marks, the oldest first, until a text has room; none if that is not enough.
/** @type {(key: string, text: string) => boolean} */
function makeRoom(key, text) {
  if (!kept.isOpen) return false;
  const held = [key, keyOf(tab.getItem(OPEN) ?? ""), ...kept.memory.keys()];
  /** @type {Draft[]} */
  const gone = [];
  for (const draft of withoutMarks().reverse()) {
    if (held.includes(keyOf(draft.id))) continue;
    kept.removeItem(keyOf(draft.id));
    gone.push(draft);
    if (!kept.setItem(key, text)) continue;
    faults.dropped.push(...gone.filter(hasText));
    return true;
  }
  for (const draft of gone) kept.setItem(keyOf(draft.id), JSON.stringify(draft));
  return false;
}

// Writes what had no room; what was removed elsewhere waits for its author. The open draft takes
// up what another tab did to it.
/** @type {(open?: Draft) => void} */
export function retry(open) {
  for (const key of kept.memory.keys()) {
    if (faults.removed.has(key)) continue;
    const found = key.startsWith(DRAFT) ? read(key, EMPTY) : null,
      draft = found && joined(found);
    const text = draft ? JSON.stringify(draft) : (kept.getItem(key) ?? "");
    if (draft && draft.id === open?.id) Object.assign(open, draft);
    if (kept.setItem(key, text) && draft) bases.set(key, text);
    hooks.changed();
  }
}

/** @type {(id: string) => void} */
export function remove(id) {
  faults.removed.delete(keyOf(id));
  bases.delete(keyOf(id));
  kept.removeItem(keyOf(id));
  hooks.removed(id);
}

// Another tab, or the author in the settings of the browser, removed this draft: the tab has it.
/** @type {(draft: Draft) => void} */
export function hold(draft) {
  kept.memory.set(keyOf(draft.id), JSON.stringify(draft));
  faults.removed.add(keyOf(draft.id));
}

export function forget() {
  for (const key of kept.keys()) if (key.startsWith(OWN) && key !== PAGE) kept.removeItem(key);
  tab.removeItem(OPEN);
}

// Merging

/** @type {(one: unknown, other: unknown) => boolean} */
const equal = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// A draft with the changes that two tabs made to it; where both changed the same, `mine` counts,
// but no mark and no note is lost.
/** @type {(base: Draft, mine: Draft, theirs: Draft) => Draft} */
export function merged(base, mine, theirs) {
  /** @type {Record<string, any>} */
  const before = { ...base };
  const own = Object.entries(mine).filter(([name, value]) => !equal(value, before[name]));
  const names = new Set([...Object.keys(theirs.marks), ...Object.keys(mine.marks)]);
  const marks = [...names].map(index => {
    const [was, here, there] = [base, mine, theirs].map(draft => marked(draft.marks[index]));
    /** @type {Marks} */
    const of = { taken: [], cited: [], hidden: [] };
    for (const id of new Set([...there.keys(), ...here.keys()])) {
      const one = oneOf(was.get(id), here.get(id), there.get(id));
      if (one) of[one.kind].push(one.paper);
    }
    return [index, of];
  });
  return { ...theirs, ...Object.fromEntries(own), marks: Object.fromEntries(marks) };
}

// Two states of a draft: the text that was changed last stays, and all marks and notes of both.
/** @type {(one: Draft, other: Draft) => Draft} */
export function united(one, other) {
  const [older, newer] = [one, other].sort((a, b) => a.changed - b.changed);
  return merged(EMPTY, newer, older);
}

/** @type {(marks?: Marks) => Map<string, Marked>} */
const marked = marks =>
  new Map(
    KINDS.flatMap(kind =>
      (marks?.[kind] ?? []).map(paper => [paper.id, { kind, paper: /** @type {any} */ (paper) }]),
    ),
  );

/** @type {(was?: Marked, here?: Marked, there?: Marked) => Marked | undefined} */
function oneOf(was, here, there) {
  if (equal(here, was)) return there;
  if (equal(there, was)) return here;
  if (!here || !there) return here ?? there;
  const notes = [here.paper.note ?? "", there.paper.note ?? ""];
  const note = notes.find(one => notes.every(other => one.includes(other))) ?? notes.join("\n");
  return note || here.kind === "taken" ? { ...here, paper: { ...here.paper, note } } : here;
}
