// Going from one thing to another: papers, drafts, links, and the back button.

import { $, copy } from "./browser.js";
import { replace, request } from "./draft.js";
import {
  clear,
  failed,
  find,
  focusDraft,
  present,
  rankAgain,
  shelved,
  show,
  stop,
} from "./search.js";
import { forget } from "./kept.js";
import { Problem, get, rowsOf } from "./server.js";
import { chooseIndex, fromLink, keep, link, now, rows, state, update } from "./store.js";
import * as store from "./store.js";
import { clean, count, dressed } from "./text.js";
import { hideToast, toast } from "./toast.js";
import { step, visited } from "./visits.js";
import { presentWhere } from "./where.js";

// Papers: the sheet of one

const MOST_READ = 200; // related papers
let reading = new AbortController();

// `depth` is the number of steps of the history from the list to it; 0: an address brought it.
/** @type {(id: string, depth: number) => Promise<void>} */
async function showPaper(id, depth) {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading,
    { index } = state;
  const row = now.list.rows.find(one => one.id === id) ?? null;
  const isKnown = now.paper?.id === id && now.paper.related;
  /** @type {Paper} */
  const paper = { id, depth, row, related: isKnown || null, fault: "", all: new Set() };
  update({ paper });
  $("#details").scrollTop = 0;
  $("#details-title").focus();
  try {
    const [listed, related] = await Promise.all([
      row ? null : get("page/papers", { index, ids: id }, signal),
      get(`v1/papers/${encodeURIComponent(id)}`, { index, limit: MOST_READ }, signal),
    ]);
    if (!signal.aborted)
      update({ paper: { ...paper, row: row ?? dressed(listed.rows[0]), related } });
  } catch (error) {
    if (signal.aborted) return;
    const fault = error instanceof Problem ? error.message : "This paper could not be read.";
    update({ paper: { ...paper, fault } });
  }
}

/** @type {(id: string) => void} */
export function openPaper(id) {
  const parts = new URLSearchParams(
    store.viewing ? location.hash.slice(1) : { index: state.index },
  );
  parts.set("paper", id);
  if (!now.paper && !now.toast?.action) hideToast(); // a long one would hide the title
  const depth = now.paper ? (history.state?.depth ?? 0) + 1 : 1;
  history.pushState({ ...history.state, paper: id, depth }, "", `#${parts}`);
  showPaper(id, depth);
}

// The sheet was closed; without a step in the history if one led here.
export function closedPaper() {
  if (!now.paper) return;
  const { depth } = now.paper;
  hidePaper();
  if (depth) history.go(-depth);
  else history.replaceState({ visit: history.state?.visit }, "", location.pathname);
  if (store.viewing && !rows().length) openDraft(); // a paper of another corpus
}

function hidePaper() {
  reading.abort();
  update({ paper: null });
}

// Drafts

/** @type {(id?: string) => void} */
export function openDraft(id) {
  if (!store.open(id)) return;
  hideToast();
  chooseIndex(state.index);
  clear();
  step({ draft: state.id, found: null }, "push");
  if (!state.searched || typeof request() === "string") return;
  update({ folded: true });
  find({ push: false });
}

export function newDraft() {
  const { id } = state,
    wasEmpty = store.isEmpty();
  store.begin();
  keep();
  const made = state.id;
  openDraft(made);
  focusDraft();
  const run = () => {
    store.remove(made);
    openDraft(id);
  };
  if (wasEmpty) store.remove(id);
  else toast("A new draft; the others are under Drafts", { name: "Undo", run });
}

/** @type {(draft: Draft) => void} */
export function removeDraft(draft) {
  const wasOpen = draft.id === state.id;
  store.remove(draft.id);
  if (wasOpen) {
    store.begin();
    keep();
    openDraft(state.id);
  }
  const run = () => {
    store.setAside(draft);
    if (wasOpen && store.isEmpty()) openDraft(draft.id);
    else update();
  };
  toast("Draft removed", { name: "Undo", run });
}

export function forgetAll() {
  const rest = now.desk ? "The files of the desk stay." : "This cannot be undone.";
  if (!confirm(`Forget all drafts and shelves of this browser? ${rest}`)) return;
  now.running?.abort();
  forget();
  history.replaceState(null, "", location.pathname);
  location.reload();
}

export async function example() {
  try {
    const example = await get("page/example", { index: state.index });
    if (!store.isEmpty()) store.begin();
    Object.assign(state, example, { mode: "draft" });
    keep();
    find();
  } catch (error) {
    if (error instanceof Problem) toast(clean(error.message));
  }
}

/** @type {(name: string) => void} */
export function changeIndex(name) {
  const { folded } = now;
  chooseIndex(name);
  keep();
  clear(); // list and file are compared with the former corpus
  update({ folded });
  if (state.searched) find();
}

// Another tab changed the draft that is open here, too.
export function elsewhere() {
  chooseIndex(state.index);
  rankAgain();
}

