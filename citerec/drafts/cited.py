r"""The references that a draft cites by key: its bibliographies, or references that LaTeX has formatted (`.bbl`).

Files are read from the folder of the draft alone, bibliographies also from the rest of its project if there is one.
"""

import re
from collections import ChainMap
from collections.abc import Iterable, Sequence, Set
from itertools import chain, pairwise
from pathlib import Path

from citerec.bibliography import bibtex
from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import arxiv_dois, dois_of, title_key, to_text
from citerec.corpus.contents import split_references
from citerec.corpus.headings import Part, part_at
from citerec.corpus.lists import read_paper_list
from citerec.display import plural, shortened
from citerec.errors import BadInputError
from citerec.files.reading import decoded

EVERY_KEY = "*"  # as in \nocite{*}
_SHOWN = 5  # missing keys that a notice names


def inside(
    folder: Path,
    name: str,
    suffixes: Iterable[str] = ("",),
    project: Path | None = None,
) -> Path | None:
    """Return the first existing file `name` + suffix of a folder; None if there is none.

    PermissionError if the name leads outside the folder, or the project that it is in, if there is one: by `..`, as an
    absolute path, or by a link.
    """
    root = (project or folder).resolve()
    for suffix in suffixes:
        try:
            target = (folder.resolve() / f"{name}{suffix}").resolve()
            is_file = target.is_file()
        except (
            OSError,
            ValueError,
            RuntimeError,
        ):  # a NUL in the name; a loop of links
            continue
        if not target.is_relative_to(root):
            raise PermissionError(name)
        if is_file:
            return target
    return None


def cited_references(
    keys: Sequence[str],
    unsure: Set[str],
    files: Sequence[str],
    source: str,
    path: Path | None,
    notices: list[str],
    project: Path | None = None,
) -> PaperList:
    """Look up the references that a draft cites, in this order; formatted ones stand in for what bibliographies lack.

    The key `*` stands for all; a key that is `unsure` cites only if it has an entry. `files` are the bibliographies
    that the draft names, `source` is that of a LaTeX draft, `path` its file or None, and `project` a folder above it
    with more bibliographies. `notices` receives a line for each bibliography that is not used, and for keys without an
    entry.

    BadInputError if the `.bbl` of the draft is a link to outside its folder.
    """
    if not keys:
        return PaperList(())
    by_source = entries_by_source(files, source, path, notices, project)
    # as Manubot has them: [@doi:10.1371/journal.pone.0025764]
    by_id = {key: entry for key in keys if (entry := printed(key)).ids}
    # the first of a repeated key counts
    entries = dict(ChainMap(*(entries for _, entries in by_source), by_id))
    wanted = [*keys, *entries] if EVERY_KEY in keys else keys
    unsure = {EVERY_KEY, *unsure} - entries.keys()
    wanted = [key for key in dict.fromkeys(wanted) if key not in unsure]
    if missing := [key for key in wanted if key not in entries]:
        some = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
        sources = ", ".join(file for file, of_file in by_source if of_file)
        found = f" not in {sources or 'a bibliography'}: {some}"
        found = found if entries else ", but no bibliography was found"
        notices.append(f"{plural(len(missing), 'citation key')}{found}")
    return PaperList(tuple(entries[key] for key in wanted if key in entries))


def entries_by_source(
    files: Sequence[str],
    source: str,
    path: Path | None,
    notices: list[str],
    project: Path | None = None,
) -> list[tuple[str, dict[str, Entry]]]:
    """Return the name of each bibliography of a draft, and its entries by key; the formatted references are last.

    `notices` receives a line for each bibliography that is not used, unless formatted references stand in for all.
    """
    faults: list[str] = []
    by_source = [
        _from_file(file, path, faults, project) for file in dict.fromkeys(files)
    ]
    formatted = _formatted(source, path)
    if not formatted[1] or any(entries for _, entries in by_source):
        notices += faults
    return [*by_source, formatted]


