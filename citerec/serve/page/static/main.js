// The page: what is searched, shown and marked, in the order of events.

import { $, $$, clean, copy, count, dressed, h, keepFocus, plain, still, toast } from "./dom.js";
import * as details from "./details.js";
import * as draft from "./draft.js";
import { give } from "./export.js";
import * as keys from "./keys.js";
import * as list from "./list.js";
import * as results from "./results.js";
import { brought, chosen, failed, note, say, selectedIds, shown, stages } from "./results.js";
import { Problem, get, search } from "./server.js";
import { start as startTheme, theme } from "./theme.js";
import * as store from "./store.js";
import { fromLink, keep, link, mark, marks, state } from "./store.js";

let indexes = []; // their names
let running = null; // the search in flight
const undone = []; // the latest marks, for undo

// Searches, and shows one list: the last order. Until it is there, empty rows hold its place.
async function find({ push = true } = {}) {
  draft.settle();
  const request = draft.request();
  if (typeof request === "string") {
    toast(request);
    $(state.mode === "sentence" ? "#context" : "#title").focus();
    return;
  }
  running?.abort();
  const own = (running = new AbortController());
  busy(true);
  list.show([]);
  note([]);
  say("Searching…");
  toResults();
  try {
    const found = await search(request, own.signal);
    if (own === running) answered({ ...found, rows: found.rows.map(dressed) }, push);
  } catch (error) {
    if (own !== running) return;
    if (error.name === "AbortError") {
      stages([]);
      say("Stopped.");
    } else failed(error);
  } finally {
    if (own === running) {
      running = null;
      busy(false);
    }
  }
}

function busy(on) {
  document.body.classList.toggle("searching", on);
  $("#list").setAttribute("aria-busy", on);
  $("#find").textContent = on ? "Stop" : "Find papers";
  $("#placeholder").hidden = !on;
  $("#again").hidden = true;
  if (on) $("#empty").hidden = true;
}

// On a phone the list is below the form.
function toResults() {
  if (innerWidth < 900) $("#results").scrollIntoView({ behavior: still() ? "auto" : "smooth" });
}

function answered(found, push) {
  state.searched = true;
  keep();
  const step = here({ draft: state.id, found });
  visible = step.visit;
  if (push) history.pushState(step, "", location.pathname);
  else history.replaceState({ ...history.state, ...step }, "");
  results.present(found);
}

// Marks

function setMark(row, kind) {
  const paper = { id: row.id, title: plain(Array.isArray(row.title) ? row.title : [row.title]) };
  const before =
    ["cited", "hidden"].find(name => marks()[name].some(one => one.id === row.id)) ?? null;
  const place = list.rows.findIndex(one => one.id === row.id);
  undone.push({ draft: state.id, paper, kind: before, row: list.rows[place], place });
  mark(kind, paper);
  draft.trays();
  if (kind) list.remove(row.id);
  details.refresh();
  const name = kind === "cited" ? "Marked as cited" : kind === "hidden" ? "Hidden" : "Mark removed";
  toast(
    `${name}: ${paper.title.length > 50 ? `${paper.title.slice(0, 49)}…` : paper.title}`,
    kind ? { name: "Undo", run: undo } : undefined,
  );
  rankAgain();
}

// A mark changes the next list, not the one that is read.
function rankAgain() {
  $("#again").hidden = !state.searched || running !== null;
}

function undo() {
  const latest = undone.pop();
  if (!latest) return;
  if (latest.draft !== state.id) {
    toast("The last mark is one of another draft");
    return;
  }
  mark(latest.kind, latest.paper);
  draft.trays();
  if (latest.row && !latest.kind && !list.element(latest.row.id))
    list.insert(latest.row, latest.place);
  details.refresh();
  toast("Undone");
  rankAgain();
}

const markOf = id =>
  ["cited", "hidden"].find(name => marks()[name].some(one => one.id === id)) ?? null;

// Index, link

