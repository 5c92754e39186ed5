"""Zotero's own database, `zotero.sqlite`, opened read-only; Zotero has no references of a paper."""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from citerec.bibliography.doi import doi_of
from citerec.bibliography.record import first_year
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.library import NO_CITATIONS, library_paper
from citerec.corpus.readers.streams import Located, Rows, StreamFaultError, located
from citerec.errors import BadInputError
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

NOTE = NO_CITATIONS
MAGIC = b"SQLite format 3\0"
_MARKUP = re.compile(r"</?(?:i|b|sub|sup|span)(?:\s[^<>]*)?>")
_EXTRA_DOI = re.compile(r"^[ \t]*DOI:[ \t]*(\S+)", re.MULTILINE | re.IGNORECASE)
_ITEMS = """
    SELECT items.itemID, items.libraryID, items.key, itemTypes.typeName FROM items
    JOIN itemTypes ON itemTypes.itemTypeID = items.itemTypeID
    WHERE itemTypes.typeName NOT IN ('attachment', 'note', 'annotation')
      AND items.itemID NOT IN (SELECT itemID FROM deletedItems)
      AND items.libraryID NOT IN (SELECT libraryID FROM libraries WHERE type = 'feed')
    ORDER BY items.itemID"""
_FIELDS = """
    SELECT fields.fieldName, itemDataValues.value FROM itemData
    JOIN fields ON fields.fieldID = itemData.fieldID
    JOIN itemDataValues ON itemDataValues.valueID = itemData.valueID
    WHERE itemData.itemID = ?"""
_CREATORS = """
    SELECT creators.firstName, creators.lastName, creatorTypes.creatorType FROM itemCreators
    JOIN creators ON creators.creatorID = itemCreators.creatorID
    JOIN creatorTypes ON creatorTypes.creatorTypeID = itemCreators.creatorTypeID
    WHERE itemCreators.itemID = ? ORDER BY itemCreators.orderIndex"""
_TITLES = ("title", "caseName", "nameOfAct", "subject")
_VENUES = ("publicationTitle", "bookTitle", "proceedingsTitle", "conferenceName", "repository")
_PUBLISHERS = ("publisher", "university", "institution", "company")


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: an SQLite database with Zotero's name, or with its tables."""
    if not head.startswith(MAGIC):
        return False
    own_name = name.lower() == "zotero.sqlite"
    return own_name or (b"itemDataValues" in head and not name.endswith(".bak"))


def records(stream: BinaryIO) -> Rows:
    """Refuse a stream: SQLite reads files only."""
    raise StreamFaultError("a packed database cannot be read; unpack it first")
    yield 0, {}


def papers(source: "Source", done: Callable[[int], None], log: Log) -> Iterator[Located]:
    """Yield every item of a library; attachments, notes and items in the bin are left out."""
    for file in source.files:
        wal = file.with_name(f"{file.name}-wal")
        if wal.is_file() and wal.stat().st_size:
            log(
                f"{file}: Zotero seems to be open; close it, so that its last changes are read, too"
            )
        for number, row in _rows(file):
            yield located(file, number, row, read)
        done(file.stat().st_size)


def _rows(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the items of a database with their numbers, from 1."""
    with file.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise BadInputError(
                file, "this is no SQLite database; if it is packed, unpack it first"
            )
    try:
        uri = f"file:{quote(str(file.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as database:
            for number, (item, library, key, kind) in enumerate(database.execute(_ITEMS), start=1):
                fields = dict(database.execute(_FIELDS, (item,)))
                creators = database.execute(_CREATORS, (item,)).fetchall()
                docid = key if library == 1 else f"{library}/{key}"
                yield number, {"id": docid, "kind": kind, "fields": fields, "creators": creators}
    except sqlite3.Error as error:
        advice = (
            "expected a database of Zotero 5 or later; export the library as BibTeX or RIS instead"
        )
        raise BadInputError(file, f"cannot be read: {error}; {advice}") from error


def read(fields: Fields) -> Paper:
    """Turn one item into a paper; its id is its key in Zotero."""
    values: Mapping[str, Any] = fields.record["fields"]

    def text(*names: str) -> str:
        return str(next((values[name] for name in names if values.get(name)), ""))

    extra = _EXTRA_DOI.search(text("extra"))
    return library_paper(
        fields,
        ids=[fields.record["id"]],
        title=_MARKUP.sub("", text(*_TITLES)),
        abstract=text("abstractNote"),
        year=first_year(text("date")),
        authors=_authors(fields.record["creators"]),
        venue=text(*_VENUES),
        doi=doi_of(text("DOI")) or (doi_of(extra[1]) if extra else ""),
        url=text("url"),
        type=fields.record["kind"],
        volume=text("volume"),
        issue=text("issue"),
        pages=text("pages"),
        publisher=text(*_PUBLISHERS),
    )


def _authors(creators: list[tuple[str | None, str | None, str]]) -> list[str]:
    """Return the names of the authors; those of the first kind of creator if there is no author."""
    kinds = [kind for _, _, kind in creators]
    kind = "author" if "author" in kinds else next(iter(kinds), "")
    return [" ".join(filter(None, (first, last))) for first, last, k in creators if k == kind]
