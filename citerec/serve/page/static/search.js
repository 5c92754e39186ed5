// The list: searching, marking, selecting and exporting its papers.

import { $, copy, focusedRow, focusRow, fromTop, motion, save } from "./browser.js";
import { noticesOf } from "./collect.js";
import { connect } from "./connections.js";
import { request, settle } from "./draft.js";
import { filtered, prune } from "./facets.js";
import { NO_NEWS, recorded } from "./news.js";
import { Problem, exported, search } from "./server.js";
import {
  NO_LIST,
  OUTSIDE,
  keep,
  looks,
  mark,
  markOf,
  marks,
  now,
  settled,
  state,
} from "./store.js";
import { update } from "./store.js";
import { clean, count, dressed, sentence, shortened } from "./text.js";
import { toast } from "./toast.js";
import { step } from "./visits.js";
import { lostText, presentWhere, whereIn } from "./where.js";

const MORE = 20; // papers that are added to a list
export const MOST_NOTE = 10_000; // characters of a note that a file for another program takes

// Searches for papers like one: what is cited together with it, cites it, and has its words.
/** @type {(row: Row) => void} */
export const findLike = row =>
  find({ instead: { index: state.index, k: state.k, cited: [row.id] }, like: row.title });

// Searches, and shows one list: the last order. Until it is there, the former list stays; without
// one, empty rows hold its place. A page that only loads (no `push`) writes nothing: two tabs that
// write at the same moment do not see each other, and one of the writes would be lost.
/** @type {(how?: { push?: boolean, instead?: object, like?: string }) => Promise<void>} */
export async function find({ push = true, instead, like = "" } = {}) {
  const { id } = state;
  settle();
  const wanted = instead ?? request();
  if (typeof wanted === "string") {
    toast(wanted);
    focusDraft();
    return;
  }
  settled();
  now.running?.abort();
  const own = new AbortController();
  const isEach = state.mode === "each" && !instead;
  if (state.id !== id) now.list = NO_LIST; // it is one of another draft
  const before = { instead: null, notices: [], again: false };
  const status = isEach ? "Searching for each sentence…" : "Searching…";
  const isLost = isEach && lostText() !== "";
  update({ ...before, running: isLost ? null : own, status: isLost ? "" : status });
  bringUp();
  if (isLost) return;
  try {
    if (isEach) {
      const where = await whereIn(wanted, request("draft"), own.signal);
      if (own !== now.running) return;
      state.searched = true;
      if (push) keep();
      step({ draft: state.id, found: null, where }, push ? "push" : "stay");
      presentWhere(where);
      bringUp();
      return;
    }
    const answer = await search(wanted, own.signal);
    if (own !== now.running) return;
    const rows = answer.rows.map(dressed);
    if (!instead) state.searched = true;
    const news = instead ? NO_NEWS : recorded(answer.version, rows);
    if (push && !instead) keep();
    const found = { ...answer, ...news, like, wanted, rows, selected: new Set() };
    step({ draft: state.id, found }, push ? "push" : "stay");
    present(found);
    bringUp();
  } catch (error) {
    if (own !== now.running) return;
    if (error.name === "AbortError") update({ status: "Stopped." });
    else failed(error);
  } finally {
    if (own === now.running) update({ running: null });
  }
}

// Below the form in a narrow window, which would stop short of the list.
export function bringUp(part = "#results") {
  if (innerWidth < 900) $(part).scrollIntoView({ behavior: motion() });
}

// Adds the next papers of the list below it; the others stay where they are.
export async function more() {
  const { wanted } = now.list;
  if (!wanted || now.running) return;
  const own = new AbortController();
  update({ running: own, status: "Searching…" });
  try {
    const answer = await search({ ...wanted, k: now.list.rows.length + MORE }, own.signal);
    if (own !== now.running) return;
    const had = new Set(now.list.rows.map(row => row.id));
    const added = answer.rows.filter(row => !had.has(row.id)).map(dressed);
    const all = [...now.list.rows, ...added];
    const { selected, like } = now.list;
    const news = like ? NO_NEWS : recorded(answer.version, all);
    if (!like) keep();
    const list = { ...answer, ...news, like, rows: all, selected, wanted };
    step({ draft: state.id, found: list }, "stay");
    now.list = list;
    update({ status: `${count(all.length, "paper")}, ${added.length} of them added.` });
    connect();
  } catch (error) {
    if (own === now.running && error.name !== "AbortError") failed(error);
  } finally {
    if (own === now.running) update({ running: null });
  }
}

