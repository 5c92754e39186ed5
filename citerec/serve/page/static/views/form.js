// The form: the draft, the sentence, files, settings, and the trays of marked papers.

import { html, noChange, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { live } from "../vendor/lit-html-3.3.3/directives/live.js";
import { $ } from "../browser.js";
import { edit, remember, settle, write } from "../draft.js";
import { pasteAll, take } from "../files.js";
import { find, focusDraft, rankAgain, setMark } from "../search.js";
import { counted, isEmpty, marks, now, state, subject, update } from "../store.js";
import { clean, count } from "../text.js";
import { toast } from "../toast.js";
import { changeIndex, forgetAll, newDraft } from "../travel.js";
import { fullText, lostText } from "../where.js";
import { adding } from "./add.js";
import { collecting } from "./collect.js";
import { chooseFile, fault, icon, link, named, onTick, onValue } from "./parts.js";
import { openReview, reason } from "./review.js";
import { shelf } from "./shelf.js";

const DRAFTS = ".tex,.ltx,.typ,.bbl,.docx,.odt,.rtf,.pdf,.md,.markdown,.qmd,.rmd,.txt,.html,.htm";
const FILES = `${DRAFTS},.bib,.ris,.json,.jsonl,.xml,.zip`;

// The question comes when the title is left: above the buttons it would move them away from the
// pointer that left it.
export function form() {
  const { cited, hidden } = marks(),
    isFolded = now.folded && !isEmpty();
  /** @type {(event: any) => void} */
  const submit = event => {
    event.preventDefault();
    if (now.running) now.running.abort();
    else find();
  };
  return html`<form id="draft" class="draft" aria-label="What needs references"
    autocomplete="off" @submit=${submit}>
    <div class="folded" ?hidden=${!isFolded}>
      <p class="name" dir="auto">${subject()}</p>
    </div>
    <div id="fields" class="fields" ?hidden=${isFolded}>
      <fieldset class="modes">
        <legend class="hush">Find papers for</legend>
        ${mode("draft", "A draft")} ${mode("sentence", "A sentence")}
        ${mode("each", "Each sentence")}
      </fieldset>
      ${sentence()} ${draft()}
      <div id="read" class="read" role="status">${now.read ? read(now.read) : former()}</div>
      ${settings()}
    </div>
    <div class="go">
      <button type="submit" id="find" class="main" title="Ctrl Enter"
        ?hidden=${isFolded && !now.running}
        >${now.running ? "Stop" : "Find papers"}</button>
      <button type="button" id="edit" aria-expanded="false" aria-controls="fields"
        ?hidden=${!isFolded} @click=${() => focusDraft()}>Edit</button>
      <button type="button" id="open-drafts" class="quiet" aria-haspopup="dialog"
        @click=${() => update({ drafting: true })}>Drafts</button>
      <button type="button" id="new" class="quiet" aria-label="New draft"
        @click=${newDraft}>New</button>
    </div>
    <div id="question" class="read" role="status"
      >${now.question?.draft === state.id ? question(now.question) : nothing}</div>
    ${shelf()} ${adding()}
    <section id="known" class="tray" aria-label="Papers that you cite already"
      ?hidden=${!cited.length}>
      <h2>You cite already <span class="count">${cited.length}</span></h2>
      <p class="hint">They guide the search, and are not listed again.</p>
      ${tray(cited, "Not cited after all")}
    </section>
    <section id="hidden" class="tray" aria-label="Hidden papers" ?hidden=${!hidden.length}>
      <h2>Hidden <span class="count">${hidden.length}</span></h2>
      ${tray(hidden, "Show it again", reason)}
    </section>
    ${elsewhere()} ${collecting()}
  </form>`;
}

// What the draft has in other corpora: a corpus that is chosen hides it.
function elsewhere() {
  const others = Object.entries(state.marks).flatMap(([name, of]) => {
    const marked = counted([of]).join(", ");
    return marked && name !== state.index ? [{ name, marked }] : [];
  });
  if (!others.length) return nothing;
  return html`<p id="elsewhere" class="tray hint">Also kept for this draft:
    ${others.map(({ name, marked }) =>
      now.indexes.some(one => one.name === name)
        ? html`<button type="button" class="chip" @click=${() => changeIndex(name)}
            >${marked} in ${name}</button> `
        : html`${marked} in ${name}, which this server does not have. `,
    )}</p>`;
}

/** @type {(name: Draft["mode"], text: string) => View} */
const mode = (name, text) =>
  html`<label
    ><input type="radio" name="mode" value=${name} .checked=${state.mode === name}
      @change=${() => edit({ mode: name })} /><span>${text}</span></label
  >`;

// The listener of a field that holds a text of the draft.
/** @type {(name: "title" | "abstract" | "context") => (event: any) => void} */
const typed = name => onValue(text => write(name, text));

const sentence = () =>
  html`<div class="field" data-mode="sentence" ?hidden=${state.mode !== "sentence"}>
    <label for="context">Sentence that needs a reference</label>
    <textarea id="context" rows="3" maxlength="2000" aria-describedby="context-hint"
      placeholder="Late interaction keeps a vector for each token [CITE]."
      .value=${live(state.context)} @input=${typed("context")}></textarea>
    <p id="context-hint" class="hint"
      ><code>[CITE]</code> marks the place; other citation markers are ignored.</p>
    <label class="check"
      ><input type="checkbox" id="with-draft" .checked=${state.withDraft}
        @change=${onTick(withDraft => edit({ withDraft }))} />
      Together with the draft</label>
  </div>`;

function draft() {
  const isHidden = state.mode === "sentence" && !state.withDraft;
  /** @type {(event: any) => void} */
  const toAbstract = event => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    $("#abstract").focus();
  };
  /** @type {(event: any) => Promise<void>} */
  const chosen = async ({ target }) => {
    await take([...target.files]);
    target.value = "";
  };
  return html`<div class="drop" id="drop" data-mode="draft" ?hidden=${isHidden}>
    <div class="field">
      <label for="title">Title</label>
      <textarea id="title" rows="1" maxlength="4000" placeholder="Or paste title and abstract here"
        .value=${live(state.title)} @input=${typed("title")} @change=${settle} @focus=${remember}
        @paste=${pasteAll} @keydown=${toAbstract}></textarea>
    </div>
    <div class="field">
      <label for="abstract">Abstract <span class="hint">or any text</span></label>
      <textarea id="abstract" rows="7" maxlength="2000000" .value=${live(state.abstract)}
        @input=${typed("abstract")} @focus=${remember} @paste=${pasteAll}></textarea>
    </div>
    ${state.mode === "each" ? whole() : nothing}
    <div class="file">
      <input type="file" id="file" multiple accept=${FILES} class="hush" @change=${chosen} />
      <label for="file"
        >${icon("file")} <span>Choose a file <span class="wide">or drop it here</span></span></label
      >
      <span class="hint">.tex, .docx, .pdf, .md with its .bib; a .zip or folder</span>
    </div>
  </div>`;
}

