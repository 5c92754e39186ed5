// Papers as BibTeX, RIS or CSL-JSON, copied or saved.

import { clean, copy, count, save, toast } from "./dom.js";
import { exported } from "./server.js";
import { state } from "./store.js";

const FILES = {
  bibtex: ["references.bib", "application/x-bibtex"],
  ris: ["references.ris", "application/x-research-info-systems"],
  csl: ["references.json", "application/json"],
};

export async function give(format, ids, how) {
  if (!ids.length) {
    toast("Select papers first: x, or the boxes");
    return;
  }
  try {
    const text = await exported(state.index, ids, format);
    if (how === "copy") await copy(text);
    else save(text, ...FILES[format]);
    toast(
      how === "copy"
        ? `${count(ids.length, "reference")} copied as BibTeX`
        : `${count(ids.length, "reference")} saved`,
    );
  } catch (error) {
    toast(clean(error.message));
  }
}