// Links

export async function share() {
  try {
    await copy(link(rows().map(row => row.id)));
    toast("Link copied: marks, settings and this list, without your text");
  } catch (error) {
    toast(error.message);
  }
}

// An editor brings a sentence after the #, which no browser sends to a server; what it replaces
// can be brought back.
/** @type {(brought: Sentence) => void} */
function openSentence({ index, context, title }) {
  const before = structuredClone(state);
  chooseIndex(index);
  const text = { title, abstract: "", meta: {}, metaTitle: "" };
  const isOther = title && title !== state.title;
  replace({ mode: "sentence", context, withDraft: Boolean(title), ...(isOther ? text : {}) });
  keep();
  const hasReplaced =
    (before.context.trim() && before.context !== context) ||
    (title && before.title.trim() && before.title !== title);
  /** @type {Notice & { acts: Act[] }} */
  const notice = { text: "The address of this page brought the text. ", acts: [] };
  const { id } = state;
  const run = () => {
    now.running?.abort();
    if (id !== before.id) store.remove(id);
    store.put(before);
    chooseIndex(state.index);
    update({ notices: now.notices.filter(one => one !== notice) });
    rankAgain();
  };
  notice.acts.push({ name: "Bring back what was here", run });
  if (hasReplaced) now.brought.push(notice);
  find();
}

// A link brings marks and a list by their ids; their titles come from the corpus. It is a view:
// the draft, marks and settings of its reader stay as they are, and it becomes a draft of its
// own once it is changed or taken over.
/** @type {(from: Sentence | Brought) => Promise<void>} */
async function openLink(from) {
  if ("context" in from) {
    history.replaceState(history.state, "", location.pathname);
    return openSentence(from);
  }
  const depth = history.state?.depth ?? 0;
  const { index, k, year, yearMax, yearMin, taken, cited, hidden, list, paper } = from;
  const ids = [...taken, ...cited, ...hidden];
  const isAlone = paper && !list.length && !ids.length;
  if (isAlone && index === state.index) return showPaper(paper, depth);
  clear();
  const hasOwn = store.drafts().length > 0;
  store.view({ index, k, year, yearMax, yearMin });
  chooseIndex(index);
  update();
  if (paper) showPaper(paper, depth);
  if (isAlone) return;
  const known = new Map((await rowsOf(index, ids)).map(row => [row.id, shelved(row)]));
  const found = await rowsOf(index, list);
  if (!store.viewing) return; // the author went on
  /** @type {(wanted: string[]) => Taken[]} */
  const marked = wanted => wanted.flatMap(id => known.get(id) ?? []);
  state.marks = {
    [index]: { taken: marked(taken), cited: marked(cited), hidden: marked(hidden) },
  };
  const gone = list.length - found.length;
  const are = gone === 1 ? "is" : "are";
  const lost = `${count(gone, "paper")} of it ${are} no longer in this corpus. `;
  const acts = [{ name: "Take it over as a draft", run: keep }];
  if (hasOwn) acts.push({ name: "Back to my draft", run: () => openDraft() });
  const text =
    `A link brought ${count(found.length, "paper")} and ${count(known.size, "mark")}; ` +
    "the text of the draft is not in it. Nothing of yours was changed. " +
    (gone ? lost : "");
  update({ notices: [{ text, acts }] });
  if (!found.length) return;
  const plainly = { score: null, probability: null };
  const shown = found.map(row => ({ ...dressed(row), ...plainly }));
  now.status = `A shared list of ${count(found.length, "paper")}.`;
  now.instead = null;
  show({ ...store.NO_LIST, rows: shown, selected: new Set() });
}

// The view of a link has become a draft.
export function adopted() {
  step({ draft: state.id, found: null }, "replace");
  update({ notices: [] });
  toast("This is a draft of yours now; the others are under Drafts");
}

// The browser's history

// What an address brings, if anything: a step of the history of its own.
export function arrived() {
  const from = fromLink();
  step({ draft: state.id, found: null, link: from && "list" in from ? from : null }, "stay");
  if (from) openLink(from).catch(failed);
}

/** @type {(event: PopStateEvent) => void} */
export function travelled({ state: at }) {
  if (!at) return; // a new address
  if (at.paper) showPaper(at.paper, at.depth);
  else if (now.paper) hidePaper();
  const visit = visited(at.visit);
  if (!visit) return;
  stop();
  if (visit.link) {
    openLink(visit.link).catch(failed);
    return;
  }
  if (visit.draft !== state.id) store.open(visit.draft);
  if (visit.index !== state.index) {
    chooseIndex(visit.index);
    keep();
  }
  if (visit.where) presentWhere(visit.where);
  else if (visit.found) present(visit.found);
  else clear();
}

// An address that was typed or pasted.
export function addressed() {
  if (fromLink() && !history.state) arrived();
}
