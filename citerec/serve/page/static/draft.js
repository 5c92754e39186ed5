// The form: the draft, the sentence, files, settings, and the trays of marked papers.

import { $, $$, clean, count, h, icon } from "./dom.js";
import { named } from "./list.js";
import { Problem, readFiles } from "./server.js";
import * as store from "./store.js";
import { keep, mark, marks, state } from "./store.js";

const fields = { title: "title", abstract: "abstract", context: "context" };
const numbers = { k: "k", year: "year", "year-max": "yearMax" };
let handlers = {};

export function start(given) {
  handlers = given;
  for (const [id, name] of Object.entries(fields)) {
    $(`#${id}`).addEventListener("input", event => {
      state[name] = event.target.value;
      if (!state.title) state.meta = {};
      grow();
      keep();
    });
  }
  for (const [id, name] of Object.entries(numbers)) {
    const read = event => {
      state[name] =
        event.target.checkValidity() && event.target.value
          ? Number(event.target.value)
          : name === "k"
            ? 20
            : null;
      keep();
    };
    $(`#${id}`).addEventListener("input", read); // a file may be dropped before the field is left
    $(`#${id}`).addEventListener("change", event => {
      read(event);
      event.target.value = state[name] ?? "";
    });
  }
  for (const radio of $$("[name=mode]"))
    radio.addEventListener("change", () => {
      state.mode = radio.value;
      keep();
      fill();
    });
  for (const name of ["title", "abstract"]) $(`#${name}`).addEventListener("focus", remember);
  $("#title").addEventListener("change", settle);
  $("#drafts").addEventListener("change", event => handlers.openDraft(event.target.value));
  $(".settings").addEventListener("toggle", choices);
  $("#with-draft").addEventListener("change", event => {
    state.withDraft = event.target.checked;
    keep();
    fill();
  });
  for (const field of $$("#title, #abstract")) field.addEventListener("paste", pasteAll);
  $("#title").addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      $("#abstract").focus();
    }
  });
  $("#draft").addEventListener("submit", event => {
    event.preventDefault();
    handlers.find();
  });
  $("#file").addEventListener("change", async event => {
    const files = [...event.target.files];
    await take(files);
    event.target.value = "";
  });
  dropping();
}