// What is searched where each sentence is.
function whole() {
  const n = fullText()?.reduce((sum, one) => sum + one.sentences.length, 0);
  const text = n
    ? `The file has ${count(n, "sentence")}; those that cite no paper are searched for.`
    : "Choose the file of the whole text, or paste it here; sentences that cite are left out.";
  return html`<p class="hint">${text}</p>`;
}

const openCheck = () => update({ checking: true });

function checkName() {
  /** @type {(name: "entries" | "found" | "with_problem") => number} */
  const total = name => now.checks.reduce((sum, one) => sum + one[name], 0);
  const [n, all, found] = [total("with_problem"), total("entries"), total("found")];
  const wrong = `${count(n, "entry", "entries")} ${n === 1 ? "has" : "have"} a problem`;
  const compared = `${found} of ${count(all, "entry", "entries")} could be compared with this corpus`;
  const facts = [n ? wrong : "", found < all ? compared : ""].filter(Boolean);
  return `Check my list: ${facts.join("; ") || "no problem was found"}`;
}

/** @type {(question: NonNullable<Now["question"]>) => View} */
const question = ({ title, undo }) => {
  const join = () => {
    undo();
    rankAgain();
  };
  return html`<p>A new draft, with no marks yet; “<span dir="auto">${clean(title)}</span>” keeps its own,
    under Drafts. ${link("Undo: the same draft", join)}</p>`;
};

