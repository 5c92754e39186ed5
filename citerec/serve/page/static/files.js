// Files and pasted texts: what is read of them goes into the draft.

import { openDrafts, ownFile } from "./backup.js";
import { $ } from "./browser.js";
import { edit, replace, request } from "./draft.js";
import { find, rankAgain, shelved } from "./search.js";
import { Problem, readFiles } from "./server.js";
import { openShelf } from "./shelf.js";
import { keep, mark, markOf, state, update } from "./store.js";
import { clean, shortened } from "./text.js";
import { keepText } from "./where.js";

// Title and abstract pasted together: the first line is the title. What the server takes for a list
// of references becomes one; its text is taken out of the field again.
/** @type {(event: ClipboardEvent) => Promise<void>} */
export async function pasteAll(event) {
  const text = event.clipboardData?.getData("text/plain").replace(/\r\n?/g, "\n") ?? "";
  const { id } = /** @type {HTMLElement & { id: "title" | "abstract" }} */ (event.target);
  const { title, abstract, [id]: before } = state;
  const lines = text
    .split("\n")
    .map(line => line.trim())
    .filter(Boolean);
  const isBoth = id === "title" && lines.length > 1 && !title.trim();
  if (isBoth) {
    event.preventDefault();
    const first = lines[0].replace(/^title\s*:\s*/i, "");
    const rest = lines
      .slice(1)
      .join(" ")
      .replace(/^abstract\s*[:.—–-]?\s*/i, "");
    replace({ title: first, abstract: rest || abstract });
    edit({ meta: {} });
  }
  const pasted = new File([text], "pasted.txt");
  if (!lines.length || pasted.size > MOST_BYTES) return;
  const takeOut = () =>
    edit(isBoth ? { title, abstract } : { [id]: before && state[id].replace(text, "") });
  try {
    const read = await readFiles(state.index, [pasted]);
    if (read.draft) return;
    takeOut();
    shown(read);
  } catch (error) {
    fault(error instanceof Problem ? clean(error.message) : "The text could not be read.");
  }
}

const DRAFTS = "tex|ltx|docx|odt|rtf|typ|[qr]?md|markdown|txt|pdf";
const BESIDE = "bib(tex)?|bbl|ris|jsonl?|xml|sty|cls|bst";
const READ = new RegExp(`\\.(${DRAFTS}|${BESIDE})$`, "i");
const MOST_FILES = 900; // that the server takes at once

// The files of what was dropped; of a folder those that a draft may need, with their paths in it.
/** @type {(transfer: DataTransfer | null) => Promise<Sent[]>} */
async function dropped(transfer) {
  if (!transfer) return [];
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.());
  if (!entries.some(entry => entry?.isDirectory)) return [...transfer.files];
  /** @type {Sent[]} */
  const wanted = [];
  /** @type {Sent[]} */
  const others = [];
  /** @type {(entry: any) => Promise<void>} */
  const visit = async entry => {
    if (entry?.isFile) {
      const isWanted = READ.test(entry.name) && !entry.name.startsWith(".");
      const found = isWanted ? wanted : others;
      if (found.length > MOST_FILES) return;
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push(Object.assign(file, { path: entry.fullPath.slice(1) }));
    }
    if (!entry?.isDirectory) return;
    if (entry.name.startsWith(".") || entry.name === "node_modules") return;
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) await visit(one);
    }
  };
  for (const entry of entries) await visit(entry);
  if (!wanted.length) return others;
  const isLatex = wanted.some(file => /\.(tex|ltx)$/i.test(file.name));
  return isLatex ? wanted.filter(file => !/\.pdf$/i.test(file.name)) : wanted;
}

const MOST_BYTES = Number(document.documentElement.dataset.most);

/** @type {(text: string) => void} */
const fault = text => update({ read: { fault: text } });

