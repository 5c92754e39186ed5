// The sheet of one paper: abstract, reasons, what it cites and what cites it inside the corpus.

import { $, clean, count, dressed, h, icon, marked } from "./dom.js";
import { bibliographic, named, reasons } from "./list.js";
import { Problem, get } from "./server.js";
import { state } from "./store.js";

const sheet = $("#details"),
  page = h("div");
const MOST = 12,
  MOST_READ = 200; // related papers that are shown at first, and that are read
let handlers = {},
  request = null;
let id = null,
  shown = null; // the paper that is open, and its row once it is known
let depth = 0; // steps of the browser's history from the list to it; 0: an address brought it
let known = { id: null, related: null }; // the citations that were read last

export function start(given) {
  handlers = given;
  sheet.prepend(page);
  sheet.addEventListener("click", event => {
    if (event.target === sheet) sheet.close();
  });
  sheet.addEventListener("close", () => {
    request?.abort();
    if (id !== null) handlers.closed(depth);
    id = null;
  });
}

// Closes it without a step in the history, which has been there already.
export function close() {
  id = null;
  if (sheet.open) sheet.close();
}

export async function open(next, steps) {
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  [id, depth, shown] = [next, steps, handlers.rowOf(next)];
  sheet.scrollTop = 0;
  draw("");
  if (!sheet.open) sheet.showModal();
  $("#details-title").focus();
  try {
    const [listed, related] = await Promise.all([
      shown ? null : get("page/papers", { index: state.index, ids: next }, signal),
      get(
        `v1/papers/${encodeURIComponent(next)}`,
        { index: state.index, limit: MOST_READ },
        signal,
      ),
    ]);
    if (signal.aborted) return;
    known = { id, related };
    shown ??= dressed(listed.rows[0]);
    draw("");
  } catch (error) {
    if (error.name !== "AbortError")
      draw(error instanceof Problem ? error.message : "This paper could not be read.");
  }
}

// Shows the marks of the open paper anew.
export function refresh() {
  if (id && shown) draw("");
}

function draw(fault) {
  const row = shown,
    related = known.id === id ? known.related : null;
  const title = row ? (row.title.join("").trim() ? marked(row.title) : "Untitled") : "…";
  const place = sheet.scrollTop;
  const at = /** @type {HTMLElement} */ (document.activeElement);
  const held = page.contains(at) && at.dataset.name;
  page.replaceChildren(
    h(
      "div",
      { class: "sheet-bar" },
      depth > 1 &&
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            "aria-label": "Back to the previous paper",
            data: { name: "back" },
            on: { click: () => history.back() },
          },
          icon("back"),
        ),
      h("span", { class: "grow" }),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": "Close",
          data: { name: "close" },
          on: { click: () => sheet.close() },
        },
        icon("close"),
      ),
    ),
    h(
      "article",
      {},
      h("h2", { id: "details-title", dir: "auto", tabindex: -1 }, title),
      row && h("p", { class: "by" }, bibliographic(row)),
      row &&
        row.authors.length > 4 &&
        h("p", { class: "all-people", dir: "auto" }, row.authors.map(clean).join(", ")),
      row && h("p", { class: "links" }, links(row)),
      row && actions(row),
      fault && h("p", { class: "fault", role: "alert" }, fault),
      row &&
        row.abstract.join("") && [
          h("h3", {}, "Abstract"),
          h("p", { class: "abstract", dir: "auto" }, marked(row.abstract)),
        ],
      row &&
        row.reasons.length > 0 && [
          h("h3", {}, "Why it is in the list"),
          h("ul", { class: "reasons" }, reasons(row)),
        ],
      row && Object.keys(row.stages).length > 0 && stages(row),
      related
        ? [group("Cites", related.references), group("Cited by", related.cited_by)]
        : !fault && h("p", { class: "hint", role: "status" }, "Reading its citations…"),
    ),
  );
  sheet.scrollTop = place;
  if (held) $(`[data-name="${held}"]`, page)?.focus({ preventScroll: true });
}

function links(row) {
  const out = (href, text) =>
    h("a", { href, target: "_blank", rel: "noopener noreferrer" }, text, icon("out"));
  const doi = clean(row.doi).replace(/^https?:\/\/(dx\.)?doi\.org\//i, "");
  return [
    /^10\./.test(doi) &&
      out(`https://doi.org/${doi.split("/").map(encodeURIComponent).join("/")}`, `doi:${doi}`),
    /^https?:\/\//i.test(row.url) && out(row.url, "Web page"),
    h("code", { class: "id" }, clean(row.id)),
  ];
}

function actions(row) {
  const marked = handlers.markOf(row.id);
  const press = kind => () => handlers.mark(row, marked === kind ? null : kind);
  const button = (kind, text, picture) =>
    h(
      "button",
      {
        type: "button",
        "aria-pressed": marked === kind,
        data: { name: kind },
        on: { click: press(kind) },
      },
      icon(picture),
      text,
    );
  return h(
    "div",
    { class: "export" },
    button("cited", "I know this one", "check"),
    button("hidden", "Hide", "eye-off"),
    h(
      "button",
      { type: "button", data: { name: "copy" }, on: { click: () => handlers.copy([row.id]) } },
      icon("copy"),
      "Copy BibTeX",
    ),
  );
}

function stages(row) {
  const names = {
    bm25: "BM25",
    dense: "Vectors",
    expand: "Citations of similar papers",
    rerank: "Reranker",
    ranker: "Ranking model",
  };
  return h(
    "details",
    { class: "stages-of" },
    h("summary", {}, "Scores of each stage"),
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", { scope: "col" }, "Stage"),
          h("th", { scope: "col" }, "Rank"),
          h("th", { scope: "col" }, "Score"),
        ),
      ),
      h(
        "tbody",
        {},
        Object.entries(row.stages).map(([name, hit]) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, names[name] ?? clean(name)),
            h("td", {}, hit.rank),
            h("td", {}, hit.score.toPrecision(4)),
          ),
        ),
      ),
    ),
  );
}

function group(name, { results, total }) {
  const list = h(
    "ul",
    { class: "related" },
    results.map((paper, i) =>
      h(
        "li",
        { hidden: i >= MOST },
        named(paper.id, paper.title, handlers.openId),
        h("span", { class: "year" }, paper.year ?? ""),
      ),
    ),
  );
  const more =
    results.length > MOST &&
    h(
      "button",
      {
        type: "button",
        class: "link",
        on: {
          click: event => {
            for (const item of list.children) item.hidden = false;
            event.target.remove();
          },
        },
      },
      `${results.length - MOST} more`,
    );
  return [
    h(
      "h3",
      {},
      name,
      " ",
      h(
        "span",
        { class: "hint" },
        total ? count(total, "paper") + " of this corpus" : "no paper of this corpus",
      ),
    ),
    list,
    more,
  ];
}
