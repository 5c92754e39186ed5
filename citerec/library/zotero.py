"""Reads the data folder of Zotero: records, creators and attachments of `zotero.sqlite`.

Zotero keeps the database locked while it runs, so that a copy is read; the folder itself is never written.
"""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from citerec.bibliography.entry import Entry, first_year
from citerec.bibliography.fields import Fields, library_paper
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.corpus.readers.files import Located
from citerec.errors import BadInputError, BadRecordError
from citerec.library.attached import TEXTS

DATABASE = "zotero.sqlite"
_JOURNALS = ("-wal", "-journal")  # what a change in progress is in
_NO_WORKS = "('attachment', 'note', 'annotation')"
_ITEMS = f"""
    SELECT itemID, key, typeName FROM items JOIN itemTypes USING (itemTypeID)
    WHERE typeName NOT IN {_NO_WORKS} AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID
"""
_VALUES = """
    SELECT itemID, fieldName, value FROM itemData JOIN fields USING (fieldID) JOIN itemDataValues USING (valueID)
"""
_CREATORS = """
    SELECT itemID, firstName, lastName FROM itemCreators JOIN creators USING (creatorID)
    JOIN creatorTypes USING (creatorTypeID) WHERE creatorType = 'author' ORDER BY itemID, orderIndex
"""
_ATTACHMENTS = """
    SELECT parentItemID, items.key, path FROM itemAttachments JOIN items USING (itemID)
    WHERE path IS NOT NULL AND itemID NOT IN (SELECT itemID FROM deletedItems)
"""
_VENUES = "publicationTitle proceedingsTitle bookTitle conferenceName websiteTitle repository".split()
_BASE = re.compile(
    r'user_pref\("extensions\.zotero\.baseAttachmentPath", "((?:[^"\\]|\\.)*)"\)'
)
_PROFILES = (
    ".zotero/zotero/*/prefs.js",
    "Library/Application Support/Zotero/Profiles/*/prefs.js",
    "AppData/Roaming/Zotero/Zotero/Profiles/*/prefs.js",
)


Item = tuple[Located, list[Path]]  # a record with the files of its texts


def read_zotero(database: Path) -> tuple[list[Item], list[Path]]:
    """Return the records of a library with their texts, which may be missing, and texts without a record.

    The id of a record is Zotero's key. BadInputError if the file is no database of Zotero, or of a version with other
    tables.
    """
    with TemporaryDirectory(prefix="citerec-") as folder:
        copy = Path(folder, DATABASE)
        for ending in ("", *_JOURNALS):
            part = database.with_name(database.name + ending)
            if part.is_file():
                copy.with_name(copy.name + ending).write_bytes(part.read_bytes())
        try:
            with closing(sqlite3.connect(copy)) as connection:
                items = connection.execute(_ITEMS).fetchall()
                values: defaultdict[int, dict[str, str]] = defaultdict(dict)
                for item, name, value in connection.execute(_VALUES):
                    values[item][name] = f"{value}"
                people: defaultdict[int, list[str]] = defaultdict(list)
                for item, first, last in connection.execute(_CREATORS):
                    people[item].append(" ".join(filter(None, (first, last))))
                attached = connection.execute(_ATTACHMENTS).fetchall()
        except sqlite3.Error as error:
            fault = f"cannot be read as Zotero's database ({error}): it is damaged or of another version"
            raise BadInputError(
                database, f"{fault}; export the library as BibTeX with its files"
            ) from error
    bases = [*_linked_bases(), database.parent]
    files: defaultdict[int | None, list[Path]] = defaultdict(list)
    for item, key, path in attached:
        if found := _file(database.parent, bases, key, path):
            files[item].append(found)
    records = [
        (_paper(database, item, key, kind, values[item], people[item]), files[item])
        for item, key, kind in items
    ]
    return records, files[None]


def _paper(
    database: Path,
    line: int,
    key: str,
    kind: str,
    values: dict[str, str],
    people: list[str],
) -> Located:
    extra = values.get("extra", "")
    dois = dois_of(values.get("DOI", "")) or dois_of(extra)
    entry = Entry(
        title=values.get("title", ""),
        abstract=values.get("abstractNote", ""),
        year=first_year(values.get("date", "")),
        authors=tuple(people),
        venue=next((values[name] for name in _VENUES if values.get(name)), ""),
        dois=dois or arxiv_dois(f"{extra} {values.get('archiveID', '')}"),
    )
    stated = {
        name: values.get(name, "")
        for name in "url volume issue pages publisher".split()
    }
    try:
        paper = library_paper(
            Fields({}, database, line), [key], entry, type=kind, **stated
        )
    except BadRecordError as error:
        return Located(database, line, error)
    return Located(database, line, paper)


def _file(folder: Path, bases: list[Path], key: str, path: str) -> Path | None:
    """Return the file of an attachment: in `storage`, linked, or linked below a base folder; None if it is no text."""
    if not path.lower().endswith(TEXTS):
        return None
    if path.startswith("storage:"):
        return folder / "storage" / key / path.removeprefix("storage:")
    if path.startswith("attachments:"):
        name = path.removeprefix("attachments:")
        places = [base / name for base in bases]
        return next((place for place in places if place.is_file()), places[0])
    return folder / path


def _linked_bases() -> Iterator[Path]:
    """Yield the base folders of linked attachments that Zotero's profiles of this user state."""
    for pattern in _PROFILES:
        for profile in Path.home().glob(pattern):
            for base in _BASE.findall(profile.read_text(errors="replace")):
                yield Path(base.replace("\\\\", "\\"))