def _from_file(
    file: str, path: Path | None, faults: list[str], project: Path | None
) -> tuple[str, dict[str, Entry]]:
    """Return the name of a bibliography that a draft names, and its entries by key."""
    if path is None:
        fault = (
            "cannot be followed from standard input; "
            "pass the draft by its name, or the references with --cited FILE"
        )
    else:
        try:
            if found := inside(path.parent, file, ("", ".bib", ".json"), project):
                listed = read_paper_list(found)
                faults += listed.notices
                if unread := listed.unread:
                    many = plural(len(unread), "entry is", "entries are")
                    faults.append(f"{many} ignored in {file}; the first: {unread[0]}")
                by_key: dict[str, Entry] = {}
                for entry in listed.entries:  # the first of a repeated key counts
                    by_key.setdefault(entry.key or entry.place, entry)
                return found.name, by_key
            fault = "is missing; its references are not used"
        except PermissionError:
            fault = "is outside the folder of the draft, or of its git repository"
        except BadInputError as error:
            fault = f"is not used: {error.message}"
    faults.append(f"the bibliography {file} {fault}")
    return file, {}


# --- references that LaTeX has formatted: \bibitem of BibTeX styles, \entry of biblatex

MAX_ITEM = 10_000  # characters
MAX_ENTRY = 30_000
MAX_BBL = 16 * 2**20  # bytes
_LABEL = r"\[(?:[^\[\]{}]|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})*\]\s*"
_ITEM = re.compile(rf"\\bibitem(?![A-Za-z@])\s*(?:{_LABEL})?\{{([^{{}}]{{1,300}})\}}")


def _formatted(source: str, path: Path | None) -> tuple[str, dict[str, Entry]]:
    """Return the source of the formatted references of a draft, itself or its `.bbl`, and these references by key."""
    name = path.name if path else "the draft"
    if source and path and not _ITEM.search(source):
        try:
            bbl = inside(path.parent, f"{path.stem}.bbl")
        except PermissionError:
            raise BadInputError(
                path,
                f"{path.stem}.bbl is a link to outside the folder of the draft; copy it there",
            ) from None
        if bbl:
            source, _ = decoded(bbl.read_bytes()[:MAX_BBL].replace(b"\0", b""))
            name = bbl.name
    entries: dict[str, Entry] = {}
    _, *parts = _ITEM.split(source)
    for key, rest in zip(parts[::2], parts[1::2], strict=True):
        item = rest[:MAX_ITEM].partition("\\end{thebibliography}")[0]
        if text := to_text(item):
            entries.setdefault(key.strip(), printed(text, item))
    for match in _ENTRY.finditer(source):  # once for each sorted list
        entries.setdefault(match["key"], _of_biblatex(match))
    return name, entries


_ENTRY = re.compile(
    r"\\entry\{(?P<key>[^{}]{1,300})\}\{(?P<type>\w+)\}(?P<fields>(?:(?!\\entry\{).)*?)\\endentry",
    re.DOTALL,
)
_FIELD = re.compile(r"\\field\{(\w+)\}(?=\{)|\\verb\{(\w+)\}\s*\\verb\s([^\n]*)")
_AUTHORS = re.compile(r"\\name\{author\}\{\d+\}(?:\{[^{}]*\})?(?=\{)")
# a person begins by a hash; of old versions of biber it is the place that tells a family name
_PERSON = re.compile(r"\{\{[^{}]*\}\{")
_NAME = re.compile(r"\b(family|given|prefix|suffix)=(?=\{)")
_PLACES = re.compile(r"([^{}]+)\}\{[^{}]*\}\{([^{}]*)")
_DELIMITER = re.compile(r"\\bibnamedelim[a-z]\s*")


def _of_biblatex(match: re.Match[str]) -> Entry:
    """Return an entry of the `.bbl` of biblatex, which has the fields of its `.bib`."""
    text = _DELIMITER.sub(" ", match["fields"][:MAX_ENTRY])
    fields = {
        field or verb: braced(text, found.end()) or "" if field else value.strip()
        for found in _FIELD.finditer(text)
        for field, verb, value in [found.groups("")]
    }
    people: list[str] = []
    for found in _AUTHORS.finditer(text):
        for person in _PERSON.split(braced(text, found.end()) or "")[1:]:
            parts = [
                f"{part[1]}={{{braced(person, part.end())}}}"
                for part in _NAME.finditer(person)
            ]
            old = _PLACES.match(person)
            people.append(", ".join(parts or filter(None, old.groups() if old else ())))
    known = {
        bibtex.KEY: match["key"],
        bibtex.TYPE: match["type"],
        bibtex.SOURCE: "",  # it is not BibTeX
        "author": " and ".join(people),
    }
    return bibtex.to_entry(0, fields | known)


def printed(text: str, source: str = "") -> Entry:
    """Return a printed reference, whose paper a corpus recognises; its source has the links of the text."""
    dois = dois_of(source or text)
    return Entry(
        ids=dois + arxiv_dois(source or text),
        dois=dois,
        text=text,
        label=shortened(text, 60),
    )


