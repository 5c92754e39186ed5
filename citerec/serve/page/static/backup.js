// All drafts in a file, and back: for another browser, and for what this one does not keep.

import { save } from "./browser.js";
import { EMPTY, broken, draftIn, faults, keyOf, read, united } from "./kept.js";
import { drafts, setAside, update } from "./store.js";
import { count } from "./text.js";
import { toast } from "./toast.js";

// With what was removed to make room, and with what could not be read, as it was found.
export function saveDrafts() {
  const all = { citerec: "drafts", drafts: [...drafts(), ...faults.dropped], broken: broken() };
  save(JSON.stringify(all, null, 1), "citerec-drafts.json", "application/json");
}

// A file that this page saved: a shelf, or all drafts; null if the file is something else.
/** @type {(file: File) => Promise<any>} */
export async function ownFile(file) {
  if (!/\.json$/i.test(file.name)) return null;
  try {
    const found = JSON.parse(await file.text());
    return ["shelf", "drafts"].includes(found?.citerec) ? found : null;
  } catch {
    return null;
  }
}

// Puts the drafts of a file with those that are here. Of a draft that is here, too, the text that
// was changed last stays, and all marks and notes of both.
/** @type {(file: any) => void} */
export function openDrafts({ drafts: listed }) {
  const given = Array.isArray(listed) ? listed : [];
  const found = given.flatMap(one => draftIn(one) ?? []);
  let added = 0;
  for (const draft of found) {
    const here = read(keyOf(draft.id), EMPTY);
    if (!here) added++;
    setAside(united(here ?? draft, draft));
  }
  const unread = given.length - found.length;
  const fault = `${count(unread, "draft")} of the file could not be read, and is left out.`;
  update({ read: unread ? { fault } : null, again: false, drafting: added > 0 });
  toast(`${count(added, "draft")} added; ${found.length - added} were here already`);
}
