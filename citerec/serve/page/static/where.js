// Where in the text references are missing: its sentences, and papers for those that cite none.
// The text of a file goes with the tab; its name is kept.

import { $, fromTop, motion } from "./browser.js";
import { noticesOf } from "./collect.js";
import { Problem, readFiles, rowsOf, search, sentences } from "./server.js";
import { NO_LIST, now, state, update } from "./store.js";
import { count, dressed, isOf } from "./text.js";

/** @type {Said} */
const NOTHING_SAID = { notices: [], is_uncovered: false };
const FIRST = 5, // sentences that are marked at first
  AT_ONCE = 20; // in a request

// The text that was read of the file of the open draft.
export function fullText() {
  const { text } = now;
  const isIts = text && (text.draft === state.id || (text.title && isOf(text.title, state.title)));
  return isIts ? text.paragraphs : null;
}

// The same with its headings, as the server reads the body of a draft.
export const bodyText = () =>
  fullText()
    ?.map(({ section, sentences }) => `${section && `# ${section}\n\n`}${sentences.join(" ")}\n`)
    .join("\n");

// The file of the open draft whose text this tab does not have, or not any more; else empty.
export const lostText = () => (state.file.sentences && !fullText() ? state.file.name : "");

/** @type {(name: string, title: string, paragraphs: Paragraph[]) => void} */
export function keepText(name, title, paragraphs) {
  const sentences = paragraphs.reduce((sum, one) => sum + one.sentences.length, 0);
  state.file = { name, sentences };
  now.text = sentences ? { draft: state.id, title, paragraphs } : null;
}

// Title and abstract as paragraphs, as the server reads a file that holds them.
/** @type {(signal: AbortSignal) => Promise<Paragraph[]>} */
async function pasted(signal) {
  const title = state.title.trim() || "Untitled";
  const file = new File([`${title}\n\n${state.abstract.trim()}`], "draft.txt");
  return (await readFiles(state.index, [file], signal)).draft?.text ?? [];
}

// Searches for the sentences of the text, some at once: a request for a long text would take
// minutes. `draft` is what the list of the same text is searched by.
/** @type {(wanted: object, draft: object | string, signal: AbortSignal) => Promise<Where>} */
export async function whereIn(wanted, draft, signal) {
  const paragraphs = fullText() ?? (await pasted(signal));
  const all = paragraphs.flatMap(({ section, sentences }, at) =>
    sentences.map(text => ({ section, at, text })),
  );
  if (!all.length) throw new Problem("There is no text yet: choose the file, or paste its text.");
  /** @type {SentenceAnswer[]} */
  const answers = [];
  for (let done = 0; done < all.length; done += AT_ONCE) {
    if (done) update({ status: `Searched for ${done} of ${all.length} sentences…` });
    const parts = Map.groupBy(all.slice(done, done + AT_ONCE), one => one.at);
    const text = [...parts.values()].map(some => {
      const [{ section }] = some;
      return `${section && `# ${section}\n\n`}${some.map(one => one.text).join(" ")}`;
    });
    answers.push(...(await uncited({ ...wanted, text: ["Draft", ...text].join("\n\n") }, signal)));
  }
  if (!answers.length) throw new Problem("Every sentence that makes a claim has a reference.");
  answers.sort((one, other) => (other.sureness ?? 0) - (one.sureness ?? 0));
  const ids = answers.flatMap(one => one.results.map(({ id }) => id));
  const rows = await rowsOf(state.index, [...new Set(ids)]);
  const where = placed(paragraphs, answers, new Map(rows.map(row => [row.id, row])));
  // what the list says of the draft: that the corpus does not cover it
  const hasDraft = typeof draft === "object"; // a text may have no title
  const said = hasDraft ? await search({ ...draft, k: 1 }, signal) : NOTHING_SAID;
  return { ...where, said };
}

// The answers for a part of the text; none where each of its sentences cites.
/** @type {(body: object, signal: AbortSignal) => Promise<SentenceAnswer[]>} */
async function uncited(body, signal) {
  try {
    return (await sentences(body, signal)).answers;
  } catch (error) {
    if (error instanceof Problem && error.message.includes("without a reference")) return [];
    throw error;
  }
}

// The answers at their places in the text.
/** @type {(text: Paragraph[], answers: SentenceAnswer[], rows: Map<string, Listed>) =>
 *   Omit<Where, "said">} */
function placed(paragraphs, answers, rows) {
  /** @type {Map<string, Claim[]>} */
  const bySentence = new Map();
  const all = answers.map(({ sentence, sureness, results }, rank) => {
    const papers = results.flatMap(({ id, reasons }) => {
      const row = rows.get(id);
      return row ? dressed({ ...row, reasons }) : [];
    });
    return { id: `${rank}`, text: sentence, sureness, rank, papers };
  });
  for (const one of all) bySentence.set(one.text, [...(bySentence.get(one.text) ?? []), one]);
  /** @type {Claim[]} */
  const claims = [];
  const parts = paragraphs.map(({ section, sentences }) => ({
    section,
    parts: sentences.map(text => {
      const claim = bySentence.get(text)?.shift() ?? null;
      if (claim) claims.push(claim);
      return { text, claim };
    }),
  }));
  for (const claim of [...bySentence.values()].flat()) {
    claims.push(claim);
    parts.push({ section: "", parts: [{ text: claim.text, claim }] });
  }
  const surest = claims.filter(one => one.rank < FIRST).map(one => one.id);
  return { paragraphs: parts, claims, most: FIRST, open: new Set(surest), current: null };
}

// The sentences that are marked, in the order of the text.
/** @type {(where: Where) => Claim[]} */
export const markedIn = ({ claims, most }) => claims.filter(one => one.rank < most);

/** @type {(where: Where) => string} */
function counted(where) {
  const total = where.claims.length,
    n = markedIn(where).length;
  const of = n < total ? `${n} of ` : "";
  return `${of}${count(total, "sentence")} that may lack a reference ${n === 1 ? "is" : "are"} underlined.`;
}

/** @type {(where: Where) => void} */
export function presentWhere(where) {
  const notices = noticesOf(where.said);
  const status = counted(where);
  const shown = { where, status, notices, list: NO_LIST, instead: null, folded: true };
  fromTop(() => update(shown));
}

/** @type {(changes: Partial<Where>) => void} */
function change(changes) {
  if (now.where) update({ where: Object.assign(now.where, changes) });
}

/** @type {(most: string) => void} */
export function markMost(most) {
  change({ most: Number(most), current: null });
  if (now.where) update({ status: counted(now.where) });
}

/** @type {(id: string) => void} */
export function toggleClaim(id) {
  const { open = new Set() } = now.where ?? {};
  if (!open.delete(id)) open.add(id);
  change({ current: id });
}

// Goes to the next marked sentence, or to a former one.
/** @type {(steps: number) => void} */
export function goClaim(steps) {
  if (!now.where) return;
  const shown = markedIn(now.where),
    last = shown.length - 1;
  const { current } = now.where;
  const held = $(".claim:focus")?.dataset.id ?? current;
  const at = shown.findIndex(one => one.id === held);
  const to = at < 0 ? (steps > 0 ? 0 : last) : at + steps;
  const next = shown[Math.max(0, Math.min(last, to))];
  if (!next) return;
  change({ current: next.id });
  const claim = $(`.claim[data-id="${CSS.escape(next.id)}"]`);
  claim.focus();
  claim.scrollIntoView({ block: "nearest", behavior: motion() });
}
