"""BibTeX and RIS libraries, as reference managers and publishers export them; they have no citations.

`citerec.corpus.contents` recognises both, since they may begin with other lines.
"""

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from citerec.bibliography import bibtex, ris
from citerec.bibliography.entry import Record
from citerec.bibliography.fields import NO_CITATIONS, Fields, library_paper
from citerec.bibliography.keys import to_text
from citerec.corpus.readers.files import (
    BytesRead,
    Format,
    Located,
    Rows,
    Source,
    StreamFaultError,
    located,
    read_file,
)
from citerec.text import web_address
from citerec.types import Log, Paper

MAX_LINE = 16 * 2**20  # characters


def _lines(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1, each without its line end."""
    text, number = io.TextIOWrapper(stream, "utf-8-sig", newline=None), 0
    try:
        while line := text.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise StreamFaultError(f"a line of over {MAX_LINE:,} characters", number)
            yield number, line.rstrip("\n")
    finally:
        text.detach()  # else the stream would be closed with it


def _blocks(stream: BinaryIO, start: "re.Pattern[str]") -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that begin with lines of a pattern, each with the number of its first line."""
    first, block = 0, list[str]()
    for number, line in _lines(stream):
        if start.match(line):
            if block:
                yield first, "\n".join(block)
            first, block = number, [line]
        elif block:
            block.append(line)
    if block:
        yield first, "\n".join(block)


# --- BibTeX and BibLaTeX

_BLOCK = re.compile(r"\s*@\s*([A-Za-z]+)\s*[{(]")  # begins an entry, even if a brace is still open
_ESCAPED = re.compile(r"\\.")
_OWN = frozenset({"title", "subtitle", "author", "abstract", "doi", "url", "pages"})
_BOOKS = frozenset({"proceedings", "book", "collection", "mvproceedings", "mvbook", "mvcollection"})


def _bibtex_records(stream: BinaryIO) -> Rows:
    """Yield the entries of one file with their lines."""
    macros: dict[str, str] = {}
    open_braces, comment = 0, 0  # of a comment, which may hold entries, and its line
    for start, block in _blocks(stream, _BLOCK):
        kind = block.partition("@")[2].lstrip()[:8].lower()
        if open_braces > 0 or kind.startswith(("comment", "preamble")):
            comment = comment if open_braces > 0 else start
            plain = _ESCAPED.sub("", block)
            open_braces += plain.count("{") - plain.count("}")
            continue
        entries, broken = bibtex.read_records(block, macros)
        for entry in entries:
            yield start + entry.line - 1, entry.fields
        for line, fault in broken:
            yield start + line - 1, fault
    if open_braces > 0:
        yield comment, "the braces of this comment do not close; the entries after it are not read"


def _bibtex_papers(
    source: Source, read: BytesRead, log: Log, scratch: Path | None
) -> Iterator[Located]:
    """Yield the entries of each library; those with a `crossref` last, with what they inherit from a book."""
    for file in source.files:
        books: dict[str, Mapping[str, Any]] = {}
        heirs: list[tuple[int, Mapping[str, Any]]] = []
        for line, row in read_file(file, _bibtex_records, read):
            if isinstance(row, str):
                yield located(file, line, row, _bibtex_paper)
            elif row.get("crossref"):
                heirs.append((line, row))
            else:
                if row[bibtex.TYPE] in _BOOKS:
                    books[row[bibtex.KEY].lower()] = row
                yield located(file, line, row, _bibtex_paper)
        for line, row in heirs:
            book = books.get(row["crossref"].strip().lower(), {})
            inherited = {name: value for name, value in book.items() if name not in _OWN}
            title = {"booktitle": book.get("title", "")}
            yield located(file, line, {**title, **inherited, **row}, _bibtex_paper)


def _bibtex_paper(fields: Fields) -> Paper:
    """Turn one entry into a paper; its key is its id."""
    raw = fields.record

    def text(*names: str) -> str:
        return to_text(next((raw[name] for name in names if raw.get(name)), ""))

    return library_paper(
        fields,
        [raw[bibtex.KEY]],
        bibtex.to_entry(Record(fields.line, raw)),
        url=bibtex.link(raw.get("url") or web_address(bibtex.link(raw.get("howpublished", "")))),
        type="mastersthesis" if raw.get("type") == "mathesis" else raw[bibtex.TYPE],
        volume=text("volume"),
        issue=text("number", "issue"),
        pages=text("pages"),
        publisher=text("publisher", "institution", "school", "organization"),
    )


BIBTEX = Format(read=_bibtex_paper, papers=_bibtex_papers, note=NO_CITATIONS)

# --- RIS

_START = re.compile(r"TY {1,2}-(?: |$)")


def _ris_records(stream: BinaryIO) -> Rows:
    """Yield the records of one file, each with the line of its TY tag; a record without an end tag is read, too."""
    for line, block in _blocks(stream, _START):
        for record in ris.read_records(block):
            yield line, record.fields


def _ris_paper(fields: Fields) -> Paper:
    entry = ris.to_entry(Record(fields.line, fields.record))

    def text(name: str) -> str:
        return ris.first_text(fields.record, name)

    return library_paper(
        fields,
        [text("id"), *entry.dois, text("accession_number")],
        entry,
        url=text("urls").split(" ")[0],
        type=text("type_of_reference"),
        volume=text("volume"),
        issue=text("number"),
        pages=fields.pages("start_page", "end_page"),
        publisher=text("publisher"),
    )


RIS = Format(records=_ris_records, read=_ris_paper, note=NO_CITATIONS)
