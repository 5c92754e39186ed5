"""AMiner's DBLP citation network, v10 to v14: JSON lines, one huge JSON array, or MongoDB's export with `NumberInt(7)`.

Keys are missing freely in it. Source: https://www.aminer.org/citation.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from citerec.bibliography.keys import doi_of
from citerec.bibliography.markup import restored
from citerec.corpus.readers.fields import MAX_SHORT, Fields, number_text, page_range
from citerec.corpus.readers.files import Rows
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.errors import shown
from citerec.types import Paper

_OWN_KEYS = {"references", "n_citation", "indexed_abstract", "fos"}
_OTHER_KEYS = {
    "citations",
    "outCitations",
    "out_citations",
    "paperAbstract",
    "text",
    "abstract_inverted_index",
    "corpusid",
}
_SHELL = re.compile(  # a string, or a value in the notation of MongoDB's shell
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    rb'|Number(?:Int|Long|Decimal)\(\s*"?(?P<number>-?[0-9.]+)"?\s*\)'
    rb'|(?:ObjectId|ISODate|UUID)\(\s*(?P<text>"[^"\\]*")\s*\)'
    rb"|\b(?P<none>NaN|undefined)\b",
    re.DOTALL,
)


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format."""
    keys = first_keys(head, repair=json_of_shell)
    if keys.isdisjoint({"id", "_id"}) or "title" not in keys:
        return False
    return keys.isdisjoint(_OTHER_KEYS) and not keys.isdisjoint(_OWN_KEYS)


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file."""
    return json_records(stream, repair=json_of_shell)


def json_of_shell(record: bytes) -> bytes:
    """Return a record in the notation of MongoDB's shell as JSON; strings stay as they are."""
    return _SHELL.sub(
        lambda m: m["number"] or m["text"] or (b"null" if m["none"] else m[0]), record
    )


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    raw, year = fields.record, _plain(fields.record.get("year"))
    given = raw.get("id", raw.get("_id"))
    identified = {
        **raw,
        "title": "" if raw.get("title") is None else raw["title"],
        "year": None if year in (0, "0", -1) else year,
    }
    if given is not None:  # else the error names it as missing
        identified["id"] = number_text(_plain(given)) or given
    record = fields.of(identified)
    url = raw.get("url")
    urls = cast("list[Any]", url) if isinstance(url, list) else [url]
    return Paper(
        id=record.id(),
        title=record.title(),
        abstract=_abstract(record),
        year=record.year(),
        authors=tuple(_authors(record)),
        venue=_venue(record),
        citations=tuple(_references(record)),
        doi=doi_of(record.short("doi")),
        url=next((url for url in urls if isinstance(url, str)), "")[:MAX_SHORT],
        type=record.short("doc_type"),
        volume=record.short("volume"),
        issue=record.short("issue"),
        pages=page_range(record.short("page_start"), record.short("page_end")),
        publisher=record.short("publisher"),
    )


def _plain(value: Any) -> Any:
    """Return a number of MongoDB's extended JSON, such as `{"$numberInt": "7"}`, or an id, as the value itself."""
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        [(key, inside)] = cast("dict[str, Any]", value).items()
        return inside if key.startswith("$") else value
    return value


def _abstract(record: Fields) -> str:
    try:
        return record.text("abstract") or restored(record.inner("indexed_abstract").record)
    except ValueError as error:
        record.fail(str(error))


def _authors(record: Fields) -> Iterator[str]:
    for author in record.listed("authors"):
        is_object = isinstance(author, dict)
        name = record.of(cast("dict[str, Any]", author)).text("name") if is_object else author
        if name is not None and not isinstance(name, str):
            record.fail(f"'authors' must hold names, found {shown(author)}")
        if name and name.strip():
            yield " ".join(name.split())


def _venue(record: Fields) -> str:
    if not isinstance(record.record.get("venue"), dict):
        return record.text("venue")
    return next(filter(None, map(record.inner("venue").short, ("raw", "name_d", "name"))), "")


def _references(record: Fields) -> Iterator[str]:
    for reference in record.listed("references"):
        if docid := number_text(_plain(reference)):
            yield docid
        elif reference is not None and reference != "":
            record.fail(f"'references' must hold ids, found {shown(reference)}")