function chooseIndex(name) {
  state.index = indexes.includes(name) ? name : indexes[0];
  $("#index").value = state.index;
  const option = $$("#index option").find(one => one.value === state.index);
  $("#corpus-facts").textContent = [
    count(Number(option.dataset.papers), "paper"),
    option.dataset.years,
    option.dataset.ready,
  ]
    .filter(Boolean)
    .join(" · ");
  results.names(state.index);
  draft.trays();
}

async function share() {
  try {
    await copy(link(list.rows.map(row => row.id)));
    toast("Link copied: marks, settings and this list, without your text");
  } catch (error) {
    toast(error.message);
  }
}

// An editor brings a sentence after the #, which no browser sends to a server; what it replaces
// can be brought back.
function openSentence({ index, context, title }) {
  const before = structuredClone(state),
    { id } = state;
  const restore = event => {
    running?.abort();
    if (state.id !== id) store.remove(state.id);
    store.put(before);
    chooseIndex(state.index);
    draft.fill();
    event.target.closest("p").remove();
  };
  chooseIndex(index);
  draft.remember();
  Object.assign(state, { mode: "sentence", context, withDraft: Boolean(title) });
  if (title && title !== state.title)
    Object.assign(state, { title, abstract: "", meta: {}, metaTitle: "" });
  draft.settle();
  store.keep();
  draft.fill();
  const replaced =
    (before.context.trim() && before.context !== context) ||
    (title && before.title.trim() && before.title !== title);
  if (replaced)
    brought.push(
      h(
        "span",
        {},
        "The address of this page brought the text. ",
        h(
          "button",
          { type: "button", class: "link", on: { click: restore } },
          "Bring back what was here",
        ),
      ),
    );
  find();
}

// A link brings marks and a list by their ids; their titles come from the corpus. It is a view:
// the draft, marks and settings of its reader stay as they are, and it becomes a draft of its
// own once it is changed or taken over.
async function openLink(from) {
  if (from.context) {
    history.replaceState(history.state, "", location.pathname);
    return openSentence(from);
  }
  const alone = from.paper && !from.list.length && !from.cited.length && !from.hidden.length;
  if (alone && from.index === state.index)
    return details.open(from.paper, history.state?.depth ?? 0);
  clear();
  const { index, k, year, yearMax, cited, hidden } = from;
  const own = store.drafts().length > 0;
  store.view({ index, k, year, yearMax });
  chooseIndex(index);
  if (from.paper) details.open(from.paper, history.state?.depth ?? 0);
  if (alone) {
    draft.fill();
    return;
  }
  const titles = new Map(),
    ids = [...cited, ...hidden];
  const papers = async wanted =>
    wanted.length
      ? get("page/papers", [["index", index], ...wanted.map(id => ["ids", id])])
      : { rows: [], links: [] };
  for (let i = 0; i < ids.length; i += 100)
    for (const row of (await papers(ids.slice(i, i + 100))).rows)
      titles.set(row.id, clean(row.title));
  const found = await papers(from.list);
  if (!store.viewing) return; // the author went on
  const marked = wanted =>
    wanted.filter(id => titles.has(id)).map(id => ({ id, title: titles.get(id) }));
  state.marks = { [index]: { cited: marked(cited), hidden: marked(hidden) } };
  draft.fill();
  const button = (text, run) =>
    h("button", { type: "button", class: "link", on: { click: run } }, text);
  const gone = from.list.length - found.rows.length;
  note([
    h(
      "span",
      {},
      `A link brought ${count(found.rows.length, "paper")} and ${count(titles.size, "mark")}; `,
      "the text of the draft is not in it. Nothing of yours was changed. ",
      gone
        ? `${count(gone, "paper")} of it ${gone === 1 ? "is" : "are"} no longer in this corpus. `
        : "",
      button("Take it over as a draft", store.keep),
      own ? [" · ", button("Back to my draft", () => openDraft())] : "",
    ),
  ]);
  if (found.rows.length) {
    shown({
      ...found,
      rows: found.rows.map(row => ({ ...dressed(row), score: null, probability: null })),
    });
    say(`A shared list of ${count(found.rows.length, "paper")}.`);
  }
}

