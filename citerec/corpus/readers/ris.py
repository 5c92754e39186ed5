"""RIS libraries, as Zotero, EndNote, Mendeley, Scopus and publishers export them; RIS has no references of a paper."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from citerec.bibliography import ris
from citerec.bibliography.entry import Record
from citerec.corpus.readers.fields import (
    NO_CITATIONS,
    Fields,
    library_paper,
    page_range,
)
from citerec.corpus.readers.files import Broken, Rows, head_text, text_lines
from citerec.types import Paper

NOTE = NO_CITATIONS
LONGEST = 4_000_000  # characters of a record
_START = re.compile(r"TY {1,2}-(?: |$)")
_TAG = re.compile(r"[A-Z][A-Z0-9] {1,2}-(?: |$)")
_END = re.compile(r"ER {1,2}-\s*$")


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: some programs write a few lines before the first record."""
    lines = head_text(head).lstrip().splitlines()
    return any(map(_START.match, lines if name.lower().endswith(".ris") else lines[:1]))


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file, each with the line of its TY tag; a record without an end tag is read, too."""
    for line, lines in _blocks(stream):
        text = "\n".join(lines)
        if len(text) > LONGEST:
            yield line, Broken(f"a RIS record of over {LONGEST:,} characters")
            continue
        [record] = ris.read_records(text)
        yield line, record.fields


def _blocks(stream: BinaryIO) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of each record with the number of its first line; its TY tag comes first, wherever it was."""
    start, block, early, length = 0, list[str](), list[str](), 0
    for number, line in text_lines(stream):
        if _START.match(line):
            if block:
                yield start, block
            start, block, length, early = number, [line, *early], 0, []
        elif block:
            length += len(line)
            if length <= LONGEST + len(line):  # the rest of an endless record is not kept
                block.append(line)
            if _END.match(line):
                yield start, block
                block = []
        elif _TAG.match(line) and not _END.match(line):
            early = [*early[-999:], line]
    if block:
        yield start, block


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    entry = ris.to_entry(Record(fields.line, fields.record))

    def text(*names: str) -> str:
        return ris.first_text(fields.record, *names)

    return library_paper(
        fields,
        ids=[text("id"), *entry.dois, text("accession_number")],
        title=entry.title,
        abstract=entry.abstract,
        year=entry.year,
        authors=entry.authors,
        venue=entry.venue,
        doi=next(iter(entry.dois), ""),
        url=text("urls").split(" ")[0],
        type=text("type_of_reference"),
        volume=text("volume"),
        issue=text("number"),
        pages=page_range(text("start_page"), text("end_page")),
        publisher=text("publisher"),
    )
