"""Scopus exports: CSV with a column of references, and RIS with references in its notes; references are linked.

Scopus writes a reference as `Doe J., Title, Journal, 89, 2, pp. 12-15, (2001)` since 2023, and before as
`Doe, J., Title (2001) Journal, 89 (2), pp. 12-15`. A title may hold the `;` that separates references.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from citerec.bibliography import ris as ris_records
from citerec.bibliography.record import Record
from citerec.corpus.linking import Reference, work_key
from citerec.corpus.readers import ris
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.library import library_paper, paper_id
from citerec.corpus.readers.linked import linked_papers
from citerec.corpus.readers.streams import (
    Broken,
    Located,
    Rows,
    StreamFaultError,
    head_text,
    not_text,
    prefixed,
    text_stream,
)
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

LONGEST = 16_000_000  # characters of a field
LONGEST_REFERENCE = 2_000  # characters
_COLUMNS = (frozenset({"Authors", "Title", "EID"}), frozenset({"Title", "References", "Year"}))
_EID = re.compile(r"[?&]eid=(2-s2\.0-[0-9]+)")
_NOTES = "References:"
_YEAR = re.compile(r"\(([12][0-9]{3})[a-z]?\)")
_AUTHOR = re.compile(r"\s*([^\W\d_][^,;()0-9]*?),?\s+((?:[^\W\d_]\.-?\s?)+)(?=[,;\s]|$)")
_NEW = re.compile(
    r", (?P<volume>\w{0,9}[0-9]\w{0,9})(?:, [^,]+)?, pp?\. (?P<page>\w+)[^,]*, \([12][0-9]{3}[a-z]?\)"
)
_OLD = re.compile(
    r"\([12][0-9]{3}[a-z]?\) [^;]{0,400}?, (?P<volume>\w{0,9}[0-9]\w{0,9})(?: \([^)]*\))?, "
    r"(?:art\. no\. |pp?\. )(?P<page>\w+)"
)
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s,;]+")
_NUMBERED = re.compile(r"\s*\([0-9]+\)$")  # the id of an author after the name


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: a table with the columns of Scopus, or RIS from Scopus with references."""
    text = head_text(head)
    if text.lstrip().startswith("TY"):
        return "DB  - Scopus" in text and f"N1  - {_NOTES}" in text
    if '"' not in text[:1] and "," not in text.partition("\n")[0]:
        return False
    try:
        header = set(next(csv.reader([text.partition("\n")[0]]), []))
    except csv.Error:
        return False
    return any(columns <= header for columns in _COLUMNS)


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file with their lines: the columns of a table, whether it is CSV or RIS."""
    first = stream.read(512)
    whole = prefixed(stream, first)
    yield from _from_ris(whole) if head_text(first).lstrip().startswith("TY") else _from_csv(whole)


def _from_csv(stream: BinaryIO) -> Rows:
    csv.field_size_limit(LONGEST)
    rows = csv.reader(text_stream(stream, newline=""))
    columns: list[str] = []
    line = 1
    try:
        columns = next(rows, [])
        line = rows.line_num + 1
        for row in rows:
            if len(row) == len(columns):
                yield line, dict(zip(columns, row, strict=True))
            elif row:
                yield line, Broken(f"{len(row)} columns; the header has {len(columns)}")
            line = rows.line_num + 1
    except csv.Error as error:
        raise StreamFaultError(f"not CSV: {error}; is a quote not closed?", line) from error
    except UnicodeDecodeError as error:
        raise not_text(error, line) from error


def _from_ris(stream: BinaryIO) -> Rows:
    for line, row in ris.records(stream):
        if isinstance(row, Broken):
            yield line, row
            continue
        notes = [note for note in row.get("notes", []) if note.startswith(_NOTES)]
        eid = _EID.search(" ".join(row.get("urls", [])))
        references = "; ".join(note.removeprefix(_NOTES).strip() for note in notes)
        yield line, {**row, "EID": eid[1] if eid else "", "References": references, "RIS": True}


def papers(source: "Source", done: Callable[[int], None], log: Log) -> Iterator[Located]:
    """Yield every record of an export with its references linked."""
    yield from linked_papers(source, records, read, _key, _references, done, log)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper, without its references; its id is its EID."""
    row = fields.record
    if "RIS" in row:
        return replace(ris.read(fields), id=paper_id(fields, [row["EID"], row.get("doi", "")]))
    pages = "-".join(filter(None, (row.get("Page start", ""), row.get("Page end", ""))))
    year = row.get("Year", "")
    return library_paper(
        fields,
        ids=[row.get("EID", ""), row.get("DOI", "")],
        title=row.get("Title", ""),
        abstract="" if (text := row.get("Abstract", "")).startswith("[No abstract") else text,
        year=int(year) if year.isascii() and year.isdigit() else None,
        authors=_authors(row),
        venue=row.get("Source title", ""),
        doi=row.get("DOI", ""),
        url=row.get("Link", ""),
        type=row.get("Document Type", ""),
        volume=row.get("Volume", ""),
        issue=row.get("Issue", ""),
        pages=pages or row.get("Art. No.", ""),
        publisher=row.get("Publisher", ""),
    )