function adopted() {
  history.replaceState(here({ draft: state.id, found: null }), "", location.pathname);
  note([]);
  toast("This is a draft of yours now; the others are under Settings");
}

// What an address brings, if anything: a step of the history of its own.
function arrived(from) {
  const link = from && !from.context ? from : null;
  history.replaceState({ ...history.state, ...here({ draft: state.id, found: null, link }) }, "");
  visible = history.state.visit;
  if (from) openLink(from).catch(failed);
}

// Another tab changed the draft that is open here, too.
function elsewhere() {
  chooseIndex(state.index);
  draft.fill();
  for (const { id } of [...marks().cited, ...marks().hidden]) list.remove(id);
  if (state.searched) rankAgain();
}

// Drafts

// Ends a search without a word, because something else is shown.
function stop() {
  running?.abort();
  running = null;
  busy(false);
}

// The page before a search.
function clear() {
  stop();
  $("#question").replaceChildren();
  $("#read").replaceChildren();
  list.show([]);
  note([]);
  say("");
  stages([]);
  results.greet();
}

function openDraft(id) {
  if (!store.open(id)) return;
  clear();
  chooseIndex(state.index);
  draft.fill();
  const step = here({ draft: state.id, found: null });
  visible = step.visit;
  history.pushState(step, "", location.pathname);
  if (state.searched && typeof draft.request() !== "string") find({ push: false });
}

function newDraft() {
  const { id } = state,
    wasEmpty = store.isEmpty();
  store.begin();
  store.keep();
  openDraft(state.id);
  $(state.mode === "sentence" ? "#context" : "#title").focus();
  const back = () => {
    store.remove(state.id);
    openDraft(id);
  };
  if (wasEmpty) store.remove(id);
  else toast("A new draft; the others are under Settings", { name: "Undo", run: back });
}

function forgetAll() {
  if (!confirm("Forget all drafts and marks of this browser? This cannot be undone.")) return;
  running?.abort();
  store.forget();
  history.replaceState(null, "", location.pathname);
  location.reload();
}

// The back button: each search, each opened paper and each draft is a step of the browser's
// history.

const visits = new Map(); // what the steps of this page show
const paperAddress = id => {
  const parts = new URLSearchParams(
    store.viewing ? location.hash.slice(1) : { index: state.index },
  );
  parts.set("paper", id);
  return `#${parts}`;
};

function here(visit) {
  const name = `${performance.timeOrigin} ${visits.size}`;
  visits.set(name, visit);
  return { visit: name };
}

function openPaper(id) {
  const depth = $("#details").open ? (history.state?.depth ?? 0) + 1 : 1;
  history.pushState({ ...history.state, paper: id, depth }, "", paperAddress(id));
  details.open(id, depth);
}

function closedPaper(steps) {
  if (steps) history.go(-steps);
  else history.replaceState({ visit: history.state?.visit }, "", location.pathname);
  if (store.viewing && !list.rows.length) openDraft(); // a paper of another corpus
}

let visible = null; // the visit that is shown

function travelled({ state: at }) {
  if (!at) return; // a new address
  if (at.paper) details.open(at.paper, at.depth);
  else details.close();
  const visit = visits.get(at.visit);
  if (!visit || at.visit === visible) return;
  visible = at.visit;
  stop();
  if (visit.link) {
    openLink(visit.link).catch(failed);
    return;
  }
  if (visit.draft !== state.id && store.open(visit.draft)) draft.fill();
  chooseIndex(state.index);
  if (visit.found) results.present(visit.found);
  else clear();
}

async function example() {
  try {
    const example = await get("page/example", { index: state.index });
    if (!store.isEmpty()) store.begin();
    Object.assign(state, example, { mode: "draft" });
    keep();
    draft.fill();
    find();
  } catch (error) {
    if (error instanceof Problem) toast(clean(error.message));
  }
}

