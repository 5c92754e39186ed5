"""Reads records, creators and attachments of Zotero: of its database, which is never written, and of its API."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson

from citerec.bibliography.entry import Entry, first_year
from citerec.bibliography.fields import Fields, library_paper
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.corpus.readers.files import Located, json_records, located, read_file
from citerec.errors import BadInputError
from citerec.types import Json, Paper

DATABASE = "zotero.sqlite"
# who makes a work, by its type; the others edit, translate or contribute
_AUTHORS = tuple(
    "author artist cartographer director interviewee inventor podcaster presenter programmer".split()
)
_FILES = """
    SELECT replace(path, 'storage:', 'storage/' || items.key || '/') AS file
    FROM itemAttachments JOIN items USING (itemID)
    WHERE path IS NOT NULL AND itemID NOT IN (SELECT itemID FROM deletedItems)
"""
_LOOSE = f"{_FILES} AND parentItemID IS NULL"
_ITEMS = f"""
    SELECT key, typeName, (
        SELECT json_group_object(fieldName, value || '')
        FROM itemData JOIN fields USING (fieldID) JOIN itemDataValues USING (valueID)
        WHERE itemID = works.itemID
    ), (
        SELECT json_group_array(name) FROM (
            SELECT trim(coalesce(firstName, '') || ' ' || lastName) AS name
            FROM itemCreators JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID)
            WHERE creatorType IN {_AUTHORS} AND itemID = works.itemID ORDER BY orderIndex
        )
    ), (
        SELECT json_group_array(file) FROM ({_FILES} AND parentItemID = works.itemID)
    )
    FROM items AS works JOIN itemTypes USING (itemTypeID) JOIN libraries USING (libraryID)
    WHERE typeName NOT IN ('attachment', 'note', 'annotation') AND type != 'feed'
        AND itemID NOT IN (SELECT itemID FROM deletedItems)
    ORDER BY itemID
"""
# of cases, statutes and messages, and of patents
_TITLES = "title caseName nameOfAct subject".split()
_DATES = "date issueDate dateDecided dateEnacted".split()
_VENUES = (
    "publicationTitle proceedingsTitle bookTitle encyclopediaTitle dictionaryTitle conferenceName websiteTitle"
    " blogTitle repository"
).split()
_STATED = {
    "type": "type",
    "url": "url",
    "volume": "volume",
    "issue": "issue reportNumber",
    "pages": "pages",
    "publisher": "publisher university institution",
}
# records with the files that they name, then None with those without a record
Listed = Iterator[tuple[Located | None, list[str]]]


def read_zotero(database: Path) -> Listed:
    """Yield the records of a library with the files that they name, then None with those without a record.

    The id of a record is Zotero's key. BadInputError if the file is no database of Zotero, or of a version with other
    tables.
    """
    # Zotero keeps it locked while it runs
    address = f"{database.resolve().as_uri()}?immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            items = connection.execute(_ITEMS).fetchall()
            loose = [file for (file,) in connection.execute(_LOOSE)]
    except sqlite3.Error as error:
        fault = f"cannot be read as Zotero's database ({error}): it is damaged or of another version"
        advice = "start Zotero and read it from there: citerec library add zotero; or"
        raise BadInputError(
            database, f"{fault}; {advice} export the library as BibTeX with its files"
        ) from error
    for line, (key, kind, values, people, files) in enumerate(items, start=1):
        record = orjson.loads(values)
        record |= {"key": key, "type": kind, "authors": orjson.loads(people)}
        yield located(database, line, record, _paper), orjson.loads(files)
    yield None, loose


def read_items(file: Path) -> Listed:
    """Yield the records of items as Zotero's API sends them, as `read_zotero` does; notes are left out."""
    works: list[tuple[int, Json]] = []
    files: defaultdict[str, list[str]] = defaultdict(list)
    for line, item in read_file(file, json_records):
        if isinstance(item, str):  # why it cannot be read
            yield located(file, line, item, _paper), []
        elif (data := item["data"])["itemType"] == "attachment":
            # what Zotero keeps, or the path of a linked file
            links = item["links"].get("enclosure", {"href": data.get("path", "")})
            files[data.get("parentItem", "")].append(links["href"])
        elif data["itemType"] not in {"note", "annotation"}:
            works.append((line, data))
    for line, data in works:
        people = [
            f"{person.get('firstName', '')} {person.get('lastName', '')}".strip()
            or person.get("name", "")
            for person in data.get("creators", ())
            if person["creatorType"] in _AUTHORS
        ]
        record = {**data, "type": data["itemType"], "authors": people}
        yield located(file, line, record, _paper), files[data["key"]]
    yield None, files[""]


def _paper(fields: Fields) -> Paper:
    def first(names: Iterable[str]) -> str:
        return next(filter(None, map(fields.text, names)), "")

    extra = fields.text("extra")
    dois = dois_of(fields.text("DOI")) or dois_of(extra)
    entry = Entry(
        title=first(_TITLES),
        abstract=fields.text("abstractNote"),
        year=first_year(first(_DATES)),
        authors=fields.names("authors"),
        venue=first(_VENUES),
        dois=dois or arxiv_dois(f"{extra} {fields.text('archiveID')}"),
    )
    stated: Any = {name: first(names.split()) for name, names in _STATED.items()}
    return library_paper(fields, [fields.id("key")], entry, **stated)
