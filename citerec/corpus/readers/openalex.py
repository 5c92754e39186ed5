"""OpenAlex works: JSON lines, parts of its snapshot in folders, or pages of its API.

In a folder `updated_date=...` of a snapshot, a record replaces those of the same work in folders of earlier dates.
Works that were merged into others are left out, and references to them follow (`merged_ids/works/*.csv.gz`).
Retracted works and paratext, such as covers, are left out, too. Source: https://developers.openalex.org.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from citerec.bibliography.doi import doi_of
from citerec.bibliography.inverted_index import restored
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.markup import plain_text
from citerec.corpus.readers.nested import inner, listed, objects, page_range, short
from citerec.corpus.readers.numbers import NumberMap, NumberSet
from citerec.corpus.readers.streams import Broken, Located, Rows, located, read_file
from citerec.errors import shown
from citerec.inputs import read_rows
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

_LIST = re.compile(rb'(?<!\\)"results"\s*:\s*\[')
_ENTITY = re.compile(rb'"id"\s*:\s*"(?:https?://openalex\.org/)?[A-Z][0-9]+"')
_WORK = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?[Ww]([0-9]{1,18})")
_OWN_KEYS = {"abstract_inverted_index", "referenced_works", "authorships", "works_count"}
_DATE = re.compile(r"updated_date=([0-9]{4}-[0-9]{2}-[0-9]{2})")
_LEFT_OUT = {
    "merged": "that were merged into others",
    "replaced": "that records of a later updated_date replace",
    "paratext": "that are paratext, such as covers",
    "retracted": "that were retracted",
}


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format; files of authors and the like are, too, and are left out by `papers`."""
    keys = first_keys(head, _LIST)
    return "id" in keys and not keys.isdisjoint(_OWN_KEYS) and _ENTITY.search(head) is not None


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file."""
    return json_records(stream, _LIST)


def papers(source: "Source", read: Callable[[int], None], log: Log) -> Iterator[Located]:
    """Yield the works of a file, or of a snapshot: those of the latest `updated_date` first."""
    files = sorted(_files_of_works(source.files), key=_date, reverse=True)
    merged = _merged(source)
    later, counts = NumberSet(), Counter[str]()
    to_paper = partial(_read, merged=merged)
    for date, group in groupby(files, key=_date):
        own = NumberSet()
        for file in sorted(group):
            for line, row in read_file(file, records, read):
                work = 0 if isinstance(row, Broken) else _number(row.get("id"))
                if not isinstance(row, Broken) and (why := _left_out(row, work, later, merged)):
                    counts[why] += 1
                    continue
                if date:
                    own.add(work)
                yield located(file, line, row, to_paper)
        later.update(own)
    for why in sorted(counts):
        log(f"left out {counts[why]:,} works {_LEFT_OUT[why]}")


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return _read(fields)


def _read(fields: Fields, merged: "NumberMap | None" = None) -> Paper:
    biblio, location = inner(fields, "biblio"), inner(fields, "primary_location")
    venue = inner(location, "source")
    title = fields.record.get("title") or fields.record.get("display_name")
    checked = Fields(
        {"id": _id(fields), "title": "" if title is None else title}, fields.path, fields.line
    )
    return Paper(
        id=checked.id(),
        title=plain_text(checked.title()),
        abstract=_abstract(fields),
        year=fields.year("publication_year"),
        authors=tuple(_authors(fields)),
        venue=short(venue, "display_name") or short(inner(fields, "host_venue"), "display_name"),
        citations=tuple(_references(fields, merged)),
        doi=doi_of(short(fields, "doi")),
        url=short(location, "landing_page_url"),
        type=short(fields, "type"),
        volume=short(biblio, "volume"),
        issue=short(biblio, "issue"),
        pages=page_range(short(biblio, "first_page"), short(biblio, "last_page")),
        publisher=short(venue, "host_organization_name"),
    )


def _id(fields: Fields) -> str:
    """Return the short id, such as W2741809807, as API clients use it."""
    value = fields.id()
    if not (work := _number(value)):
        fields.fail(
            f"'id' must be that of a work, such as https://openalex.org/W1; found {value!r}"
        )
    return f"W{work}"


def _number(value: object) -> int:
    """Return the number of a work's id; 0 if it is not one."""
    match = _WORK.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) if match else 0


def _abstract(fields: Fields) -> str:
    index: Any = fields.record.get("abstract_inverted_index")
    if isinstance(index, str):  # of older snapshots
        try:
            index = orjson.loads(index or "{}")
        except orjson.JSONDecodeError:
            fields.fail("'abstract_inverted_index' is a string that is not JSON")
    if index is not None and not isinstance(index, dict):
        fields.fail(f"'abstract_inverted_index' must be an object or null, found {shown(index)}")
    try:
        text = restored(index)
    except ValueError as error:
        fields.fail(str(error))
    return Fields({"text": plain_text(text)}, fields.path, fields.line).text("text")


def _authors(fields: Fields) -> Iterator[str]:
    for authorship in objects(fields, "authorships"):
        name = short(inner(authorship, "author"), "display_name")
        if name := name or short(authorship, "raw_author_name"):
            yield name


def _references(fields: Fields, merged: "NumberMap | None") -> Iterator[str]:
    for reference in listed(fields, "referenced_works"):
        if work := _number(reference):
            yield f"W{merged.get(work, work) if merged else work}"
        elif reference is not None:
            fields.fail(f"'referenced_works' must hold ids of works, found {shown(reference)}")


def _left_out(row: Mapping[str, Any], work: int, later: NumberSet, merged: NumberMap) -> str | None:
    if work and work in later:
        return "replaced"
    if work and merged.get(work, work) != work:
        return "merged"
    if row.get("is_paratext") is True or row.get("type") == "paratext":
        return "paratext"
    return "retracted" if row.get("is_retracted") is True else None


def _files_of_works(files: tuple[Path, ...]) -> list[Path]:
    """Return the files in folders named works, if there are any: a snapshot has further folders."""
    files = tuple(file for file in files if not file.name.startswith("manifest"))
    return [file for file in files if "works" in file.parts[:-1]] or list(files)


def _date(file: Path) -> str:
    match = _DATE.search(str(file.parent))
    return match[1] if match else ""


def _merged(source: "Source") -> NumberMap:
    """Return into which works others were merged, by the tables of a snapshot."""
    pairs: list[tuple[int, int]] = []
    merged = NumberMap()
    for file in source.ignored:
        if file.parts[-3:-1] == ("merged_ids", "works") and ".csv" in file.suffixes:
            for _, row in read_rows(file, "a table of merged ids"):
                cells = row.decode(errors="replace").strip().split(",")
                ids = [_number(cell.strip('" ')) for cell in cells[-2:]]
                if len(ids) == 2 and all(ids):
                    pairs.append((ids[0], ids[1]))
            merged.update(pairs)
            pairs.clear()
    merged.follow()
    return merged
