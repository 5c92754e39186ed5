// What the page does in the browser besides drawing: focus, clipboard, files, motion.

/** @type {(selector: string) => any} */
export const $ = selector => document.querySelector(selector);

export const motion = () =>
  matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";

// The id of the row that has the focus, or in which it is.
export const focusedRow = () =>
  /** @type {HTMLElement | null | undefined} */ (document.activeElement?.closest(".row"))?.dataset
    .id;

/** @type {(id: string | undefined) => void} */
export function focusRow(id) {
  const row = id && $(`.row[data-id="${CSS.escape(id)}"]`);
  row?.focus();
  row?.scrollIntoView({ block: "nearest", behavior: motion() });
}

// Draws other results in the place of those that are read; the keyboard goes on from their start.
/** @type {(draw: () => void) => void} */
export function fromTop(draw) {
  const isWithin = document.activeElement?.closest("#list, #where");
  draw();
  const results = $("#results");
  if (!isWithin) return;
  results.focus({ preventScroll: true });
  if (results.getBoundingClientRect().top < 0) results.scrollIntoView({ behavior: motion() });
}

// Focus that would fall to the body, because its element went or was hidden, goes to the sheet
// or the list.
export function keepFocus() {
  /** @type {HTMLElement | null} */
  let held = null;
  /** @type {(one: HTMLElement) => boolean} */
  const isThere = one => one.isConnected && one.checkVisibility({ visibilityProperty: true });
  const rescue = () => {
    if (!held || isThere(held)) return;
    held = null;
    ($("dialog[open] h2[tabindex]") ?? $("dialog[open] button") ?? $("#results")).focus({
      preventScroll: true,
    });
  };
  document.addEventListener("focusin", event => {
    held = /** @type {HTMLElement} */ (event.target);
  });
  document.addEventListener("focusout", event => {
    const left = event.target; // by a click on the page, or because it is about to go
    setTimeout(() => {
      if (held && held === left && document.activeElement !== left && isThere(held)) held = null;
    });
  });
  // later: a dialog that closes gives the focus back itself
  new MutationObserver(() => setTimeout(rescue)).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["hidden", "class", "open"],
  });
}

/** @type {(text: string) => Promise<void>} */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // not a secure page: the old way
    const area = Object.assign(document.createElement("textarea"), { className: "hush" });
    area.value = text;
    ($("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done)
      throw new Error("The browser does not allow copying here; download the file instead.");
  }
}

// Copies a text with its HTML, which Word takes.
/** @type {(html: Promise<string>, text: Promise<string>) => Promise<void>} */
export async function copyFormatted(html, text) {
  /** @type {(type: string) => (part: string) => Blob} */
  const as = type => part => new Blob([part], { type });
  try {
    const parts = {
      "text/html": html.then(as("text/html")),
      "text/plain": text.then(as("text/plain")),
    };
    await navigator.clipboard.write([new ClipboardItem(parts)]);
  } catch {
    // not a secure page, or no text was given
    await html;
    await copy(await text);
  }
}

/** @type {(text: string, name: string, type: string) => void} */
export function save(text, name, type) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