def braced(text: str, at: int) -> str | None:
    """Return the text in the braces that open at `at`; None if they do not close."""
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text[at : at + 100_000]):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[at + 1 : at + match.start()]
    return None


_MARK = re.compile(
    r"[\[(]?([1-9]\d{0,2})(?:[\])][.:]?|[.:]|\s)\s*(?=\D|$)|\[[A-Za-z+ .&-]*\d{1,4}\w?\](?:\s|$)"
)
_DATED = re.compile(
    r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)|10\.\d{4,9}/|arxiv|\bn\.\s?d\.|in press|forthcoming|in preparation"
    r"|under review|accepted|submitted",
    re.IGNORECASE,
)
_LEAST = 25  # characters of a reference
_ENDED = re.compile(r"(?:[.)\d]|https?://\S+)$")
# from a number at the start of a line, of more than a heading, to the end of a sentence and a line
_NOTE = re.compile(
    r"^\s*[1-9]\d{0,2}[.)]?\s?(?=[^\W\d_a-z]|[\"“„«‘])(?=[^\n]{30})(.{1,600}?[.)\d])$",
    re.M | re.S,
)
# before each work of a note
_SEE = (
    r"(?:(?:and|und|et)\s)?(?:see|cf|compare|vgl|siehe|voir|véase|cfr|vedi)\b[.,:]?"
    r"(?:\s(?:also|auch|dazu|hierzu|etwa|aussi|for example|e\.g\.|z\.\s?B\.|esp\.|insb\.)[,:]?)*\s"
)
_FIRST = re.compile(rf"(?i)^{_SEE}")
_NEXT = re.compile(
    rf"(?i);\s(?!doi|https?:)(?=[^\W\d_]|[\"“„«‘])(?:{_SEE})?|(?<=[.)\d])\s{_SEE}"
)
# what cites without a year: a page, a volume, "ibid.", an address, a number at the end, or a name before a title
_LOCATED = re.compile(
    r"(?i:\b(?:pp?|s|bl|bd|fol|vols?|nr|no)\.\s?\d|\b(?:ib[ií]d|ebd|ebenda|cit)\b|https?://)|,\s\d[\d–-]{0,9}\W?$"
    r"|^(?:[^\W\d_a-z][\w.'’-]*\s){0,3}[^\W\d_a-z][\w'’-]+,\s\W?[^\W\d_a-z][^.]{0,60}\.?$"
)
CAPTION = re.compile(
    r"(?:supplement\w+\s)?(?:fig(?:ure|\.)?|table|tab\.|listing|algorithm)\s*S?\d+\s*[.:|]",
    re.I,
)
# after the last one
_OWN = re.compile(
    r"(?i)\s(?:doi:\S+\s)?(?:how to )?cite this article\b.*|(?<=[.\d)])\s(?:figure|fig\.|table)\s\d+[.:]\s.*"
)


def marked(lines: Sequence[str]) -> list[int]:
    """Return where references begin by their marks, `[Ada43]` or 1, 2, 3 in this order; empty if they have none."""
    starts: list[int] = []
    last = 0
    for number, line in enumerate(lines):
        if mark := _MARK.match(line):
            value = int(mark[1] or last + 1)
            if last < value <= last + 2 or not starts:
                starts.append(number)
                last = value
    return starts if len(starts) > len(lines) / 15 and starts[0] < 3 else []


def is_reference(text: str) -> bool:
    """Whether a text may be a printed reference: it has a year, a DOI, or says why it has none."""
    return len(text) >= _LEAST and bool(_DATED.search(text))


def is_citing(note: str) -> bool:
    """Whether a note cites: a work, also by a short title, or a page, an archive or an address."""
    return bool(_DATED.search(note) or _LOCATED.search(_FIRST.sub("", note)))


def references_of(notes: Iterable[str]) -> list[Entry]:
    """Return the references in notes, without "see" and "cf.": several of one note if each may be a reference."""
    works = list[str]()
    for note in notes:
        works.append("")
        for text in _NEXT.split(_FIRST.sub("", note)):
            if is_reference(works[-1]) and is_reference(text):
                works.append(text)
            else:  # a part of a title, or a work by its short title
                works[-1] = f"{works[-1]}; {text}".removeprefix("; ")
    return [printed(work) for work in works if is_reference(work)]


