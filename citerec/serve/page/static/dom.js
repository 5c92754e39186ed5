// Elements from data. Texts become text nodes: nothing of a corpus is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/g; // controls of direction

/** @type {(selector: string, root?: ParentNode) => any} */
export const $ = (selector, root = document) => root.querySelector(selector);
/** @type {(selector: string, root?: ParentNode) => any[]} */
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

export const clean = text => String(text ?? "").replace(DIRECTION, "");

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria-") && typeof value === "boolean") {
      element.setAttribute(name, String(value));
      continue;
    }
    if (value === undefined || value === null || value === false) continue;
    if (name === "on")
      for (const [type, listener] of Object.entries(value))
        element.addEventListener(type, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter(child => child !== null && child !== undefined && child !== false),
  );
  return element;
}

export const h = (tag, properties = {}, ...children) =>
  fill(document.createElement(tag), properties, children);
export const s = (tag, properties = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), properties, children);

export const icon = name =>
  s(
    "svg",
    { class: "icon", "aria-hidden": "true" },
    s("use", { href: `static/icons.svg#${name}` }),
  );

// Parts of a text, of which those at odd places are marked.
export const marked = parts =>
  parts.map((part, i) => (i % 2 ? h("mark", {}, clean(part)) : clean(part)));
export const plain = parts => clean(parts.join(""));

// A paper as the API returns it, as a row: the words that its first reason names are marked, by
// their stems.
const ENDING =
  /(?:ization|ations|ation|ingly|ments|ment|ness|ings|ing|ies|ied|ers|er|ed|es|ly|s|y|e)$/;
const MATCHES = "matches: ";
const SNIPPET = 240; // characters, about two lines
const stem = word => word.toLowerCase().replace(ENDING, (ending, at) => (at >= 3 ? "" : ending));
const split = text => clean(text).split(/([\p{L}\p{N}]+)/u); // words are at odd places

export function dressed(row) {
  const words = row.reasons.find(one => one.startsWith(MATCHES))?.slice(MATCHES.length) ?? "";
  const stems = new Set(
    split(words)
      .filter((_, i) => i % 2)
      .map(stem),
  );
  const found = text => split(text).filter((part, i) => i % 2 && stems.has(stem(part)));
  const marks = text =>
    split(text).reduce(
      (parts, part, i) => {
        if (i % 2 && stems.has(stem(part))) return [...parts, part, ""];
        return [...parts.slice(0, -1), parts.at(-1) + part];
      },
      [""],
    );
  const sentences = clean(row.abstract).split(/(?<=[.!?。])\s+/);
  const counts = sentences.map(one => new Set(found(one).map(stem)).size);
  const best = counts.indexOf(Math.max(...counts));
  const text = `${best ? "… " : ""}${sentences.slice(best).join(" ")}`;
  const start = text.slice(0, SNIPPET).replace(/\s\S*$/, "");
  const snippet = text.length > SNIPPET ? `${start}…` : text;
  const reasons = row.reasons.map(one => (one.startsWith(MATCHES) ? marks(one) : [one]));
  return {
    ...row,
    title: marks(row.title),
    abstract: marks(row.abstract),
    snippet: marks(snippet),
    reasons,
  };
}

export const count = (n, one, many = `${one}s`) =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// The last thing that happened, with its undo: within the open dialog, because all else is out
// of reach then.
let toastTimer = 0;
export function toast(text, action) {
  const place = $("#toast"),
    home = $("dialog[open]") ?? document.body;
  if (place.parentElement !== home) home.append(place);
  const run = () => {
    place.classList.remove("shown");
    action.run();
  };
  place.replaceChildren(
    h("span", {}, text),
    action ? h("button", { type: "button", on: { click: run } }, action.name) : "",
  );
  place.classList.add("shown");
  const hide = () => {
    if (place.matches(":hover, :focus-within")) toastTimer = setTimeout(hide, 1000);
    else place.classList.remove("shown");
  };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(hide, action ? 7000 : 3500);
}

document.addEventListener(
  "close",
  event => {
    if ($("#toast", /** @type {Element} */ (event.target))) document.body.append($("#toast"));
  },
  true,
);

// Focus that would fall to the body, because its element went or was hidden, goes to the sheet
// or the list.
export function keepFocus() {
  let held = null;
  const isThere = () => held.isConnected && held.checkVisibility({ visibilityProperty: true });
  const rescue = () => {
    if (!held || isThere()) return;
    held = null;
    ($("dialog[open] h2[tabindex]") ?? $("dialog[open] button") ?? $("#results")).focus({
      preventScroll: true,
    });
  };
  document.addEventListener("focusin", event => {
    held = event.target;
  });
  document.addEventListener("focusout", event => {
    const left = event.target; // by a click on the page, or because it is about to go
    setTimeout(() => {
      if (held === left && document.activeElement !== left && isThere()) held = null;
    });
  });
  new MutationObserver(rescue).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["hidden", "class", "open"],
  });
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // not a secure page: the old way
    const area = h("textarea", { class: "hush", "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done)
      throw new Error("The browser does not allow copying here; download the file instead.");
  }
}

export function save(text, name, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
