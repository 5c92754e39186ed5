// The header: the corpus, the link, the colours, the help; and troubles with the server.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { saveDrafts } from "../backup.js";
import { $, motion } from "../browser.js";
import { behind } from "../desk.js";
import { faults, kept } from "../kept.js";
import { keepLooks, looks, marks, nameOf, now, restore, state, unkept, update } from "../store.js";
import { count } from "../text.js";
import { changeIndex, share } from "../travel.js";
import { icon, onValue, picture } from "./parts.js";

/** @type {Record<string, string>} */
const THEMES = { auto: "as the system", light: "light", dark: "dark" };
const LINK = "The link holds marks, settings and the papers of the list, never your text";

function nextTheme() {
  const names = Object.keys(THEMES);
  looks.theme = names[(names.indexOf(looks.theme) + 1) % names.length];
  keepLooks();
  update();
}

function showShelf() {
  update({ shelf: true });
  $("#shelf").scrollIntoView({ block: "nearest", behavior: motion() });
  $("#shelf-toggle").focus({ preventScroll: true });
}

export function top() {
  const taken = marks().taken.length;
  const colours = `Colours: ${THEMES[looks.theme]}`;
  return html`<header class="top">
    <h1 class="hush">citerec: papers that your draft should cite</h1>
    <a class="brand" href="./" aria-label="citerec, start page"
      ><svg aria-hidden="true" viewBox="0 0 32 32"><use href=${picture("icon.svg#mark")}></use></svg
      ><span>cite<b>rec</b></span></a
    >
    <div class="corpus">${corpus()}</div>
    <nav aria-label="Page">
      <button type="button" id="to-shelf" class="quiet" aria-label="Shelf: ${count(taken, "paper")}"
        @click=${showShelf}
        >${icon("take")}<span>Shelf</span> <b class="count">${taken}</b></button>
      <button type="button" id="share" class="quiet" aria-label="Copy link" title=${LINK} @click=${share}>
        ${icon("link")}<span>Copy link</span>
      </button>
      <button type="button" id="theme" class="quiet" aria-label=${colours} title=${colours}
        @click=${nextTheme}>${icon("contrast")}</button>
      <button type="button" id="help" class="quiet" aria-label="Help"
        title="Help (?)" @click=${() => update({ help: true })}>${icon("help")}</button>
    </nav>
  </header>`;
}

function corpus() {
  const { indexes } = now;
  const one = indexes.find(index => index.name === state.index);
  const added = one?.new ? `${one.new} new` : "";
  const facts = one && [count(one.papers, "paper"), added, one.years?.join("–")];
  return html`<label class="hush" for="index">Corpus</label>
    <select id="index" ?hidden=${indexes.length < 2}
      @change=${onValue(changeIndex)}>
      ${indexes.map(
        ({ name }) =>
          html`<option value=${name} .selected=${name === state.index}>${name}</option>`,
      )}
    </select>
    ${indexes.length === 1 ? html`<b class="only">${indexes[0].name}</b>` : nothing}
    <span id="corpus-facts">${facts?.filter(Boolean).join(" · ")}</span>`;
}

export const trouble = () =>
  html`<div class="troubles">
    <div id="trouble" class="trouble" role="alert" ?hidden=${!now.trouble}
      >${now.trouble && ("use" in now.trouble ? token(now.trouble) : waiting(now.trouble))}</div>
    ${unkeptNotice()}
  </div>`;

/** @type {(names: string[]) => string} */
const listed = names =>
  `${names.slice(0, 3).join(", ")}${names.length > 3 ? `, and ${names.length - 3} more` : ""}`;

/** @type {(name: string, run: () => void) => View} */
const act = (name, run) => html`<button type="button" @click=${run}>${name}</button>`;

// What this browser did not keep, or could not read: it is in this tab, and in the file.
function unkeptNotice() {
  const { removed, dropped, broken } = faults;
  const isAway = now.trouble && "left" in now.trouble; // which another bar says
  const fault = isAway ? "" : now.desk?.fault;
  const why = kept.isOpen
    ? "The storage of this browser is full"
    : "This browser keeps nothing of this page";
  /** @type {(text: string, names: string[]) => string[]} */
  const line = (text, names) => (names.length ? [`${text}: ${listed(names)}.`] : []);
  const lines = [
    line(`${why}. In this tab alone, until it is closed`, unkept()),
    line(
      "Removed in another tab or browser, or with the data of this browser. Only here",
      unkept(true),
    ),
    line("The storage was full. Without marks, and removed to make room", dropped.map(nameOf)),
    fault ? [fault] : [],
    line("Not in the folder of the desk yet, but in this browser", fault ? behind() : []),
    line("Could not be read, and is set aside", broken ? [count(broken, "record")] : []),
  ].flat();
  const close = () => {
    Object.assign(faults, { dropped: [], broken: 0 });
    update();
  };
  return html`<div id="unkept" class="trouble" role="alert" ?hidden=${!lines.length}>
    <span dir="auto">${lines.join(" ")}</span>
    ${lines.length ? act("Save all in a file", saveDrafts) : nothing}
    ${removed.size ? act("Keep it", restore) : nothing}
    ${dropped.length || broken ? act("Close", close) : nothing}
  </div>`;
}

/** @type {(wait: Waiting) => View} */
const waiting = ({ text, left, retry }) =>
  html`<span>${text} Next attempt in </span><b>${left} s</b
    ><button type="button" @click=${() => retry()}>Try now</button>`;

/** @type {(asked: Token) => View} */
function token({ isKnown, use }) {
  /** @type {(event: any) => void} */
  const submit = event => {
    event.preventDefault();
    use(event.target.elements.token.value.trim());
  };
  const text = isKnown
    ? "The server does not know this token; another one:"
    : "This server needs a token:";
  return html`<form class="token" @submit=${submit}>
    <label for="token">${text}</label>
    <input type="password" id="token" autocomplete="off" required />
    <button>Use it</button>
  </form>`;
}
