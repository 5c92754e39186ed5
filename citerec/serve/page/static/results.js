// The list and what is around it: what is said of it, filters, pictures, the selected rows.

import { $, $$, clean, count, h } from "./dom.js";
import * as facets from "./facets.js";
import * as list from "./list.js";
import * as map from "./map.js";
import * as plot from "./plot.js";
import { Problem } from "./server.js";
import { marks } from "./store.js";

export const brought = []; // the notice of what an address brought, until it was shown
let links = []; // citations among the shown papers: pairs of ids
let drawing = 0; // the timer of the pictures
let handlers = {};

export function start(given) {
  handlers = given;
  facets.start(around);
}

export function say(text) {
  $("#status").textContent = text;
}

export function stages(steps) {
  $("#stages").replaceChildren(
    ...steps.map(({ name, on, done }) =>
      h("span", { class: `stage${done ? " done" : on ? " on" : ""}` }, name),
    ),
  );
}

export function note(texts) {
  $("#notices").replaceChildren(
    ...texts.map(text =>
      h("p", { class: "notice", dir: "auto" }, typeof text === "string" ? clean(text) : text),
    ),
  );
}

const seconds = value => (value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);

export function present(found) {
  stages([
    { name: found.found_by, done: true },
    ...found.ranked_by.map(name => ({ name, done: true })),
  ]);
  note([
    ...brought.splice(0),
    ...found.notices,
    ...(found.not_found.length
      ? [
          `Not in this corpus: ${found.not_found.slice(0, 3).join("; ")}` +
            (found.not_found.length > 3 ? "; …" : ""),
        ]
      : []),
  ]);
  if (!found.rows.length) {
    nothing(found.empty_reason);
    return;
  }
  shown(found);
  say(`${count(found.rows.length, "paper")}, ranked after ${seconds(found.seconds)}.`);
}

export function shown(found) {
  links = found.links.map(([i, j]) => [found.rows[i].id, found.rows[j].id]);
  const away = new Set([...marks().cited, ...marks().hidden].map(paper => paper.id));
  list.show(found.rows.filter(row => !away.has(row.id)));
}

function nothing(why) {
  list.show([]);
  empty(
    "Nothing was found",
    [why || "No paper of this corpus matches the text."],
    [
      "Is it the right corpus? Are the years in the settings too narrow?",
      "A longer text, such as the abstract, finds more.",
    ],
  );
  say("No paper was found.");
}

export function failed(error) {
  const text =
    error instanceof Problem
      ? clean(error.message)
      : "Something went wrong on this page; reload it. Draft and marks are kept.";
  if (!(error instanceof Problem)) console.error(error);
  stages([]);
  say("");
  note([h("span", { class: "fault", role: "alert" }, text)]);
}

const welcome = [...$("#empty").childNodes];

export function names(corpus) {
  for (const part of welcome)
    for (const place of part.querySelectorAll?.(".name") ?? []) place.textContent = corpus;
}

export function greet() {
  $("#empty").hidden = false;
  $("#empty").replaceChildren(...welcome);
}

function empty(title, texts, hints = []) {
  $("#empty").hidden = false;
  $("#empty").replaceChildren(
    $("#empty .sketch"),
    h("h2", {}, title),
    ...texts.map(text => h("p", { dir: "auto" }, clean(text))),
    hints.length
      ? h(
          "ul",
          { class: "hint" },
          hints.map(hint => h("li", {}, hint)),
        )
      : "",
  );
}

// Everything around the list: facets, pictures, tools.
export function around() {
  const { rows } = list;
  $("#tools").hidden = $("#explore").hidden = rows.length === 0;
  document.body.classList.toggle("has-list", rows.length > 0);
  if (rows.length) $("#empty").hidden = true;
  facets.draw(rows);
  for (const row of rows) list.element(row.id).hidden = !facets.passes(row);
  list.rove();
  clearTimeout(drawing);
  drawing = setTimeout(pictures, 30); // the rows come first
  chosen();
}

function pictures() {
  const place = new Map(list.rows.map((row, i) => [row.id, i]));
  const pairs = links
    .filter(([a, b]) => place.has(a) && place.has(b))
    .map(([a, b]) => [place.get(a), place.get(b)]);
  const on = { open: row => handlers.open(row.id), point };
  plot.draw(list.rows, facets.passes, on);
  map.draw($("#map"), list.rows, pairs, facets.passes, on);
  if ($("#picture").open)
    map.draw($("#large-map"), list.rows, pairs, facets.passes, on, {
      width: 1000,
      height: 640,
      labels: 14,
    });
}

function point(id) {
  plot.point(id);
  for (const row of list.rows) list.element(row.id)?.classList.toggle("pointed", row.id === id);
}

export function enlarge() {
  const close = h(
    "button",
    {
      type: "button",
      class: "quiet close",
      "aria-label": "Close",
      on: { click: () => $("#picture").close() },
    },
    "×",
  );
  $("#picture").replaceChildren(
    close,
    h("h2", {}, "Citations within the list"),
    h(
      "p",
      { class: "hint" },
      "An arrow leads to the cited paper; circles grow with citations, darker ones are newer.",
    ),
    h("div", { id: "large-map" }),
  );
  $("#picture").showModal();
  pictures();
}

export function chosen() {
  const all = list.rows.filter(row => !list.element(row.id).hidden),
    some = list.selected();
  $("#selected").textContent = some.length ? `${some.length} selected` : "Select all";
  $("#all").checked = some.length > 0 && some.length === all.length;
  $("#all").indeterminate = some.length > 0 && some.length < all.length;
  for (const button of $$("[data-copy], [data-save]")) button.disabled = some.length === 0;
}

export const selectedIds = () => list.selected().map(row => row.id);
