// The list: rows in the order of the last search. Nothing but a search that a person asks for
// moves them.

import { $, $$, clean, count, h, icon, marked, plain, still } from "./dom.js";
import { paperLink } from "./store.js";

const list = $("#list");
const elements = new Map(); // by id
let handlers = {};
export let rows = []; // as shown

// The list is one stop of the Tab key: its current row and what is in it; arrow keys lead to
// the others.
export function start(given) {
  handlers = given;
  list.addEventListener("focusin", event => rove(event.target.closest(".row")));
  list.addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (step) go(step);
    else if (event.key === "Enter" && event.target.matches(".row")) handlers.open(current());
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

const STOPS = "input, button, a";

export function rove(to = $('.row[tabindex="0"]', list)) {
  const now = to && !to.hidden && to.isConnected ? to : $(".row:not([hidden])", list);
  for (const row of $$(".row", list)) {
    row.tabIndex = row === now ? 0 : -1;
    for (const part of $$(STOPS, row)) part.tabIndex = row.tabIndex;
  }
}

export function show(next) {
  elements.clear();
  list.replaceChildren(...next.map(rowElement));
  rows = next;
  handlers.shown?.();
}

// Brings a row back to its place, as when its mark is undone.
export function insert(row, place) {
  rows = rows.toSpliced(place, 0, row);
  list.insertBefore(rowElement(row, row.place), list.children[place] ?? null);
  handlers.shown?.();
}

// Takes one paper out of the list, as when it is marked.
export function remove(id) {
  rows = rows.filter(row => row.id !== id);
  const element = elements.get(id);
  elements.delete(id);
  if (!element) return;
  const others = $$(".row:not([hidden])", list),
    at = others.indexOf(element);
  const next = others[at + 1] ?? others[at - 1];
  const held = element.contains(document.activeElement);
  element.remove();
  if (held) next?.focus();
  handlers.shown?.();
}

export const element = id => elements.get(id);
export const selected = () => rows.filter(row => row.selected && !elements.get(row.id)?.hidden);

export function select(row, on = !row.selected) {
  row.selected = on;
  const element = elements.get(row.id);
  element.classList.toggle("selected", on);
  $("input", element).checked = on;
  handlers.selected?.();
}

// The row at the keyboard, and its neighbours; hidden rows are passed over.
export function current() {
  /** @type {HTMLElement | null | undefined} */
  const element = document.activeElement?.closest?.(".row");
  return element && rows.find(row => row.id === element.dataset.id);
}

export function go(step) {
  const shown = $$(".row:not([hidden])", list),
    last = shown.length - 1;
  const at = shown.indexOf(document.activeElement?.closest?.(".row") ?? null);
  const next = shown[at < 0 ? (step > 0 ? 0 : last) : Math.max(0, Math.min(last, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest", behavior: still() ? "auto" : "smooth" });
}

const MOST_REASONS = 2; // in a row; the paper's sheet has all
const percent = value =>
  value >= 0.995 ? ">99%" : value < 0.01 ? "<1%" : `${Math.round(value * 100)}%`;

export function people(authors) {
  const names = authors.map(clean);
  return names.length > 4
    ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} others`
    : names.join(", ");
}

export function bibliographic(row) {
  return [
    row.authors.length &&
      h(
        "span",
        {
          class: "people",
          dir: "auto",
          title: row.authors.length > 4 ? row.authors.map(clean).join(", ") : null,
        },
        people(row.authors),
      ),
    row.venue && h("span", { class: "venue", dir: "auto" }, clean(row.venue)),
    row.year && h("span", { class: "year" }, row.year),
    row.citations > 0 &&
      h("span", { class: "cites" }, `cited ${count(row.citations, "time")} here`),
  ].filter(Boolean);
}

// A link to a paper of the corpus; it opens here, and as a page of its own in a new tab.
export const named = (id, text, open) =>
  h(
    "a",
    {
      class: "named",
      dir: "auto",
      href: paperLink(id),
      on: {
        click: event => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          open(id);
        },
      },
    },
    clean(text) || "Untitled",
  );

export const reasons = row => row.reasons.map(parts => h("li", {}, marked(parts)));

function meter(row) {
  if (row.probability === null || row.probability === undefined) return null;
  const fill = h("i");
  fill.style.width = `${Math.max(2, row.probability * 100)}%`;
  const spoken = `probability that your draft cites it: ${percent(row.probability)}`;
  return h(
    "span",
    { class: "meter", title: spoken },
    h("b", { "aria-hidden": "true" }, percent(row.probability)),
    h("span", { class: "track", "aria-hidden": "true" }, fill),
    h("span", { class: "hush" }, spoken),
  );
}

function rowElement(row, place) {
  row.place = place;
  const name = plain(row.title) || "Untitled";
  const box = h("input", {
    type: "checkbox",
    "aria-label": `Select: ${name}`,
    data: { act: "select" },
    on: { change: () => select(row, box.checked) },
  });
  box.checked = Boolean(row.selected);
  const act = (kind, text, picture, help) =>
    h(
      "button",
      {
        type: "button",
        class: `act ${kind}`,
        title: help,
        data: { act: kind },
        "aria-label": `${text}: ${name}`,
        on: { click: () => handlers[kind](row) },
      },
      icon(picture),
      h("span", {}, text),
    );
  const content = [
    h(
      "div",
      { class: "lead" },
      box,
      h("span", { class: "rank", "aria-hidden": "true" }, place + 1),
    ),
    h(
      "div",
      { class: "text" },
      h(
        "h3",
        {},
        h(
          "button",
          {
            type: "button",
            class: "title",
            dir: "auto",
            data: { act: "open" },
            on: { click: () => handlers.open(row) },
          },
          row.title.join("").trim() ? marked(row.title) : "Untitled",
        ),
      ),
      h("p", { class: "by" }, bibliographic(row)),
      row.snippet.join("") && h("p", { class: "snippet", dir: "auto" }, marked(row.snippet)),
      row.reasons.length > 0 &&
        h("ul", { class: "reasons", "aria-label": "Reasons" }, reasons(row).slice(0, MOST_REASONS)),
    ),
    h(
      "div",
      { class: "side" },
      meter(row),
      h(
        "div",
        { class: "acts" },
        act("known", "I know this one", "check", "Mark it as cited, and rank again (i)"),
        act("hide", "Hide", "eye-off", "Hide it (h)"),
      ),
    ),
  ];
  const element = h(
    "li",
    { class: `row${row.selected ? " selected" : ""}`, tabindex: -1, data: { id: row.id } },
    content,
  );
  elements.set(row.id, element);
  return element;
}
