"""AMiner's DBLP citation network, v10 to v14: JSON lines, one huge JSON array, or MongoDB's export with `NumberInt(7)`.

Keys are missing freely in it. Source: https://www.aminer.org/citation.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from citerec.bibliography.doi import doi_of
from citerec.bibliography.inverted_index import restored
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.nested import inner, listed, number_text, page_range, short
from citerec.corpus.readers.streams import Rows
from citerec.errors import shown
from citerec.types import Paper

_OWN_KEYS = {"n_citation", "indexed_abstract", "fos"}
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
    if keys.isdisjoint({"id", "_id"}) or "title" not in keys or not keys.isdisjoint(_OTHER_KEYS):
        return False
    return "references" in keys or not keys.isdisjoint(_OWN_KEYS)


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
    identified = {
        **raw,
        "id": _id(raw.get("id")) or _id(raw.get("_id")) or raw.get("id", raw.get("_id")),
        "title": "" if raw.get("title") is None else raw["title"],
        "year": None if year in (0, "0", -1) else year,
    }
    if raw.keys().isdisjoint({"id", "_id"}):
        del identified["id"]  # which the error names
    record = Fields(identified, fields.path, fields.line)
    urls = listed(record, "url") if isinstance(raw.get("url"), list) else [raw.get("url")]
    return Paper(
        id=record.id(),
        title=record.title(),
        abstract=_abstract(record),
        year=record.year(),
        authors=tuple(_authors(record)),
        venue=_venue(record),
        citations=tuple(_references(record)),
        doi=doi_of(short(record, "doi")),
        url=next((url for url in urls if isinstance(url, str)), "")[:2_000],
        type=short(record, "doc_type"),
        volume=short(record, "volume"),
        issue=short(record, "issue"),
        pages=page_range(short(record, "page_start"), short(record, "page_end")),
        publisher=short(record, "publisher"),
    )


def _plain(value: Any) -> Any:
    """Return a number of MongoDB's extended JSON, such as `{"$numberInt": "7"}`, or an id, as the value itself."""
    if isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        [(key, inside)] = cast("dict[str, Any]", value).items()
        return inside if key.startswith("$") else value
    return value


def _id(value: Any) -> str:
    return number_text(_plain(value))


def _abstract(record: Fields) -> str:
    if text := record.text("abstract"):
        return text
    try:
        return restored(inner(record, "indexed_abstract").record)
    except ValueError as error:
        record.fail(str(error))


def _authors(record: Fields) -> Iterator[str]:
    for author in listed(record, "authors"):
        if isinstance(author, dict):
            name = Fields(cast("dict[str, Any]", author), record.path, record.line).text("name")
        elif author is None or isinstance(author, str):
            name = author or ""
        else:
            record.fail(f"'authors' must hold names, found {shown(author)}")
        if name := " ".join(name.split()):
            yield name


def _venue(record: Fields) -> str:
    if not isinstance(record.record.get("venue"), dict):
        return record.text("venue")
    venue = inner(record, "venue")
    return next((name for key in ("raw", "name_d", "name") if (name := short(venue, key))), "")


def _references(record: Fields) -> Iterator[str]:
    for reference in listed(record, "references"):
        if docid := _id(reference):
            yield docid
        elif reference is not None and reference != "":
            record.fail(f"'references' must hold ids, found {shown(reference)}")
