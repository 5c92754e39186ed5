"""OpenAlex works: JSON lines, parts of its snapshot in folders, or pages of its API.

Retracted works and paratext, such as covers, are left out. The folders `updated_date=...` of a snapshot are read from
the latest to the first, so that `--skip-bad` keeps the latest record of a work. Source: https://developers.openalex.org.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from citerec.bibliography.keys import doi_of
from citerec.bibliography.markup import plain_text, restored
from citerec.corpus.readers.fields import Fields, page_range
from citerec.corpus.readers.files import Broken, Located, Rows, located, read_file
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.errors import shown
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

_LIST = re.compile(rb'(?<!\\)"results"\s*:\s*\[')
_ENTITY = re.compile(rb'"id"\s*:\s*"(?:https?://openalex\.org/)?[A-Z][0-9]+"')
_WORK = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?[Ww]([0-9]{1,18})")
_OWN_KEYS = {"abstract_inverted_index", "referenced_works", "authorships", "works_count"}
_DATE = re.compile(r"updated_date=([0-9]{4}-[0-9]{2}-[0-9]{2})")


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format; files of authors and the like are, too, and are left out by `papers`."""
    keys = first_keys(head, _LIST)
    return "id" in keys and not keys.isdisjoint(_OWN_KEYS) and _ENTITY.search(head) is not None


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file."""
    return json_records(stream, _LIST)


def papers(
    source: "Source", read_bytes: Callable[[int], None], log: Log, scratch: Path | None
) -> Iterator[Located]:
    """Yield the works of a file, or of a snapshot: those of the latest `updated_date` first."""
    # a snapshot has folders of authors and the like, too
    works = [file for file in source.files if "works" in file.parts[:-1]] or source.files
    counts = Counter[str]()
    for file in sorted(works, key=_date, reverse=True):
        for line, row in read_file(file, records, read_bytes):
            if not isinstance(row, Broken) and row.get("is_retracted") is True:
                counts["that were retracted"] += 1
            elif not isinstance(row, Broken) and (
                row.get("is_paratext") is True or row.get("type") == "paratext"
            ):
                counts["that are paratext, such as covers"] += 1
            else:
                yield located(file, line, row, read)
    for why in sorted(counts):
        log(f"left out {counts[why]:,} works {why}")


def _date(file: Path) -> str:
    match = _DATE.search(str(file.parent))
    return match[1] if match else ""


def read(fields: Fields) -> Paper:
    """Turn one record into a paper; its id is the short one, such as W2741809807, as API clients use it."""
    biblio, location = fields.inner("biblio"), fields.inner("primary_location")
    venue = location.inner("source")
    docid = _work(fields.id())
    if not docid:
        fields.fail(
            f"'id' must be that of a work, such as https://openalex.org/W1; found {fields.id()!r}"
        )
    title = fields.record.get("title") or fields.record.get("display_name")
    return Paper(
        id=docid,
        title=plain_text(fields.of({"title": "" if title is None else title}).title()),
        abstract=_abstract(fields),
        year=fields.year("publication_year"),
        authors=tuple(
            name
            for authorship in fields.objects("authorships")
            if (name := authorship.inner("author").short("display_name"))
        ),
        venue=venue.short("display_name"),
        citations=tuple(_references(fields)),
        doi=doi_of(fields.short("doi")),
        url=location.short("landing_page_url"),
        type=fields.short("type"),
        volume=biblio.short("volume"),
        issue=biblio.short("issue"),
        pages=page_range(biblio.short("first_page"), biblio.short("last_page")),
        publisher=venue.short("host_organization_name"),
    )


def _work(value: object) -> str:
    """Return the short id of a work; empty if it is not one."""
    match = _WORK.fullmatch(value.strip()) if isinstance(value, str) else None
    return f"W{int(match[1])}" if match else ""


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
        return fields.of({"text": plain_text(restored(index))}).text("text")
    except ValueError as error:
        fields.fail(str(error))


def _references(fields: Fields) -> Iterator[str]:
    for reference in fields.listed("referenced_works"):
        if work := _work(reference):
            yield work
        elif reference is not None:
            fields.fail(f"'referenced_works' must hold ids of works, found {shown(reference)}")
