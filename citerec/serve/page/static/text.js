// Texts of a corpus as parts and words; views put them into text nodes, never into HTML.

const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]/g; // controls of direction

/** @type {(text: unknown) => string} */
export const clean = text => String(text ?? "").replace(DIRECTION, "");

// An author as one says the name: "Wang, Yafei" is Yafei Wang. A last comma marks a whole name.
/** @type {(name: string) => string} */
export function author(name) {
  const parts = clean(name).replace(/,\s*$/, "").split(/,\s*/);
  return parts.length === 2 ? parts.reverse().join(" ") : parts.join(", ");
}

/** @type {(n: number, one: string, many?: string) => string} */
export const count = (n, one, many = `${one}s`) =>
  `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** @type {(value: number) => string} */
export const percent = value =>
  value >= 0.995 ? ">99%" : value < 0.01 ? "<1%" : `${Math.round(value * 100)}%`;

// A line of the server as a sentence.
/** @type {(text: string) => string} */
export const sentence = text =>
  clean(text)
    .replace(/^\p{Ll}/u, first => first.toUpperCase())
    .replace(/[^.?!…]$/, "$&.");

/** @type {(title: string, most: number) => string} */
export const shortened = (title, most) =>
  title.length > most ? `${title.slice(0, most - 1).trimEnd()}…` : title;

// The first author's surname; words of the title where no author is known.
/** @type {(row: Row) => string} */
const surname = row => {
  const first = clean(row.authors[0]);
  const name = first.includes(",") ? first.split(",")[0] : first.split(" ").at(-1);
  return shortened(name || row.title.split(" ").slice(0, 2).join(" "), 18);
};

// Names that tell papers apart: surnames, with the year where two have the same, and a letter where
// two of a year have.
/** @type {(rows: Row[]) => Map<string, string>} */
export function labelled(rows) {
  const named = Map.groupBy(rows, surname);
  return new Map(
    [...named].flatMap(([name, same]) =>
      [...Map.groupBy(same, row => row.year)].flatMap(([year, ofYear]) =>
        ofYear.map((row, i) => {
          const letter = ofYear.length > 1 ? String.fromCharCode(97 + (i % 26)) : "";
          return [row.id, same.length > 1 ? `${name} ${year ?? "n.d."}${letter}` : name];
        }),
      ),
    ),
  );
}

// The words of a text in any language, such as those that put no spaces between them.
const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
/** @type {(text: string) => Set<string>} */
function words(text) {
  const parts = segmenter.segment(text.normalize("NFKC").toLowerCase());
  return new Set([...parts].filter(one => one.isWordLike).map(one => one.segment));
}

// Whether at least half of the words of the first text are in the second.
/** @type {(one: string, other: string) => boolean} */
export function isOf(one, other) {
  if (one === other) return true;
  const of = words(one),
    now = words(other);
  return [...of].filter(word => now.has(word)).length * 2 >= of.size;
}

// Whether a draft is the same after a change: half of its title or half of its abstract stays.
/** @type {(was: Draft["was"], draft: Draft["was"]) => boolean} */
export const isSame = (was, draft) =>
  [
    [was.title, draft.title],
    [was.abstract, draft.abstract],
  ].some(([one = "", other = ""]) => one.trim() && other.trim() && isOf(one, other));

// A paper as the API returns it, as a row: in its abstract the words that a reason names are marked,
// by their stems. Of a text in parts, those at odd places are marked.
const ENDING =
  /(?:ization|ations|ation|ingly|ments|ment|ness|ings|ing|ies|ied|ers|er|ed|es|ly|s|y|e)$/;
const MATCHES = "matches: ", // as the server states it, and as the page does
  WORDS = "words in common: ";
const SNIPPET = 240; // characters, about two lines
/** @type {(word: string) => string} */
const stem = word => word.toLowerCase().replace(ENDING, (ending, at) => (at >= 3 ? "" : ending));
/** @type {(text: string) => string[]} */
const split = text => clean(text).split(/([\p{L}\p{N}]+)/u); // words are at odd places
/** @type {(text: string) => string[]} */
const wordsOf = text => split(text).filter((_, i) => i % 2);

/** @type {(row: Listed) => Row} */
export function dressed(row) {
  const first = row.reasons.find(one => one.startsWith(MATCHES)) ?? "";
  const stems = new Set(wordsOf(first.slice(MATCHES.length)).map(stem));
  /** @type {(text: string) => string[]} */
  const marks = text => {
    const parts = [""];
    split(text).forEach((part, i) => {
      if (i % 2 && stems.has(stem(part))) parts.push(part, "");
      else parts[parts.length - 1] += part;
    });
    return parts;
  };
  const text = clean(row.passage || row.abstract); // the sentence that the server found nearest
  const start = text.slice(0, SNIPPET).replace(/\s\S*$/, "");
  return {
    ...row,
    title: clean(row.title).trim() || "Untitled",
    abstract: marks(row.abstract),
    snippet: marks(text.length > SNIPPET ? `${start}…` : text),
    reasons: row.reasons.map(one => clean(one.replace(MATCHES, WORDS))),
  };
}