// Ends a search without a word, because something else is shown.
export function stop() {
  now.running?.abort();
  update({ running: null, again: false });
}

// The page before a search.
export function clear() {
  stop();
  const nothing = {
    question: null,
    read: null,
    list: NO_LIST,
    where: null,
    notices: [],
    status: "",
  };
  update({ ...nothing, instead: "greeting", folded: false });
}

export function focusDraft() {
  update({ folded: false });
  const field = $(state.mode === "sentence" ? "#context" : "#title");
  field.focus();
  return field;
}

/** @type {(found: Found) => void} */
export function present(found) {
  const { not_found: away, rows } = found;
  const names = `${away.slice(0, 3).join("; ")}${away.length > 3 ? "; …" : ""}`;
  const missing = away.length ? [{ text: sentence(`Not in this corpus: ${names}`) }] : [];
  now.notices = [...now.brought, ...noticesOf(found), ...missing];
  if (found.like) {
    const back = { name: "Back to the list of the draft", run: () => history.back() };
    now.notices.unshift({ text: `Papers like “${shortened(found.like, 80)}”. `, acts: [back] });
  }
  now.brought = [];
  const known = !found.like && rows[0]?.probability && found.wanted?.cited?.length;
  const why = known
    ? ` Order and probabilities also depend on ${count(known, "paper")} that you took or cite.`
    : "";
  now.status = rows.length ? `${count(rows.length, "paper")}.${why}` : "No paper was found.";
  now.instead = rows.length ? null : { why: found.empty_reason };
  now.folded = rows.length > 0;
  show(found);
}

/** @type {(list: List) => void} */
export function show(list) {
  now.list = list;
  prune();
  fromTop(() => update({ current: null, connections: null, where: null }));
  connect();
}

/** @type {(error: any) => void} */
export function failed(error) {
  const isProblem = error instanceof Problem;
  if (!isProblem) console.error(error);
  const text = isProblem
    ? clean(error.message)
    : "Something went wrong on this page; reload it. Draft and marks are kept.";
  update({ status: "", notices: [{ text, isFault: true }] });
}

// Marks

/** @type {{ draft: string, paper: Taken, kind: Mark | null }[]} */
const undone = []; // the latest marks, for undo

/** @type {Record<Mark, string>} */
export const DONE = { taken: "On the shelf", cited: "You cite it", hidden: "Hidden" };

// A paper as the shelf keeps it, with what its row states.
/** @type {(row: Row | Listed | Named) => Taken} */
export function shelved(row) {
  const {
    doi = "",
    year = null,
    coins = "",
    reasons = [],
    retracted,
  } = /** @type {Partial<Row | Taken>} */ (row);
  const kept = { doi: clean(doi), year, coins, reasons: reasons.map(clean) };
  return { id: row.id, title: clean(row.title), ...kept, note: "", retracted };
}

// A mark changes the next list: not the one that is read, and not one that is searched for already.
export function rankAgain() {
  update({ again: state.searched || now.running !== null });
  connect();
}

/** @type {(row: Row | Named, kind: Mark | null, isInPlace?: boolean) => void} */
export function setMark(row, kind, isInPlace) {
  const of = markOf(row.id),
    paper = shelved(row);
  const { shown } = filtered();
  const place = shown.findIndex(one => one.id === row.id);
  const isOnRow = $(".row:focus")?.dataset.id === row.id; // and not on a button in it
  const next = isOnRow && place >= 0 && (shown[place + 1] ?? shown[place - 1]);
  const former = of && marks()[of].find(one => one.id === row.id);
  undone.push({ draft: state.id, paper: { ...paper, ...former }, kind: of });
  mark(kind, paper);
  rankAgain();
  if (kind && next) focusRow(next.id);
  const name = kind ? DONE[kind] : of === "taken" ? "Off the shelf" : "Mark removed";
  toast(`${name}: ${shortened(paper.title, 50)}`, { name: "Undo", run: undo }, isInPlace);
}

