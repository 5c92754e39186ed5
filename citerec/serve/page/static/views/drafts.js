// The drafts of this browser: open one, remove one, begin one.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { repeat } from "../vendor/lit-html-3.3.3/directives/repeat.js";
import { saveDrafts } from "../backup.js";
import { dayOf } from "../news.js";
import { counted, drafts as kept, now, state, titleOf, update } from "../store.js";
import { count } from "../text.js";
import { newDraft, openDraft, removeDraft } from "../travel.js";
import { besides, chooseFile, icon } from "./parts.js";
import { toast } from "./toast.js";

const close = () => update({ drafting: false });

export const drafts = () =>
  html`<dialog id="drafts" class="box" aria-labelledby="drafts-title" @click=${besides}
    @close=${close}>${now.drafting ? content() : nothing}${toast("drafts")}</dialog>`;

function content() {
  const found = kept();
  const begin = () => {
    close();
    newDraft();
  };
  const openFile = () => {
    close();
    chooseFile();
  };
  return html`<button type="button" class="quiet close" aria-label="Close" @click=${close}
      >${icon("close")}</button>
    <h2 id="drafts-title" tabindex="-1">Drafts</h2>
    <ul class="drafts">${repeat(found, one => one.id, item)}</ul>
    ${found.length ? nothing : html`<p>None yet: a draft is kept from its first word on.</p>`}
    <button type="button" class="main" @click=${begin}>New draft</button>
    <button type="button" id="save-drafts" ?disabled=${!found.length} @click=${saveDrafts}
      >Save all in a file</button>
    <button type="button" id="open-file" @click=${openFile}>Open a file…</button>
    <p class="hint">${
      now.desk?.folder
        ? html`They are files in <code>${now.desk.folder}</code>, too.`
        : html`They are kept in this browser only: those with marks, and the latest 30 without.`
    }</p>`;
}

/** @type {(draft: Draft) => View} */
function item(draft) {
  const { id, changed, marks, index, lists } = draft;
  const name = titleOf(draft);
  const isOpen = id === state.id;
  const facts = [
    dayOf(changed),
    ...counted(Object.values(marks)),
    lists.length && count(lists.length, "list"),
    now.indexes.length > 1 && index,
  ];
  const open = () => {
    close();
    if (!isOpen) openDraft(id);
  };
  return html`<li>
    <button type="button" class="title" dir="auto" @click=${open}
      aria-current=${isOpen ? "true" : nothing}>${name}</button>
    <button type="button" class="quiet" title="Remove this draft"
      aria-label="Remove this draft: ${name}" @click=${() => removeDraft(draft)}
      >${icon("close")}</button>
    <p class="hint">${facts.filter(Boolean).join(" · ")}${
      isOpen ? html` · <b>open</b>` : nothing
    }</p>
  </li>`;
}