// Whether a text is BibTeX, RIS, CSL-JSON, DOIs, or a list of references with numbers and years.
function areReferences(text, lines) {
  if (/^\s*@[a-z]+\s*[{(]/i.test(text) || /^TY {1,2}- /m.test(text)) return true;
  if (/^\s*\[\s*\{/.test(text)) return true;
  const id =
    /^((https?:\/\/)?(dx\.)?doi\.org\/|doi:\s*)?10\.\d{4,9}\/\S+$|^arxiv:\s?\d{4}\.\d{4,5}/i;
  const reference = /^(\[\w+\]|\d{1,3}\.)\s.*\b(19|20)\d\d/;
  return lines.length > 0 && lines.every(line => id.test(line) || reference.test(line));
}

// Title and abstract pasted together: the first line is the title.
function pasteAll(event) {
  const text = event.clipboardData?.getData("text/plain") ?? "";
  const lines = text
    .split(/\r?\n/)
    .map(line => line.trim())
    .filter(Boolean);
  if (areReferences(text, lines)) {
    event.preventDefault();
    take([new File([text], /^\s*@/.test(text) ? "pasted.bib" : "pasted.ris")]);
    return;
  }
  if (event.target.id !== "title" || lines.length < 2 || state.title.trim()) return;
  event.preventDefault();
  remember();
  state.title = lines[0].replace(/^title\s*:\s*/i, "");
  const rest = lines
    .slice(1)
    .join(" ")
    .replace(/^abstract\s*[:.—–-]?\s*/i, "");
  if (rest) state.abstract = rest;
  state.meta = {};
  settle();
  keep();
  fill();
}

// A title of which less than half stays is that of a new draft, to which the marks of the
// former do not belong: they stay with it, and the author is asked.
let former = null; // the draft as it was before it was edited

export function remember() {
  if (store.viewing || !state.title.trim()) return;
  if (former?.id !== state.id || isOf(former.title, state.title)) former = structuredClone(state);
}

export function settle() {
  if (former?.id !== state.id || !state.title.trim() || isOf(former.title, state.title)) return;
  const [known, now] = [marks(), structuredClone(state)];
  if (!known.cited.length && !known.hidden.length && !state.searched) return;
  const old = { ...former, marks: now.marks, searched: now.searched };
  store.setAside(old);
  const { title, abstract, context, mode, withDraft, yearMax } = now;
  const year = now.year === now.metaYear ? null : now.year;
  store.begin({ title, abstract, context, mode, withDraft, year, yearMax });
  keep();
  former = null;
  $("#again").hidden = true;
  trays();
  const undo = () => {
    store.remove(state.id);
    store.put({ ...state, id: old.id, marks: old.marks, searched: old.searched });
    $("#question").replaceChildren();
    trays();
  };
  const button = { type: "button", class: "link", on: { click: undo } };
  $("#question").replaceChildren(
    h(
      "p",
      {},
      "A new draft, with no marks yet; “",
      h("span", { dir: "auto" }, clean(old.title)),
      "” keeps its own, under Settings. ",
      h("button", button, "Undo: the same draft"),
    ),
  );
}

// The drafts that can be opened, in the settings.
function choices() {
  const found = store.drafts();
  const name = ({ title, abstract, context }) =>
    clean(title || abstract || context)
      .trim()
      .slice(0, 80) || "Marks without a text";
  const option = one => h("option", { value: one.id, selected: one.id === state.id }, name(one));
  $("#drafts").replaceChildren(...found.map(option));
  $("#drafts").disabled = !found.some(one => one.id !== state.id);
  if (!found.some(one => one.id === state.id)) {
    const none = found.length ? "Choose a draft" : "None yet";
    $("#drafts").prepend(h("option", { value: "", selected: true }, none));
  }
}

export function fill() {
  for (const [id, name] of Object.entries(fields)) $(`#${id}`).value = state[name];
  for (const [id, name] of Object.entries(numbers)) $(`#${id}`).value = state[name] ?? "";
  for (const radio of $$("[name=mode]")) radio.checked = radio.value === state.mode;
  $("#with-draft").checked = state.withDraft;
  const sentence = state.mode === "sentence";
  $('[data-mode="sentence"]').hidden = !sentence;
  $('[data-mode="draft"]').hidden = sentence && !state.withDraft;
  grow();
  trays();
}

function grow() {
  // for browsers whose style sheets cannot
  if (CSS.supports("field-sizing", "content")) return;
  for (const area of $$("#title, #context")) {
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 2, 220)}px`;
  }
}

export function trays() {
  const { cited, hidden } = marks();
  tray($("#known"), cited, "Not cited after all");
  tray($("#hidden"), hidden, "Show it again");
  if ($(".settings").open) choices();
}

function tray(place, papers, back) {
  place.hidden = !papers.length;
  $(".count", place).textContent = papers.length;
  $("ul", place).replaceChildren(
    ...papers.map(paper =>
      h(
        "li",
        {},
        named(paper.id, paper.title, handlers.openId),
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            title: back,
            "aria-label": `${back}: ${clean(paper.title)}`,
            on: { click: () => handlers.unmark(paper) },
          },
          icon("close"),
        ),
      ),
    ),
  );
}

function dropping() {
  let depth = 0;
  const files = event => event.dataTransfer?.types.includes("Files");
  const show = on => document.body.classList.toggle("dropping", on);
  addEventListener("dragenter", event => {
    if (files(event)) {
      depth++;
      show(true);
    }
  });
  addEventListener("dragleave", event => {
    if (files(event) && --depth <= 0) {
      depth = 0;
      show(false);
    }
  });
  addEventListener("dragover", event => {
    if (files(event)) event.preventDefault();
  });
  addEventListener("drop", event => {
    if (!files(event)) return;
    event.preventDefault();
    depth = 0;
    show(false);
    dropped(event.dataTransfer).then(take, () => fault("The folder could not be read."));
  });
}

const TEXT = /\.(tex|ltx|bib|bibtex|bbl|ris|json|docx|md|markdown|qmd|rmd|txt|sty|cls|bst)$/i;
const MOST_FILES = 900; // that the server takes at once

// The files of what was dropped; of a folder those that a draft may need, with their paths in it.
async function dropped(transfer) {
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.());
  if (!entries.some(entry => entry?.isDirectory)) return [...transfer.files];
  const found = [];
  const visit = async entry => {
    if (!entry || found.length >= MOST_FILES) return;
    if (entry.isFile) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push(Object.assign(file, { path: entry.fullPath.slice(1) }));
      return;
    }
    if (entry.name.startsWith(".") || entry.name === "node_modules") return;
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length) return;
      for (const one of some) await visit(one);
    }
  };
  for (const entry of entries) await visit(entry);
  const texts = found.filter(file => TEXT.test(file.name) && !file.name.startsWith("."));
  const isLatex = texts.some(file => /\.(tex|ltx)$/i.test(file.name));
  const kept = isLatex
    ? texts
    : found.filter(file => TEXT.test(file.name) || /\.pdf$/i.test(file.name));
  return kept.length ? kept : found;
}

const fault = text => $("#read").replaceChildren(h("p", { class: "fault", role: "alert" }, text));

// Reads files on the server and shows what was read, for the author to correct before the search.
export async function take(files) {
  if (!files.length) return;
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const most = Number($("#drop").dataset.most);
  if (size > most) {
    const who = files.length > 1 ? "files are" : "file is";
    fault(
      `The ${who} too large: ${(size / 2 ** 20).toFixed(1)} MB; ` +
        `at most ${Math.floor(most / 2 ** 20)} MB in all.`,
    );
    return;
  }
  $("#read").replaceChildren(
    h("p", { class: "hint busy" }, `Reading ${files.map(file => file.name).join(", ")}…`),
  );
  let read;
  try {
    read = await readFiles(state.index, files);
  } catch (error) {
    fault(error instanceof Problem ? clean(error.message) : "The file could not be read.");
    return;
  }
  const { draft, cited, notices, unread } = read;
  if (draft) {
    remember();
    state.mode = state.mode === "sentence" && state.withDraft ? "sentence" : "draft";
    Object.assign(state, {
      title: draft.title,
      abstract: draft.abstract,
      meta: { authors: draft.authors, venue: draft.venue, doi: draft.doi },
      metaTitle: draft.title,
    });
    // the year of a former file does not stay
    if (draft.year || state.year === state.metaYear) state.year = draft.year;
    const { meta, metaTitle, year } = state;
    settle();
    Object.assign(state, { meta, metaTitle, year, metaYear: draft.year });
  }
  const fresh = cited.filter(paper => !marks().cited.some(one => one.id === paper.id));
  for (const paper of fresh) mark("cited", paper);
  keep();
  fill();
  showRead(draft, fresh, notices, unread);
  (draft && !draft.title ? $("#title") : $("#find")).focus();
  if (!draft && state.searched) handlers.find();
}

function showRead(draft, fresh, notices, unread) {
  const undo = () => {
    for (const paper of fresh) mark(null, paper);
    fill();
    $("#read").replaceChildren();
  };
  $("#read").replaceChildren(
    draft
      ? h(
          "p",
          {},
          h("b", {}, "Read. "),
          "Correct title and abstract if you like, then find papers.",
        )
      : h("p", {}, h("b", {}, "A list of references.")),
    fresh.length
      ? h(
          "p",
          {},
          `${count(fresh.length, "paper")} of this corpus marked as cited. `,
          h("button", { type: "button", class: "link", on: { click: undo } }, "Undo"),
        )
      : "",
    ...unread.map(line => h("p", { class: "fault", dir: "auto" }, clean(line))),
    h(
      "details",
      {},
      h("summary", {}, "What was read"),
      h(
        "ul",
        {},
        notices.map(notice => h("li", { dir: "auto" }, clean(notice))),
      ),
    ),
  );
}

const words = text =>
  new Set(
    String(text ?? "")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [],
  );

// Whether at least half of the words of the first title are in the second.
function isOf(one, other) {
  const of = words(one),
    now = words(other);
  return [...of].filter(word => now.has(word)).length * 2 >= of.size;
}

// What is searched for; a text if something is missing.
export function request() {
  const { cited, hidden } = marks();
  const ids = papers => (papers.length ? papers.map(paper => paper.id) : null);
  const common = {
    index: state.index || null,
    k: state.k,
    year_max: state.yearMax,
    cited: ids(cited),
    exclude: ids(hidden),
  };
  const [first, ...rest] = state.title.trim()
    ? [state.title.trim()]
    : state.abstract.trim().split(/\n+/); // free text: its first line is the title
  const abstract = state.title.trim() ? state.abstract.trim() : rest.join(" ");
  const meta = isOf(state.title, state.metaTitle) ? state.meta : {}; // is that of the file's title
  const query = { title: first, abstract, year: state.year, ...meta };
  const draft = first?.trim() ? { query } : null;
  if (state.mode === "sentence") {
    if (!state.context.trim()) return "Write the sentence that needs a reference.";
    return { ...common, context: state.context, ...(state.withDraft ? draft : {}) };
  }
  if (draft) return { ...common, ...draft };
  return cited.length ? common : "Write a title, or choose a file.";
}