// What the server would not read.
/** @type {(files: Sent[]) => void} */
function check(files) {
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size > MOST_BYTES) {
    const who = files.length > 1 ? "files are" : "file is",
      megabytes = (size / 2 ** 20).toFixed(1);
    const most = Math.floor(MOST_BYTES / 2 ** 20);
    throw new Problem(
      `The ${who} too large: ${megabytes} MB; at most ${most} MB in all. Save without pictures, or paste title and abstract.`,
    );
  }
  if (files.length > MOST_FILES)
    throw new Problem(
      `There are ${files.length} files or more; at most ${MOST_FILES} are read at once.`,
    );
}

// The names of what was chosen; of a folder its own.
/** @type {(files: Sent[]) => string} */
const nameOf = files => {
  const names = files.map(({ name, path }) => (path || name).split("/")[0]);
  return shortened([...new Set(names)].join(", "), 80);
};

// Reads files on the server and shows what was read, for the author to correct before the search.
/** @type {(files: Sent[]) => Promise<void>} */
export async function take(files) {
  if (!files.length) return;
  const name = nameOf(files);
  update({ folded: false, read: { busy: `Reading ${name}…` } });
  let read;
  try {
    for (const file of files) {
      const own = await ownFile(file);
      if (own) return own.citerec === "shelf" ? await openShelf(own) : openDrafts(own);
    }
    check(files);
    read = await readFiles(state.index, files);
  } catch (error) {
    const isProblem = error instanceof Problem;
    fault(isProblem ? `Not read. ${clean(error.message)}` : "The file could not be read.");
    return;
  }
  if (read.draft) {
    taken(read.draft);
    keepText(name, read.draft.title, read.draft.text);
  } else if (!state.file.sentences) state.file = { name, sentences: 0 };
  shown(read);
}

// Reads the files that a corpus was collected around once more, to compare them with it, and
// searches; a draft with a text of its own, which is not from them, is left alone.
/** @type {(files: File[]) => Promise<void>} */
export async function takeCollected(files) {
  const isBare = !state.title.trim() && !state.abstract.trim();
  if (!files.length || !(isBare || state.file.name === nameOf(files))) return;
  await take(files);
  if (typeof request() === "object") find();
}

// Shows what was read, and marks what is cited.
/** @type {(read: Read) => void} */
function shown({ draft, cited, references, checks, notices, unread, keys }) {
  state.keys = [...new Set([...state.keys, ...keys])];
  const fresh = cited.filter(({ id }) => [null, "hidden"].includes(markOf(id)));
  for (const paper of fresh) mark("cited", shelved(paper));
  keep();
  const undo = () => {
    for (const paper of fresh) mark(null, shelved(paper));
    update({ read: null });
    rankAgain();
  };
  const lines = { references, notices, unread };
  update({ checks, read: { isDraft: Boolean(draft), marked: fresh.length, ...lines, undo } });
  $(draft && !draft.title ? "#title" : "#find").focus();
  if (!draft && state.searched) find();
  else if (fresh.length) rankAgain();
}

/** @type {(draft: NonNullable<Read["draft"]>) => void} */
function taken({ title, abstract, authors, venue, doi, year: dated }) {
  const isKept = state.mode === "each" || (state.mode === "sentence" && state.withDraft);
  const mode = isKept ? state.mode : "draft";
  const own = state.year === state.metaYear ? null : state.year; // that of a former file goes
  const read = { meta: { authors, venue, doi }, metaTitle: title, year: dated || own };
  replace({ mode, title, abstract, ...read });
  Object.assign(state, read, { metaYear: dated });
}

// Files that are dropped anywhere on the page.
export function dropping() {
  let depth = 0;
  /** @type {(event: DragEvent) => boolean | undefined} */
  const hasFiles = event => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", event => {
    if (hasFiles(event) && ++depth === 1) update({ dropping: true });
  });
  addEventListener("dragleave", event => {
    if (hasFiles(event) && --depth <= 0) end();
  });
  addEventListener("dragover", event => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("drop", event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    end();
    dropped(event.dataTransfer).then(take, () => fault("The folder could not be read."));
  });
  const end = () => {
    depth = 0;
    update({ dropping: false });
  };
}
