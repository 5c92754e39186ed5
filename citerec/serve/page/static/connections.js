// How the list and the draft's own references are connected: read after a list is shown and after
// a mark. A failure is silent: the figure then shows the papers alone.

import { json, once } from "./server.js";
import { marks, now, rows, state, update } from "./store.js";
import { dressed } from "./text.js";

const MOST_IDS = 1000; // of a request
const MOST_OWN = 60; // references in the figure: those with the most citations among all
const MOST_WORKS = 6; // prior works, and derivative works

/** @type {Connections} */
const NOTHING = { links: [], prior: [], derivative: [], own: [] };

let reading = new AbortController();

export async function connect() {
  reading.abort();
  reading = new AbortController();
  const { signal } = reading,
    { list } = now,
    { index } = state;
  const listed = rows().map(row => row.id),
    own = [...marks().cited, ...marks().taken].map(one => one.id);
  if (!listed.length) return;
  const wanted = { index, ids: [...listed, ...own].slice(0, MOST_IDS), k: MOST_WORKS };
  try {
    const found = await once("v1/connections", json(wanted, signal));
    const ends = Map.groupBy(found.links.flat(), id => id);
    /** @type {(id: string) => number} */
    const degree = id => ends.get(id)?.length ?? 0;
    const most = own.toSorted((a, b) => degree(b) - degree(a)).slice(0, MOST_OWN);
    const ids = new URLSearchParams([["index", index], ...most.map(id => ["ids", id])]);
    const read = most.length ? (await once(`page/papers?${ids}`, { signal })).rows : [];
    if (list === now.list) update({ connections: { ...found, own: read.map(dressed) } });
  } catch {
    if (list === now.list && !signal.aborted) update({ connections: NOTHING });
  }
}