def _authors(row: Mapping[str, Any]) -> list[str]:
    """Return the authors, by their full names if the table has them."""
    names = row.get("Author full names", "") or row.get("Authors", "")
    if names.startswith("[No author"):
        return []
    return [_first_last(_NUMBERED.sub("", name)) for name in _split_names(names)]


def _first_last(name: str) -> str:
    """Turn `Doe, Jane` and `Doe J.A.` into `Jane Doe` and `J.A. Doe`."""
    family, comma, given = name.partition(",")
    if not comma and (match := _AUTHOR.fullmatch(name)):
        family, given = match[1], match[2]
    return f"{given.strip()} {family.strip()}".strip()


def _split_names(names: str) -> list[str]:
    """Split names at semicolons; older tables separate `Doe J.A., Roe K.` by commas."""
    with_commas = ";" not in names and "." in names.partition(",")[0]
    return re.split(r",\s+" if with_commas else r";\s*", names)


def _key(row: Mapping[str, Any]) -> str:
    if "RIS" in row:
        people = row.get("authors") or row.get("first_authors") or [""]
        year, volume = str(ris_records.record_year(_record(row)) or ""), row.get("volume", "")
        return work_key(people[0], year, volume, row.get("start_page", ""))
    first = _split_names(row.get("Authors", ""))[0]
    page = row.get("Page start") or row.get("Art. No.", "")
    return work_key(first, row.get("Year", ""), row.get("Volume", ""), page)


def _record(row: Mapping[str, Any]) -> Record:
    return Record(number=1, line=1, fields=row)


def _references(row: Mapping[str, Any]) -> list[Reference]:
    return [cited_reference(text) for text in split_references(row.get("References", ""))]


def split_references(text: str) -> list[str]:
    """Split a column of references at semicolons.

    A piece without a year continues in the next one, unless that begins with an author.
    """
    references: list[str] = []
    for piece in filter(None, map(str.strip, text.split(";"))):
        open_end = references and not _YEAR.search(references[-1])
        is_short = references and len(references[-1]) + len(piece) <= LONGEST_REFERENCE
        if open_end and is_short and not _AUTHOR.match(piece):
            references[-1] = f"{references[-1]}; {piece}"
        else:
            references.append(piece)
    return references


def cited_reference(text: str) -> Reference:
    """Parse a reference of either style; parts may be missing."""
    dois = tuple(dict.fromkeys(match.rstrip(".)") for match in _DOI.findall(text)))
    if len(text) > LONGEST_REFERENCE:
        return Reference(dois)
    author, years = _AUTHOR.match(text), _YEAR.findall(text)
    place = _NEW.search(text) or _OLD.search(text)
    if not author or not years or not place:
        return Reference(dois)
    name = f"{author[1]}, {author[2]}"
    return Reference(dois, work_key(name, years[-1], place["volume"], place["page"]))
