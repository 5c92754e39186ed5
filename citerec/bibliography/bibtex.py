r"""Reads papers from BibTeX and BibLaTeX, by the grammar of btparse, the parser of biber.

A brace counts with or without a backslash; outside of values a `%` begins a comment. A broken entry costs itself alone:
the next one begins on a line with `@type{`. bibtexparser splits the names of authors only: it loses the field after a
comment, does not count escaped braces, and refuses an entry without a key.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from pathlib import Path

import orjson

from citerec.bibliography.entry import Entry, first_year, is_preprint
from citerec.bibliography.keys import (
    arxiv_dois,
    doi_of,
    dois_of,
    link,
    plain_text,
    split_name,
    to_text,
)
from citerec.display import one_line, shortened

# --- The grammar of entries

# of an entry, among its fields; no names of fields
KEY = "(key)"
TYPE = "(type)"
SOURCE = "(source)"  # as it is written
_LONGEST = 1_000_000  # characters of a value: strings that double each other could fill any memory
_PATIENCE = 100  # faults
_GAP = r"(?:\s|%[^\n]*)*+"
_ENTRY = r"@\s*(\w+)\s*[{(]"
_START = re.compile(rf"%[^\n]*|(?<!\w){_ENTRY}")
# begins an entry, even if a brace is still open
_LINE = re.compile(rf"^\s*{_ENTRY}", re.MULTILINE)
_NEXT = re.compile(rf"(?:^|[}})])\s*(?={_ENTRY})", re.MULTILINE)  # after a broken entry
_KEY = re.compile(
    rf'{_GAP}((?:\{{[^{{}}]*\}}|[^,}}%=\s]|=(?![\s{{"])|\s(?![\w-]+\s*=))*+){_GAP}(?:,|(?=[}})]))'
)
_NAME = re.compile(rf'{_GAP}([^\s={{}}"#,%()@]+){_GAP}=')
_AFTER = re.compile(rf"{_GAP}([,}})])")
# of a value, which may be empty
_PART = re.compile(rf'{_GAP}(?:([{{"])|([^\s#{{}}"=,%)]+)|(?=[,}})]))')
_JOINT = re.compile(rf"{_GAP}#")
_BRACKET = re.compile(r'[{})]|(?<!\\)"')
_UNESCAPED = re.compile(r'(?<!\\)[{})"]')
_LOST = re.compile(r"[\s}]*,\s*[\w-]+\s*=")  # fields after the end of their entry


def read_records(
    text: str,
) -> tuple[list[tuple[int, dict[str, str]]], list[tuple[int, str]]]:
    """Read every entry of BibTeX; names of fields are in lower case, values are not decoded.

    A key may be missing or repeated; if a field is repeated in one entry, the first one counts.

    Returns line and fields of the valid entries, in file order, with what they inherit by `crossref` and `xdata`; and
    the line of each broken one, and what is wrong with it.
    """
    macros: dict[str, str] = {}
    records: list[tuple[int, dict[str, str]]] = []
    broken: list[tuple[int, str]] = []
    line = 1
    counted = 0
    at = 0
    ends = _ends(text)
    while start := _START.search(text, at):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        at = start.end()
        kind = (start[1] or "").lower()
        name = f"this @{start[1]}"
        try:
            if kind in {"comment", "preamble"}:
                # of many broken ones each would be searched to the end of the file
                end = len(text) if len(broken) < _PATIENCE else at
                at = _closing(text, at, end, _UNESCAPED)
            elif kind == "string":
                fields, _, at = _fields(text, at, ends, macros)
                macros |= fields
            elif kind:
                match = _KEY.match(text, at)
                if not match and not _NAME.match(text, at):
                    raise ValueError(
                        f"a comma is missing after the key in {_shown(text, at)}"
                    )
                key = match[1].strip() if match else ""
                name = f"entry {key!r}" if key else name
                place = match.end() if match else at
                fields, _, at = _fields(text, place, ends, macros)
                fields |= {KEY: key, TYPE: kind, SOURCE: text[start.start() : at]}
                records.append((line, fields))
        except ValueError as error:
            broken.append((line, f"{name} cannot be read: {error}"))
            following = _NEXT.search(text, at)
            at = following.end() if following else len(text)
    parents = {
        fields[KEY].lower(): fields for _, fields in reversed(records) if fields[KEY]
    }
    return [
        (line, _inherited(fields, parents))
        for line, fields in records
        if fields[TYPE] not in _NO_PAPERS
    ], broken


# which of them states year or venue, types and programs choose
_SAME = (
    ("year", "date"),
    ("journal", "journaltitle", "booktitle", "howpublished"),
)


def corrected(source: str, kind: str, values: Mapping[str, str]) -> str:
    """Return an entry with other values of some fields, in LaTeX, and all else as it is written.

    Fields that it lacks follow its last one. A link to its DOI changes with it; an empty `kind` is its own type.
    """
    start = next(_START.finditer(source))
    key = _KEY.match(source, start.end())
    at = key.end() if key else start.end()
    fields, places, _ = _fields(source, at, _ends(source), {})
    if "doi" in values and doi_of(link(fields.get("url", ""))):
        values = {**values, "url": f"https://doi.org/{values['doi']}"}
    last = max(end for _, end in places.values())
    edits = [(*start.span(1), kind or start[1])]
    for field, value in values.items():
        same = next((names for names in _SAME if field in names), ())
        stated = next((name for name in (field, *same) if name in places), "")
        if stated:
            name, end = places[stated]
            given = source[name.end(1) : end]  # `= {2018}`
            sign = given.removesuffix(given.lstrip("= \t\n"))
            edits.append((name.start(1), end, f"{field}{sign}{{{value}}}"))
        elif value:
            edits.append((last, last, f",\n  {field} = {{{value}}}"))
    edits.sort(key=itemgetter(0))
    for begin, end, text in reversed(edits):
        source = source[:begin] + text + source[end:]
    return source


# fields, and of each the match of its name and the end of its value; the end of the entry
_Fields = tuple[dict[str, str], dict[str, tuple[re.Match[str], int]], int]


def _ends(text: str) -> list[int]:
    """Return where the lines begin that begin an entry, and the end of the text."""
    return [*(found.start() for found in _LINE.finditer(text)), len(text)]


def _fields(
    text: str, at: int, ends: Sequence[int], macros: Mapping[str, str]
) -> _Fields:
    """Read fields up to the end of their entry; a brace counts if it is escaped, too, unless nothing closes then."""
    end = ends[bisect_left(ends, at)]
    try:
        return _fields_by(_BRACKET, text, at, end, macros)
    except ValueError as error:
        try:
            return _fields_by(_UNESCAPED, text, at, end, macros)
        except ValueError:
            raise error from None


def _fields_by(
    brackets: re.Pattern[str], text: str, at: int, end: int, macros: Mapping[str, str]
) -> _Fields:
    fields: dict[str, str] = {}
    places: dict[str, tuple[re.Match[str], int]] = {}
    while True:
        if name := _NAME.match(text, at):
            parts = list[str]()
            at = name.end()
            length = 0
            while part := _PART.match(text, at):
                at = part.end()
                if part[1]:
                    at = _closing(text, at, end, brackets)
                    parts.append(text[part.end() : at - 1])
                elif part[2]:  # a name that no `@string` defines is used as text
                    parts.append(macros.get(part[2].lower(), part[2]))
                length += len(parts[-1]) if parts else 0
                if length > _LONGEST:
                    raise ValueError(f"a value is longer than {_LONGEST} characters")
                if not (joint := _JOINT.match(text, at)):
                    break
                at = joint.end()
            fields.setdefault(name[1].lower(), "".join(parts))
            places.setdefault(name[1].lower(), (name, at))
        after = _AFTER.match(text, at)
        if not after:
            raise ValueError(f"a comma is missing before {_shown(text, at)}")
        at = after.end()
        if after[1] != ",":
            if _LOST.match(text, at):
                raise ValueError(
                    f"one brace too many ends the entry before {_shown(text, at)}"
                )
            return fields, places, at


def _shown(text: str, at: int) -> str:
    following = one_line(text[at : at + 60])[:40]
    return repr(following) if following else "the end; is a brace not closed?"


def _closing(text: str, at: int, end: int, brackets: re.Pattern[str]) -> int:
    """Return the place after the bracket that closes the one before `at`."""
    closing = {"{": "}", "(": ")", '"': '"'}[text[at - 1]]
    depth = 0
    for bracket in brackets.finditer(text, at, end):
        if bracket[0] == closing and depth == 0:
            return bracket.end()
        depth += {"{": 1, "}": -1}.get(bracket[0], 0)
    raise ValueError(f"a brace or quote is not closed before {_shown(text, at)}")


# --- Inherited fields

# types of BibLaTeX that are no works
_NO_PAPERS = frozenset({"xdata", "set", "control"})
_OWN = frozenset("title subtitle author abstract doi url pages crossref".split())
_GENERATIONS = 3  # of entries that inherit from each other; they may form a circle


def _inherited(
    row: dict[str, str], parents: Mapping[str, dict[str, str]], left: int = _GENERATIONS
) -> dict[str, str]:
    """Return an entry with what it does not state itself: the fields of `xdata`, and of the book that it is in."""
    if not left:
        return row
    for key in filter(None, row.get("xdata", "").lower().split(",", 9)):
        row = {**_inherited(parents.get(key.strip(), {}), parents, left - 1), **row}
    if book := parents.get(row.get("crossref", "").strip().lower()):
        fields = _inherited(book, parents, left - 1)
        inherited = {name: value for name, value in fields.items() if name not in _OWN}
        title = {"booktitle": book.get("booktitle") or book.get("title", "")}
        row = {**inherited, **title, **row}
    return row


# --- What the fields mean

_WHOLE = re.compile(r"\{(?:[^{},]|\{[^{},]*\})*\}")  # a name in braces, without a comma
# parts of a name, or an option of all names
_EXTENDED = re.compile(r'"?[a-z-]+\s*=', re.IGNORECASE)
_PIECE = re.compile(r'(?:"[^"]*"|\{(?:[^{}]|\{[^{}]*\})*\}|[^,])+')
_NOBODY = frozenset({"", "others", "et al.", "et al"})
_ORDER = "given middle prefix family suffix".split()
_ONLINE = re.compile(r"://|www\.|\b(?:online|web ?site|accessed)\b", re.IGNORECASE)
_ADDRESSES = "doi url ee bdsk-url-1 howpublished".split()
_REMARKS = "publisher note archiveprefix eprinttype institution".split()
_MACRO = re.compile(r"\\([a-z]+)(?![A-Za-z])")
# bibtexparser divides a name at these
_LETTER = re.compile(
    r"\\(~\s?(?:\{[^{}]*\}|\\?[A-Za-z])|(?:aa|AA|ae|AE|oe|OE|ss|[oOlLij])\s)"
)
_NUMBER = re.compile(  # of a chapter, before its title or alone
    r"\A\W*(?:(?:chap(?:ter|\.)?|ch\.|kapitel)\s*(?:[0-9.]+|[a-z]\b|[ivx]+\b)|[0-9]{1,2}(?:\.[0-9]+)*"
    r"|[ivxl]{1,5}(?=\W*\Z|[.:)] ))(?:[\s.:)–—-]+|\Z)",
    re.IGNORECASE,
)


def first_text(fields: Mapping[str, str], *names: str) -> str:
    """Return the first of the named fields that is not empty, as plain text; else an empty string."""
    return to_text(next((fields[name] for name in names if fields.get(name)), ""))


def to_entry(line: int, fields: Mapping[str, str]) -> Entry:
    """Return a record as plain text; `@unpublished` without a venue is a preprint."""
    text = partial(first_text, fields)
    addresses = [link(fields.get(name, "")) for name in _ADDRESSES]
    links = " ".join(addresses)
    title = plain_text(": ".join(filter(None, (text("title"), text("subtitle")))))
    # else it is a venue
    how = "" if _ONLINE.search(addresses[-1]) else text("howpublished")
    venues = (
        _venue(fields.get(n, "")) for n in ("journal", "journaltitle", "booktitle")
    )
    venue = next(filter(None, venues), how)
    key = fields[KEY]
    kind = fields[TYPE]
    chapter = _NUMBER.sub("", text("chapter"))
    if (
        len(chapter) > 2
        and kind in {"inbook", "incollection"}
        and not (title and venue)
    ):
        title, venue = chapter, venue or title
    kind = "" if kind == "article" else kind  # which means a preprint in CSL only
    unpublished = is_preprint(kind, venue, map(text, _REMARKS), addresses)
    preprints = arxiv_dois(f"arXiv:{text('eprint')} {venue} {text('volume')} {links}")
    dois = (
        dois_of(links)
        or dois_of(fields.get("note", ""))
        or (preprints if unpublished else ())
    )
    return Entry(
        # a key alone does not identify a paper
        ids=dois + ((key,) if key and (title or dois) else ()),
        title=title,
        abstract=text("abstract"),
        year=first_year(text("year", "date")),
        authors=_people(fields.get("author", "")),
        venue=venue,
        key=key,
        has_citation_key=True,
        dois=dois,
        preprints=preprints,
        is_preprint=unpublished,
        line=line,
        source=fields[SOURCE],
        label=f"entry {key or shortened(title, 60)!r}"
        if key or title
        else "this entry",
    )


def _venue(latex: str) -> str:
    r"""Return the name of a journal or book, for which NASA ADS writes `\apj`; of an unknown command its name stays.

    Zotero writes `\textbackslash apj` for it, and `åp` for `\aap`.
    """
    named = to_text(
        _MACRO.sub(lambda macro: _journals().get(macro[1], macro[0]), latex)
    )
    return _journals().get(named.strip("\\ ")) or named or latex.strip("\\{} ")


@cache
def _journals() -> dict[str, str]:
    """Return the journals by the names of their macros in aas_macros.sty and AASTeX."""
    return orjson.loads(Path(__file__).with_name("journals.json").read_bytes())


def _people(field: str) -> tuple[str, ...]:
    """Return the names of an author field, each as `First von Last`, without `others`; a brace is no part of a name."""
    from bibtexparser.middlewares import names

    people: list[str] = []
    # bibtexparser loses a command at the start of a name
    field = one_line(field).replace(" and \\", " and {}\\")
    field = _LETTER.sub(lambda letter: f"{{\\{letter[1].rstrip()}}}", field)
    for person in names.split_multiple_persons_names(field):
        if _EXTENDED.match(person):
            pieces = (
                piece.strip().strip('"').partition("=")
                for piece in _PIECE.findall(person)
            )
            parts = {
                part.strip().lower(): value.strip('" ') for part, _, value in pieces
            }
            name = " ".join(parts[part] for part in _ORDER if parts.get(part))
            is_whole = "given" not in parts
        else:
            name = names.parse_single_name_into_parts(
                person, strict=False
            ).merge_first_name_first
            is_whole = bool(_WHOLE.fullmatch(name))
        name = to_text(name).replace("{", "").replace("}", "").strip()
        people.append(f"{name}," if is_whole and split_name(name).given else name)
    return tuple(name for name in people if name not in _NOBODY)