def reference_lists(lines: Sequence[str], parts: Sequence[object]) -> list[range]:
    """Return where lists of references are: below the headings "References", and below subheadings of a list.

    `parts` has the part that a line begins, and True for another heading. Below the last heading, all is a list.
    """
    heads = [number for number, part in enumerate(parts) if part is Part.REFERENCES]
    places: list[range] = []
    is_list = False
    starts = [number for number, part in enumerate(parts) if part]
    for start, end in pairwise([*starts, len(lines)]):
        is_head = parts[start] is Part.REFERENCES
        is_list = is_head or (is_list and parts[start] is True)
        text = [line.strip() for line in lines[start + 1 : end] if line.strip()]
        if is_list and text:
            is_list = start == heads[-1] or bool(split_references(text))
            places += [range(start + 1, end)] if is_list else []
    return places


def each_once(lists: Iterable[Iterable[Entry]]) -> PaperList:
    """Return the references of several lists; one that two lists print alike counts once."""
    entries: dict[str, Entry] = {}
    for entry in chain.from_iterable(lists):
        entries.setdefault(title_key(_MARK.sub("", entry.text, count=1)), entry)
    return PaperList(tuple(entries.values()))


def printed_references(lines: Sequence[str], *, whole: bool = False) -> PaperList:
    """Return what follows the headings "References"; without one, what footnotes hold.

    A reference begins with a mark, if there are marks; `whole`: else with each line that may be one, and they end
    before a caption, which in a PDF may stand between them.
    """
    parts = [
        part_at(line.strip("# "))
        or line.startswith("#")
        or (whole and CAPTION.match(line.strip()))
        for line in lines
    ]
    if Part.REFERENCES not in parts:
        found = [] if whole else _NOTE.findall("\n".join(lines))
        notes = map(joined, map(str.splitlines, found))
        return PaperList(tuple(references_of(notes)))
    return each_once(
        _below(lines[place.start : place.stop], whole)
        for place in reference_lists(lines, parts)
    )


def _below(lines: Sequence[str], whole: bool) -> tuple[Entry, ...]:
    """Return the references of one list."""
    kept = [line.strip() for line in lines if line.strip()]
    dated = [n for n, line in enumerate(kept) if not n or is_reference(line)]
    are_marked = 2 * len(marked(kept)) >= len(dated)
    return references_at(kept, dated if whole and not are_marked else []).entries


def references_at(lines: Sequence[str], starts: Sequence[int]) -> PaperList:
    """Return the references that begin at some lines: by default at marks, else at capitals after a sentence."""
    starts = starts or marked(lines)
    if not starts:
        starts = [
            n
            for n, line in enumerate(lines[:20_000])
            if line[0].isupper() and (not n or _ENDED.search(lines[n - 1]))
        ]
        ordered = _in_order(lines, starts)
        starts = ordered if len(ordered) > 0.6 * len(starts) else starts
    ends = pairwise([*starts, len(lines)])
    texts = [_OWN.sub("", joined(lines[start:end])) for start, end in ends]
    # a number of the layout is none
    texts = [
        text
        for text in texts
        if re.search(r"[^\W\d_]", text) and not CAPTION.match(text)
    ]
    return PaperList(tuple(printed(text) for text in texts[:2_000]))


def _in_order(lines: Sequence[str], starts: Sequence[int]) -> list[int]:
    """Return the most starts that are in alphabetical order: no `Journal of` at the start of a line among them."""
    # the most up to these letters
    by_letters: dict[str, tuple[int, int, list[int]]] = {}
    for start in starts:
        letters = title_key(lines[start][:20])[:2]
        before = (found for last, found in by_letters.items() if last <= letters)
        count, dated, found = max(before, default=(0, 0, []))
        dated += is_reference(lines[start])  # of equally many
        by_letters[letters] = (count + 1, dated, [*found, start])
    return max(by_letters.values(), default=(0, 0, []))[2]


_HYPHEN = re.compile(r"([a-zß-ÿ])[-\u00ad\u2010]\n([a-zß-ÿ])")


def joined(lines: Sequence[str]) -> str:
    """Return lines as one text: a word that a hyphen splits at the end of a line is whole again."""
    text = _HYPHEN.sub(r"\1\2", "\n".join(line.strip() for line in lines))
    text = re.sub(r"(?<=\w)-\n(?=\w)", "-", text)
    return " ".join(text.replace("\u00ad", "").split())
