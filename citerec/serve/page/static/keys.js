// Single-key shortcuts; the help lists them.

import { focusedRow } from "./browser.js";
import { find, focusDraft, give, go, select, setMark, undo } from "./search.js";
import { looks, now, update } from "./store.js";
import { openPaper } from "./travel.js";
import { goClaim } from "./where.js";

/** @type {(run: (row: Row) => void) => () => void} */
const on = run => () => {
  const row = now.list.rows.find(one => one.id === focusedRow());
  if (row) run(row);
};

/** @type {Record<string, () => void>} */
const KEYS = {
  j: () => (now.where ? goClaim : go)(1),
  k: () => (now.where ? goClaim : go)(-1),
  o: on(row => openPaper(row.id)),
  t: on(row => setMark(row, "taken")),
  i: on(row => setMark(row, "cited")),
  h: on(row => setMark(row, "hidden")),
  x: on(row => select([row.id])),
  u: undo,
  c: () => give("bibtex", "copy"),
  n: () => now.again && find(),
  d: () => update({ drafting: true }),
  "/": () => focusDraft().select(),
  "?": () => update({ help: true }),
};

/** @type {(event: KeyboardEvent) => void} */
export function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.isComposing || event.altKey) return;
  const isControl = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && isControl) {
    event.preventDefault();
    find();
    return;
  }
  if (isControl || !looks.shortcuts || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && target.matches("textarea, input")) target.blur();
  if (target.matches("textarea, select, input:not([type=checkbox]):not([type=radio])")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}
