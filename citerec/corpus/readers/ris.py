"""RIS libraries, as Zotero, EndNote, Mendeley, Scopus and publishers export them; RIS has no references of a paper."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from citerec.bibliography import ris
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.library import NO_CITATIONS, bibliography_record, library_paper
from citerec.corpus.readers.streams import Broken, Rows, head_text, text_lines
from citerec.types import Paper

NOTE = NO_CITATIONS
LONGEST = 4_000_000  # characters of a record
_FIRST = re.compile(r"\s*TY {1,2}-(?: |\r?$)", re.MULTILINE)
_START = re.compile(r"TY {1,2}-(?: |$)")
_TAG = re.compile(r"[A-Z][A-Z0-9] {1,2}-(?: |$)")
_END = re.compile(r"ER {1,2}-\s*$")


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: some programs write a few lines before the first record."""
    text = head_text(head)
    if _FIRST.match(text):
        return True
    return (
        name.lower().endswith(".ris") and re.search(r"^TY {1,2}-", text, re.MULTILINE) is not None
    )


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
            start, block, length = number, [line, *early], 0
            early = []
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
    raw, record = fields.record, bibliography_record(fields)
    pages = "-".join(filter(None, (ris.first_text(raw, (k,)) for k in ("start_page", "end_page"))))
    return library_paper(
        fields,
        ids=[
            ris.first_text(raw, ("id",)),
            *ris.record_dois(record),
            ris.first_text(raw, ("accession_number",)),
        ],
        title=ris.record_title(record),
        abstract=ris.first_text(raw, ris.ABSTRACTS),
        year=ris.record_year(record),
        authors=ris.record_authors(record),
        venue=ris.first_text(raw, ris.VENUES),
        doi=next(iter(ris.record_dois(record)), ""),
        url=ris.first_text(raw, ("urls",)).split(" ")[0],
        type=ris.first_text(raw, ("type_of_reference",)),
        volume=ris.first_text(raw, ("volume",)),
        issue=ris.first_text(raw, ("number",)),
        pages=pages,
        publisher=ris.first_text(raw, ("publisher",)),
    )