export function undo() {
  const latest = undone.pop();
  if (!latest) return;
  if (latest.draft !== state.id) {
    toast("The last mark is one of another draft");
    return;
  }
  mark(latest.kind, latest.paper);
  rankAgain();
  toast("Undone");
}

// The rows: their keyboard, selection and export

// Goes some rows on; those that are filtered out are passed over.
/** @type {(steps: number) => void} */
export function go(steps) {
  const { visible } = filtered(),
    last = visible.length - 1;
  const at = visible.findIndex(row => row.id === focusedRow());
  focusRow(visible[at < 0 ? (steps > 0 ? 0 : last) : Math.max(0, Math.min(last, at + steps))]?.id);
}

/** @type {(ids: string[], on?: boolean) => void} */
export function select(ids, on) {
  const { selected } = now.list;
  for (const id of ids)
    if (on ?? !selected.has(id)) selected.add(id);
    else selected.delete(id);
  update();
}

export const selected = () => filtered().shown.filter(row => now.list.selected.has(row.id));

/** @type {Record<string, [string, string]>} */
const FILES = {
  html: ["references.html", "text/html"],
  bibtex: ["references.bib", "application/x-bibtex"],
  ris: ["references.ris", "application/x-research-info-systems"],
  csl: ["references.json", "application/json"],
  doi: ["dois.txt", "text/plain"],
};

// The id of a paper for the server; of one that no corpus has, its citation key.
/** @type {(paper: Taken) => string} */
const keyOf = ({ id, bibtex }) => bibtex?.match(/\{([^,\s]+)/)?.[1] ?? id;

// Papers as the server takes them, with notes.
/** @type {(ids: string[]) => object} */
export function papersOf(ids) {
  const given = marks().taken.filter(one => ids.includes(one.id)),
    outside = given.filter(one => one.bibtex);
  const excluded = marks().hidden.filter(one => ids.includes(one.id));
  const notes = [
    ...given.filter(one => one.note).map(one => [keyOf(one), one.note]),
    ...excluded.map(({ id, note }) => [id, note ? `Excluded: ${note}` : "Excluded"]),
  ];
  return {
    index: state.index,
    ids: ids.filter(id => !id.startsWith(OUTSIDE)),
    outside: outside.map(one => one.bibtex).join("\n"),
    notes: Object.fromEntries(notes.map(([id, note]) => [id, note.slice(0, MOST_NOTE)])),
  };
}

// What is asked of the server: papers as references, with citation keys that the bibliography of
// the draft does not have.
/** @type {(ids: string[], format: string) => object} */
export const exporting = (ids, format) => ({
  ...papersOf(ids),
  format,
  style: looks.style || "apa",
  taken_keys: state.keys,
});

/** @type {(format: string, how: "copy" | "save", rows?: { id: string }[]) => Promise<void>} */
export async function give(format, how, rows = selected()) {
  if (!rows.length) {
    toast("Select papers first: x, or the boxes");
    return;
  }
  const ids = rows.map(row => row.id);
  try {
    const { text, notice } = await exported(exporting(ids, format));
    const n = format === "doi" ? text.split("\n").filter(Boolean).length : ids.length;
    if (n && how === "copy") await copy(text);
    else if (n) save(text, ...FILES[format]);
    const done =
      how === "save" ? "saved" : format === "doi" ? "copied as DOIs" : "copied as BibTeX";
    toast(`${n ? count(n, "reference") : "No reference"} ${done}${notice}`);
  } catch (error) {
    toast(clean(error.message));
  }
}