// A server with tokens names its indexes only to those who have one.
async function loadIndexes() {
  const found = await get("page/indexes");
  $("#index").replaceChildren(
    ...found.map(one =>
      h(
        "option",
        {
          value: one.name,
          data: {
            papers: one.papers,
            ready: one.found_by,
            ...(one.years ? { years: one.years.join("–") } : {}),
          },
        },
        one.name,
      ),
    ),
  );
  $("#index").hidden = found.length < 2;
  $("#only-index").hidden = found.length !== 1;
  $("#only-index").textContent = found[0]?.name ?? "";
  indexes = found.map(one => one.name);
}

async function start() {
  theme();
  await loadIndexes();
  if (store.discarded)
    brought.push("What this browser had kept could not be read; it was discarded.");
  note([...brought]); // and again above the list
  results.start({ open: row => openPaper(row.id) });
  store.start({ adopted, changed: elsewhere });
  list.start({
    open: row => openPaper(row.id),
    openId: openPaper,
    known: row => setMark(row, "cited"),
    hide: row => setMark(row, "hidden"),
    shown: results.around,
    selected: chosen,
  });
  details.start({
    rowOf: id => list.rows.find(row => row.id === id) ?? null,
    mark: setMark,
    markOf,
    copy: ids => give("bibtex", ids, "copy"),
    openId: openPaper,
    closed: closedPaper,
  });
  draft.start({
    find: () => (running ? running.abort() : find()),
    openId: openPaper,
    openDraft,
    unmark: paper => setMark(paper, null),
  });
  const on = run => () => {
    const row = list.current();
    if (row) run(row);
  };
  keys.start({
    find: () => find(),
    j: () => list.go(1),
    k: () => list.go(-1),
    o: on(row => openPaper(row.id)),
    i: on(row => setMark(row, "cited")),
    h: on(row => setMark(row, "hidden")),
    x: on(row => list.select(row)),
    u: undo,
    c: () => give("bibtex", selectedIds(), "copy"),
    n: () => {
      if (!$("#again").hidden) find();
    },
    "/": () => {
      const field = $(state.mode === "sentence" ? "#context" : "#title");
      field.focus();
      field.select();
    },
  });
  for (const button of $$("[data-copy]"))
    button.addEventListener("click", () => give(button.dataset.copy, selectedIds(), "copy"));
  for (const button of $$("[data-save]"))
    button.addEventListener("click", () => give(button.dataset.save, selectedIds(), "save"));
  $("#all").addEventListener("change", event => {
    const to = event.target.checked;
    for (const row of list.rows) if (!list.element(row.id).hidden) list.select(row, to);
  });
  $("#index").addEventListener("change", event => {
    chooseIndex(event.target.value);
    keep();
    list.show([]);
    if (state.searched) find();
  });
  startTheme();
  $("#forget").addEventListener("click", forgetAll);
  $("#new").addEventListener("click", newDraft);
  $("#explore-toggle").addEventListener("click", event => {
    const open = document.body.classList.toggle("exploring");
    event.currentTarget.setAttribute("aria-expanded", String(open));
    if (open)
      $("#explore").scrollIntoView({ block: "start", behavior: still() ? "auto" : "smooth" });
  });
  $("#again button").addEventListener("click", () => find());
  $("#enlarge").addEventListener("click", results.enlarge);
  $("#share").addEventListener("click", share);
  $("#example").addEventListener("click", example);
  chooseIndex(state.index);
  draft.fill();
  results.around();
  keepFocus();
  arrived(fromLink(indexes));
  if (!store.viewing && state.searched && typeof draft.request() !== "string" && !running)
    find({ push: false });
  addEventListener("popstate", travelled);
  addEventListener("hashchange", () => {
    const from = fromLink(indexes);
    if (from && !history.state) arrived(from);
  });
  document.documentElement.dataset.ready = "1";
}

start();
