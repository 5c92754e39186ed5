// The desk: a folder of the server's user with a file for each draft (`citerec serve --desk`). This
// browser keeps its drafts as ever; the desk has each a moment later, and what other browsers
// changed comes from there. For each draft it is known which file is here, and as what.

import { EMPTY, draftIn, hasContent, hold, hooks, keyOf, kept, read, united } from "./kept.js";
import { Problem, once } from "./server.js";
import { isEmpty, now, setAside, state, titleOf, update } from "./store.js";

const RECORD = "citerec:desk";
const AT_ONCE = 6, // requests
  PAUSE = 400, // milliseconds without a change, after which it is sent
  LOOK = 15_000; // after which changes of other browsers are looked for
/** @type {Desk} */
const NONE = { key: "", known: {}, gone: [] };
const KEY = keyOf("");

const record = () => read(RECORD, NONE) ?? structuredClone(NONE);

/** @type {(changes: Partial<Desk>) => void} */
const note = changes => {
  kept.setItem(RECORD, JSON.stringify({ ...record(), ...changes }));
};

/** @type {(id: string, known: Desk["known"][string] | null) => void} */
function noted(id, known) {
  const all = record().known;
  if (known) all[id] = known;
  else delete all[id];
  note({ known: all });
}

// A number for a text: whether it changed.
/** @type {(text: string | null) => string} */
function sumOf(text) {
  let sum = 0;
  for (let i = 0; text && i < text.length; i++) sum = (Math.imul(sum, 31) + text.charCodeAt(i)) | 0;
  return text === null ? "" : `${text.length} ${sum}`;
}

/** @type {(id: string) => string} */
const sumHere = id => sumOf(kept.getItem(keyOf(id)));

/** @type {(path?: string, method?: string, body?: object) => Promise<any>} */
const ask = (path = "", method = "GET", body = undefined) =>
  once(`desk${path}`, {
    method,
    headers: { "Content-Type": "application/json", "Citerec-Desk": record().key },
    body: body && JSON.stringify(body),
  });

const here = () =>
  kept
    .keys()
    .filter(key => key.startsWith(KEY))
    .map(key => key.slice(KEY.length));

// Brings one draft and its file together; `tag` is that of the file, empty if there is none.
/** @type {(id: string, tag: string) => Promise<void>} */
async function meet(id, tag) {
  const { known, gone } = record();
  if (gone.includes(id)) {
    await ask(`/${id}`, "DELETE");
    noted(id, null);
    note({ gone: record().gone.filter(one => one !== id) });
    return;
  }
  const [was, sum] = known[id] ?? ["", ""],
    isSame = sumHere(id) === sum;
  if (isSame && tag === was) return;
  if (isSame && !tag) {
    kept.removeItem(keyOf(id)); // removed in another browser
    noted(id, null);
    if (id === state.id && !isEmpty()) hold(state);
    return;
  }
  if (tag && tag !== was) {
    const theirs = draftIn((await ask(`/${id}`)).draft);
    if (!theirs) throw new Problem(`A file of the desk is no draft: ${id}`);
    const mine = isSame ? null : read(keyOf(id), EMPTY);
    setAside(mine ? united(mine, theirs) : theirs);
    noted(id, [tag, mine ? "" : sumHere(id)]);
    if (!mine) return;
  }
  const draft = read(keyOf(id), EMPTY),
    sent = sumHere(id);
  if (!draft || !hasContent(draft)) return;
  noted(id, [(await ask(`/${id}`, "PUT", { draft, tag })).tag, sent]);
}

async function all() {
  let fault = "",
    folder = now.desk?.folder ?? "";
  try {
    const found = await ask();
    folder = found.folder;
    const ids = [...new Set([...here(), ...Object.keys(found.tags), ...record().gone])];
    /** @type {(error: unknown) => void} */
    const failed = error => {
      if (!(error instanceof Problem)) throw error;
      if (error.status === 409) soon();
      else fault = error.message;
    };
    for (let i = 0; i < ids.length; i += AT_ONCE) {
      const some = ids.slice(i, i + AT_ONCE);
      await Promise.all(some.map(id => meet(id, found.tags[id] ?? "").catch(failed)));
    }
  } catch (error) {
    fault = error instanceof Problem ? error.message : "The server does not answer.";
  }
  update({ desk: { folder, fault } });
}

let turn = Promise.resolve(),
  timer = 0;
const sync = () => (turn = turn.then(all));

function soon() {
  clearTimeout(timer);
  timer = setTimeout(sync, PAUSE);
}

// Drafts that the desk does not have as they are here.
export const behind = () =>
  here().flatMap(id => {
    const draft = hooks.has(id) ? null : read(keyOf(id), EMPTY);
    return draft && hasContent(draft) ? [titleOf(draft)] : [];
  });

// The address that `citerec serve` prints has the key; it is kept, and leaves the address.
export async function start() {
  const given = new URLSearchParams(location.hash.slice(1)).get("desk");
  if (given) history.replaceState(history.state, "", location.pathname);
  if (given && given !== record().key) note({ ...NONE, key: given });
  if (!record().key) {
    // without a desk: the browser is asked not to clear its store by itself
    hooks.changed = () => {
      hooks.changed = () => {};
      navigator.storage?.persist?.();
    };
    return false;
  }
  hooks.changed = soon;
  hooks.removed = id => {
    note({ gone: [...new Set([...record().gone, id])] });
    soon();
  };
  hooks.has = id => record().known[id]?.[1] === sumHere(id);
  addEventListener("focus", sync);
  setInterval(() => document.visibilityState === "visible" && sync(), LOOK);
  await sync();
  return given !== null;
}
