"""BibTeX and BibLaTeX libraries, as reference managers and publishers export them; they have no citations.

A library is read block by block. Entries may inherit fields of later ones (`crossref`, `xdata`): the library is then
read once more before, and only the entries from which others inherit are kept.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from citerec.bibliography import bibtex
from citerec.bibliography.entry import Record
from citerec.bibliography.keys import to_text
from citerec.corpus.readers.fields import (
    NO_CITATIONS,
    Fields,
    library_paper,
)
from citerec.corpus.readers.files import (
    Broken,
    Located,
    Rows,
    head_text,
    located,
    read_file,
    text_lines,
)
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

NOTE = NO_CITATIONS
LONGEST = 4_000_000  # characters of a block
TYPE = "entrytype"  # the field that receives the type of an entry
_BLOCK = re.compile(r"\s*@\s*([A-Za-z]+)\s*[{(]")
_FIRST = re.compile(r"(?:\s|%[^\n]*\n)*@\s*[A-Za-z]+\s*[{(]")
_ANYWHERE = re.compile(r"^[ \t]*@\s*[A-Za-z]+\s*[{(]", re.MULTILINE)
_BRACES = re.compile(r"\\.|([{}])")
_PARENTS = re.compile(r"\b(?:crossref|xdata)\s*=\s*[{\"]([^{}\"]*)[}\"]", re.IGNORECASE)
_OWN = frozenset({"title", "subtitle", "author", "abstract", "doi", "url", "pages", "crossref"})
_NO_ENTRIES = frozenset({"comment", "preamble"})
_NO_PAPERS = frozenset({"xdata", "set", "control"})  # types of BibLaTeX that are no works


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: it begins with an entry, or has one and is named .bib."""
    text = head_text(head)
    named = name.lower().endswith((".bib", ".bibtex", ".biblatex"))
    return bool(_FIRST.match(text) or (named and _ANYWHERE.search(text)))


def records(stream: BinaryIO) -> Rows:
    """Yield the entries of one file with their lines; what they inherit is not resolved."""
    macros: dict[str, str] = {}
    for start, kind, text in _blocks(stream):
        if len(text) > LONGEST:
            yield start, Broken(f"an entry of over {LONGEST:,} characters; is a brace not closed?")
            continue
        entries, broken = bibtex.read_records(text, macros)
        for entry in entries:
            yield start + entry.line - 1, {**entry.fields, TYPE: kind, "key": entry.key}
        for fault in broken:
            yield start + fault.line - 1, Broken(fault.fault)


def _blocks(stream: BinaryIO) -> Iterator[tuple[int, str, str]]:
    """Yield the blocks of a file with their first lines and types; text between them belongs to the one before.

    A line that begins like an entry begins one even if a brace before it is not closed, except within a comment.
    """
    start, kind, block, length, depth = 0, "", list[str](), 0, 0
    for number, line in text_lines(stream):
        if (match := _BLOCK.match(line)) and (depth <= 0 or kind not in _NO_ENTRIES):
            if kind and kind not in _NO_ENTRIES:
                yield start, kind, "\n".join(block)
            start, kind, block, length, depth = number, match[1].lower(), [], 0, 0
        length += len(line) + 1
        if kind in _NO_ENTRIES:
            depth += sum({"{": 1, "}": -1}.get(m[1], 0) for m in _BRACES.finditer(line))
        elif kind and length <= LONGEST + len(line) + 1:  # the rest of an endless entry is not kept
            block.append(line)
    if kind and kind not in _NO_ENTRIES:
        yield start, kind, "\n".join(block)


def papers(
    source: "Source", done: Callable[[int], None], log: Log, scratch: Path | None
) -> Iterator[Located]:
    """Yield every entry of a library, with the fields that it inherits."""
    for file in source.files:
        parents = _parents(file)
        for line, row in read_file(file, records, done):
            if isinstance(row, Broken):
                yield located(file, line, row, read)
            elif row[TYPE] not in _NO_PAPERS:
                yield located(file, line, _inherited(row, parents), read)


def _parents(file: Path) -> dict[str, Mapping[str, Any]]:
    """Return the entries of a file from which others inherit, by their keys in lower case."""
    wanted: set[str] = set()

    def scan(stream: BinaryIO) -> Rows:
        for _, line in text_lines(stream):
            for match in _PARENTS.finditer(line):
                wanted.update(key.strip().lower() for key in match[1].split(","))
        yield from ()

    list(read_file(file, scan, lambda _: None))
    if not wanted:
        return {}
    entries = (row for _, row in read_file(file, records, lambda _: None))
    keyed = ((row["key"].lower(), row) for row in entries if not isinstance(row, Broken))
    return {key: row for key, row in keyed if key in wanted}


def _inherited(
    entry: Mapping[str, Any], parents: Mapping[str, Mapping[str, Any]], depth: int = 3
) -> Mapping[str, Any]:
    """Return an entry with the fields that it inherits; a parent may inherit, too, at most `depth` levels."""
    fields = dict(entry)
    for name in ("xdata", "crossref") if depth else ():
        for key in entry.get(name, "").lower().split(","):
            if (parent := parents.get(key.strip())) is None or parent is entry:
                continue
            parent = _inherited(parent, parents, depth - 1)
            left_out = _OWN if name == "crossref" else frozenset[str]()
            fields = {k: v for k, v in parent.items() if k not in left_out} | fields
            if name == "crossref" and not fields.get("booktitle"):
                fields["booktitle"] = parent.get("title", "")
    return fields


def read(fields: Fields) -> Paper:
    """Turn one entry into a paper; its key is its id."""
    key = fields.record.get("key", "")
    entry = bibtex.to_entry(Record(fields.line, fields.record, key))

    def text(*names: str) -> str:
        return to_text(next((fields.record[n] for n in names if fields.record.get(n)), ""))

    return library_paper(
        fields,
        ids=[key],
        title=": ".join(filter(None, (text("title"), text("subtitle")))),
        abstract=entry.abstract,
        year=entry.year,
        authors=entry.authors,
        venue=entry.venue,
        doi=next(iter(entry.dois), ""),
        url=bibtex.link(fields.record.get("url", "")),
        type=fields.record.get(TYPE, ""),
        volume=text("volume"),
        issue=text("number", "issue"),
        pages=text("pages"),
        publisher=text("publisher", "institution", "school", "organization"),
    )
