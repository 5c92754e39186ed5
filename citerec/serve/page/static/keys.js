// Single-key shortcuts; the help lists them.

import { focusedRow } from "./browser.js";
import { filtered } from "./facets.js";
import { find, focusDraft, give, go, select, setMark, undo } from "./search.js";
import { looks, markOf, now, update } from "./store.js";
import { openPaper } from "./travel.js";
import { goClaim } from "./where.js";

// What is done to the paper of the sheet, or to the row that has the focus.
/** @type {(run: (row: Row) => void) => () => void} */
const on = run => () => {
  const row = now.paper ? now.paper.row : now.list.rows.find(one => one.id === focusedRow());
  if (row) run(row);
};

/** @type {(kind: Mark) => () => void} */
const mark = kind => on(row => setMark(row, markOf(row.id) === kind ? null : kind));

/** @type {(steps: number) => () => void} */
const move = steps => () => {
  if (!now.paper) return (now.where ? goClaim : go)(steps);
  const { visible } = filtered(),
    at = visible.findIndex(row => row.id === now.paper?.id);
  const next = at >= 0 && visible[at + steps];
  if (next) openPaper(next.id);
};

/** @type {Record<string, () => void>} */
const KEYS = {
  j: move(1),
  k: move(-1),
  o: on(row => openPaper(row.id)),
  t: mark("taken"),
  i: mark("cited"),
  h: mark("hidden"),
  x: on(row => select([row.id])),
  u: undo,
  c: () => give("bibtex", "copy"),
  n: () => now.again && find(),
  d: () => update({ drafting: true }),
  "/": () => focusDraft().select(),
  "?": () => update({ help: true }),
};

const IN_SHEET = "jktihu";

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
  const isInSheet = now.paper && IN_SHEET.includes(event.key);
  if (isControl || !looks.shortcuts || (document.querySelector("dialog[open]") && !isInSheet))
    return;
  if (event.key === "Escape" && target.matches("textarea, input")) target.blur();
  if (target.matches("textarea, select, input:not([type=checkbox]):not([type=radio])")) return;
  if (!Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
}
