// A corpus that the server collects: the references, what it takes and sends, and how far it is.

import { html, nothing } from "../vendor/lit-html-3.3.3/lit-html.js";
import { canCollect, cancel, change, plan } from "../collect.js";
import { takeCollected } from "../files.js";
import { now } from "../store.js";
import { clean, count } from "../text.js";
import { changeIndex } from "../travel.js";
import { besides, icon, link, onValue } from "./parts.js";

const close = () => change({ isOpen: false });
export const openCollect = () => change({ isOpen: true });

export const collecting = () =>
  canCollect
    ? html`<p class="tray hint">Is your subject missing? ${link("Collect a corpus…", openCollect, "open-collect")}</p>`
    : nothing;

export const collect = () =>
  html`<dialog id="collect" class="box" aria-labelledby="collect-title" @click=${besides}
    @close=${close}>
    <button type="button" class="quiet close" aria-label="Close" @click=${close}
      >${icon("close")}</button>
    <h2 id="collect-title" tabindex="-1">Collect a corpus</h2>
    ${now.collect.isOpen ? [references(), planned(), progress()] : nothing}
  </dialog>`;

function references() {
  /** @type {(event: any) => void} */
  const chosen = ({ target }) => {
    change({ files: [...target.files], name: "", plan: null });
    if (target.files.length) plan(false);
    target.value = "";
  };
  /** @type {(event: any) => void} */
  const switched = ({ target }) => {
    change({ semantic: target.checked, plan: null });
    if (now.collect.files.length) plan(false);
  };
  return html`<p>The papers that your references cite, and those that cite them, become a corpus
      of this server.</p>
    <div class="file">
      <input type="file" id="collect-files" multiple class="hush" @change=${chosen} />
      <label for="collect-files">${icon("file")} <span>Choose a list or a draft</span></label>
      <span class="hint">.bib, .ris, DOIs in a text; .docx, .pdf, .tex with its .bib</span>
    </div>
    <label><input type="checkbox" id="collect-semantic" .checked=${now.collect.semantic}
      @change=${switched} /> My draft cites nothing yet: search OpenAlex by its title and abstract</label>
    <p class="fault" role="alert">${now.collect.fault}</p>`;
}

function planned() {
  const { plan: found, name, status, isBusy } = now.collect;
  if (isBusy) return html`<p class="hint busy">Reading…</p>`;
  if (!found || status?.code === null) return nothing;
  const { references, service, estimate, semantic, is_update: isUpdate } = found;
  const renamed = onValue(value => change({ name: value }));
  const around = semantic ? "Papers near your title and abstract" : references;
  const sent = semantic
    ? html`<p>Title and abstract of your draft, up to 2,000 characters, <b>are sent</b> to ${service}:
        no other text, no name of a file.</p>`
    : html`<p>Only ids and titles of the references are sent to ${service}: no draft, no abstract, no
        name of a file.</p>`;
  return html`<p>${around}. ${service}: ${estimate}.</p>
    ${sent}
    <div class="field">
      <label for="collect-name">Name of the corpus</label>
      <input id="collect-name" maxlength="60" .value=${name} @input=${renamed} />
    </div>
    ${isUpdate ? html`<p class="hint">It is there: what is new around it is added.</p>` : nothing}
    <button type="button" id="collect-start" class="main"
      @click=${() => plan(true)}>Collect</button>`;
}

function progress() {
  const { status } = now.collect,
    made = now.indexes.find(index => index.name === status?.name);
  const use = () => {
    close();
    changeIndex(made?.name ?? "");
    takeCollected(now.collect.files);
  };
  const ready = made
    ? html`<p><b>${made.name}</b> is ready: ${count(made.papers, "paper")}.
        <button type="button" id="collect-use" @click=${use}>Search it</button></p>`
    : nothing;
  return html`<div id="collect-status" role="status">
    ${
      status?.code === null
        ? html`<p><b dir="auto">${status.name}</b>: ${clean(status.text)}</p>
          <progress aria-label="Collecting"></progress>
          <button type="button" id="collect-cancel" @click=${cancel}>Cancel</button>`
        : status?.code === 0
          ? ready
          : html`<p class="fault">${clean(status?.text ?? "")}</p>`
    }
  </div>`;
}
