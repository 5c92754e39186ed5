// Elements from data. Texts become text nodes: nothing of a corpus is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/g; // characters that control direction

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

export const clean = text => String(text ?? "").replace(DIRECTION, "");

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
export const s = (tag, properties = {}, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

export const icon = name => s("svg", { class: "icon", "aria-hidden": "true" }, s("use", { href: `static/icons.svg#${name}` }));

// Parts of a text, of which those at odd places are marked.
export const marked = parts => parts.map((part, i) => (i % 2 ? h("mark", {}, clean(part)) : clean(part)));
export const plain = parts => clean(parts.join(""));

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

let toastTimer = 0;
export function toast(text, action) {
  const place = $("#toast");
  place.replaceChildren(h("span", {}, text), action ? h("button", { type: "button", on: { click: () => { action.run(); place.classList.remove("shown"); } } }, action.name) : "");
  place.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => place.classList.remove("shown"), action ? 7000 : 3500);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not a secure page: the old way
    const area = h("textarea", { class: "hush", "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("The browser does not allow copying here; download the file instead.");
  }
}

export function save(text, name, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
