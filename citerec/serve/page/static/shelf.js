// The shelf: the papers that the author took for the draft, with notes; saved, opened and copied.

import { copyFormatted, save } from "./browser.js";
import { exporting, papersOf, shelved } from "./search.js";
import { exported, rowsOf, zotero } from "./server.js";
import { chooseIndex, keep, mark, marks, now, state, update } from "./store.js";
import * as store from "./store.js";
import { clean, count, isSame } from "./text.js";
import { toast } from "./toast.js";
import { openDraft } from "./travel.js";

/** @type {(id: string, note: string) => void} */
export function annotate(id, note) {
  const { taken, hidden } = marks();
  const paper = [...taken, ...hidden].find(one => one.id === id);
  if (!paper) return;
  paper.note = note;
  keep();
  update();
}

// Copies formatted references, as HTML for Word, and as text.
export async function copyShelf() {
  const ids = marks().taken.map(one => one.id);
  const [html, text] = ["html", "text"].map(format => exported(exporting(ids, format)));
  try {
    await copyFormatted(
      html.then(one => one.text),
      text.then(one => one.text),
    );
    const { notice } = await html;
    toast(`${count(ids.length, "reference")} copied; paste them into your text${notice}`);
  } catch (error) {
    toast(clean(error.message));
  }
}

// Saves the papers of the shelf into Zotero, but those that it has.
export async function toZotero() {
  const ids = marks().taken.map(one => one.id);
  try {
    const { saved, known } = await zotero(papersOf(ids));
    const had = known ? `; it had ${known} already` : "";
    toast(`${count(saved, "paper")} saved to Zotero${had}`);
  } catch (error) {
    toast(clean(error.message));
  }
}

export function saveShelf() {
  const { title, abstract, year, index } = state;
  const { taken, hidden } = marks();
  const papers = taken.map(paper => ({ ...paper, coins: undefined }));
  /** @type {Shelf} */
  const shelf = {
    citerec: "shelf",
    index,
    draft: { title, abstract, year },
    papers,
    rejected: hidden,
  };
  save(JSON.stringify(shelf, null, 2), "shelf.json", "application/json");
}

/** @type {(listed: any) => any[]} */
const namedIn = listed =>
  Array.isArray(listed) ? listed.filter(one => typeof one?.id === "string") : [];

/** @type {(at: any) => number | undefined} */
const timeOf = at => (Number.isInteger(at) ? at : undefined);

// Puts the papers of a shelf on that of its draft; another draft is left as it is.
/** @type {(shelf: any) => Promise<void>} */
export async function openShelf({ index, draft, papers: listed, rejected }) {
  const taken = namedIn(listed),
    hidden = namedIn(rejected);
  const ids = [...taken, ...hidden].map(one => one.id);
  const corpus = now.indexes.find(one => one.name === index)?.name ?? state.index;
  const papers = (await rowsOf(corpus, ids)).map(shelved);
  const known = new Map(papers.map(paper => [paper.id, paper]));
  const before = structuredClone(state),
    title = clean(draft?.title);
  const abstract = clean(draft?.abstract);
  if (!store.isEmpty() && !isSame(state, { title, abstract })) store.begin();
  if (store.isEmpty()) {
    const year = Number.isInteger(draft?.year) ? draft.year : null;
    Object.assign(state, { mode: "draft", title, abstract, year });
  }
  chooseIndex(corpus);
  for (const { id, note, at } of hidden) {
    const paper = known.get(id);
    if (paper) mark("hidden", { ...paper, note: clean(note), at: timeOf(at) });
  }
  for (const one of taken) {
    const { id, note, reasons, at } = one;
    if (one.bibtex) known.set(id, { ...shelved(one), bibtex: `${one.bibtex}` });
    const paper = known.get(id);
    const former = marks().taken.find(one => one.id === id);
    const stated = Array.isArray(reasons) ? reasons.map(clean) : [];
    const text = clean(note) || former?.note || "";
    if (paper) mark("taken", { ...paper, note: text, reasons: stated, at: timeOf(at) });
  }
  keep();
  openDraft(state.id);
  const gone = taken.filter(one => !known.has(one.id)).map(one => clean(one.title) || one.id);
  if (gone.length) update({ read: { fault: `Not in this corpus: ${gone.join("; ")}` } });
  const { id } = state;
  const undo = () => {
    if (id !== before.id) store.remove(id);
    store.put(before);
    openDraft(before.id);
  };
  const put = `${count(taken.length - gone.length, "paper")} put on the shelf`;
  toast(put, { name: "Undo", run: undo });
}
