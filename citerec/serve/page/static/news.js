// What is new in a list: papers that the draft's lists of former days, or of another version of the
// corpus, did not have. Each draft keeps the ids of its lists.

import { state } from "./store.js";

const MOST_LISTS = 20;
/** @type {News} */
export const NO_NEWS = { fresh: new Set(), since: null };

/** @type {(at: number) => string} */
const dateOf = at => new Date(at).toDateString();

// Adds the ids of a list to those of its day; a list for sentences is not one of the draft.
/** @type {(version: string, rows: Row[]) => News} */
export function recorded(version, rows) {
  const ids = rows.map(row => row.id),
    { index } = state,
    at = Date.now();
  if (state.mode !== "draft") return NO_NEWS;
  /** @type {(one: Seen) => boolean} */
  const isOfNow = one => one.version === version && dateOf(one.at) === dateOf(at);
  const here = state.lists.filter(one => one.index === index);
  const former = here.filter(one => !isOfNow(one)),
    had = new Set(former.flatMap(one => one.ids));
  const today = new Set([...here.filter(isOfNow).flatMap(one => one.ids), ...ids]);
  const others = state.lists.filter(one => one.index !== index || !isOfNow(one));
  state.lists = [...others, { index, version, at, ids: [...today] }].slice(-MOST_LISTS);
  const since = former.at(-1)?.at ?? null;
  return { fresh: new Set(since === null ? [] : ids.filter(id => !had.has(id))), since };
}

// The day of a moment, as one says it: today, yesterday, Monday, 3 March.
/** @type {(at: number) => string} */
export function dayOf(at) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(at).setHours(0, 0, 0, 0)) / 86_400_000);
  if (days < 2) return days === 1 ? "yesterday" : "today";
  const isOfYear = new Date(at).getFullYear() === new Date().getFullYear();
  /** @type {Intl.DateTimeFormatOptions} */
  const date = { day: "numeric", month: "long", year: isOfYear ? undefined : "numeric" };
  return new Date(at).toLocaleDateString("en-GB", days < 7 ? { weekday: "long" } : date);
}