// What was read before the page was loaded, or before another draft was opened.
const former = () =>
  state.file.name
    ? html`<p>Read from <b dir="auto">${clean(state.file.name)}</b>. ${link("Choose it again", chooseFile)} to
        check its references${lostText() ? ", and to search its whole text" : nothing}.</p>`
    : nothing;

/** @type {(read: NonNullable<Now["read"]>) => View} */
function read(read) {
  if ("fault" in read) return fault(read.fault);
  if ("busy" in read) return html`<p class="hint busy">${read.busy}</p>`;
  const { isDraft, marked, references, notices, unread, undo } = read;
  const found = isDraft
    ? html`<p><b>Read. </b>Correct title and abstract if you like, then find papers.</p>`
    : html`<p><b>A list of references.</b></p>`;
  const fresh = html`<p>${count(marked, "paper")} marked as cited.
    ${link("Undo", undo)}</p>`;
  const each = () => {
    edit({ mode: "each" });
    find();
  };
  const offer = isDraft && fullText() && state.mode !== "each";
  return [
    found,
    offer
      ? html`<p>${link("Where in the text are references missing?", each, "each")}</p>`
      : nothing,
    references.map(line => html`<p dir="auto">${clean(line)}</p>`),
    marked ? fresh : nothing,
    now.checks.some(one => one.entries)
      ? html`<p>${link(checkName(), openCheck, "open-check")}</p>`
      : nothing,
    unread.map(fault),
    html`<details>
      <summary>What was read</summary>
      <ul>${notices.map(notice => html`<li dir="auto">${clean(notice)}</li>`)}</ul>
    </details>`,
  ];
}

const settings = () =>
  html`<details class="settings">
    <summary>Settings</summary>
    <div class="grid">
      ${number("k", "k", "Papers in the list", 100, "")}
      ${number("year", "year", "Year of the draft", 2200, "any")}
      ${number("year-min", "yearMin", "Papers from the year", 2200, "any")}
      ${number("year-max", "yearMax", "Papers up to the year", 2200, "any")}
    </div>
    <p>${link("Review table…", openReview)}</p>
    <button type="button" id="forget" class="link" @click=${forgetAll}
      >Forget all drafts and shelves…</button>
  </details>`;

// A number; it counts before its field is left, because a file may be dropped now. While it is
// typed, nothing but its author changes the field.
/** @type {(id: string, name: "k" | "year" | "yearMin" | "yearMax", text: string, most: number,
 *   none: string) => View} */
function number(id, name, text, most, none) {
  /** @type {(event: any) => void} */
  const read = ({ target }) => {
    const isFit = target.checkValidity() && target.value;
    edit({ [name]: isFit ? Number(target.value) : name === "k" ? 20 : null });
  };
  /** @type {(event: any) => void} */
  const left = event => {
    read(event);
    const taken = state[name] ?? none;
    if (!event.target.checkValidity())
      toast(`${text}: expected a whole number from 1 to ${most}; ${taken} is taken.`);
    event.target.value = state[name] ?? "";
    rankAgain();
  };
  return html`<label for=${id}>${text}</label
    ><input type="number" id=${id} min="1" max=${most} placeholder=${none} inputmode="numeric"
      .value=${now.typing === id ? noChange : String(state[name] ?? "")}
      @focus=${() => update({ typing: id })} @blur=${() => update({ typing: null })}
      @input=${read} @change=${left} />`;
}

/** @type {(papers: Named[], back: string, more?: (paper: Named) => View) => View} */
const tray = (papers, back, more) =>
  html`<ul>${papers.map(
    paper =>
      html`<li>${named(paper)}<button type="button" class="quiet" title=${back}
        aria-label="${back}: ${clean(paper.title)}" @click=${() => setMark(paper, null)}
        >${icon("close")}</button>${more?.(paper)}</li>`,
  )}</ul>`;
