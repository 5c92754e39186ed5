"""Reads papers from JSON: one, a list, or one per line; with the keys of citerec, CSL or other corpora.

A shelf, `{"citerec": "shelf", "draft": {...}, "papers": [...], "rejected": [...]}`, is a list of the papers that were
taken, or of those that were rejected; as a query it is its draft. Hayagriva, the YAML of Typst, is a list, too.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from citerec.bibliography import hayagriva
from citerec.bibliography.entry import Entry, first_year, is_preprint
from citerec.bibliography.fields import Fields, number_text
from citerec.bibliography.keys import arxiv_dois, dois_of, plain_text
from citerec.errors import BadInputError, BadRecordError, shown
from citerec.types import Json

T = TypeVar("T")
_IDS = "id _id paperId paper_id corpusid"
_ADDRESSES = "doi DOI url URL id".split()
_REMARKS = "publisher genre note archive number".split()
_CSL = frozenset({"author", "issued", "container-title", "DOI"})


def read_entries(
    text: str, name: Path | str, *, strict: bool, part: str = "papers"
) -> list[Entry]:
    """Read the entries of a file: its one value, the elements of its list or of a part of a shelf, or one per line.

    BadInputError if it is not JSON, or, if strict, a value has a wrong type.
    """
    # only \n ends a line, not a U+2028 inside JSON
    lines = [
        (n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()
    ]
    first: Any = None
    with suppress(orjson.JSONDecodeError):
        first = orjson.loads(lines[0][1])
    if len(lines) > 1 and isinstance(first, dict):
        return [
            to_entry(_loads(line, name, line=n), Entry(line=n), name, strict=strict)
            for n, line in lines
        ]
    is_yaml = re.match(hayagriva.BEGIN, text)
    value = hayagriva.csl_items(text, name) if is_yaml else _loads(text, name)
    if isinstance(value, dict) and value.get("citerec") == "shelf":
        part = "draft" if strict else part  # of queries
        value = value.get(part)
        if not isinstance(value, dict if strict else list):
            raise BadInputError(name, f"this shelf has no {part}")
    if not isinstance(value, list):
        return [to_entry(value, Entry(line=lines[0][0]), name, strict=strict)]
    return [
        to_entry(item, Entry(label=f"item {n} of the list"), name, strict=strict)
        for n, item in enumerate(cast("list[Any]", value), start=1)
    ]


def _loads(text: str, name: Path | str, *, line: int | None = None) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInputError(
            name,
            f"this is not valid JSON: {error.msg} (column {error.colno})",
            line=line or error.lineno,
        ) from None


def to_entry(
    item: Any, place: Entry, name: Path | str, *, strict: bool = True
) -> Entry:
    """Return an item of the file `name` as an entry, at the line of `place`; unknown keys are ignored.

    If not strict, a value of a wrong type counts as missing, and a string is an id. BadInputError if a value has a
    wrong type.
    """
    if not isinstance(item, dict):
        if strict:
            raise place.error(
                name, f"expected an object with a title, found {shown(item)}"
            )
        stated = item.strip() if isinstance(item, str) else ""
        return replace(place, ids=(stated,) if stated else ())
    fields = Fields(cast("Json", item), Path(name), place.line or 0)
    is_csl = not _CSL.isdisjoint(fields.record)

    def first(keys: str, read: Callable[[str], T], default: T) -> T:
        """Read the first of some fields that has a value."""
        stated = (
            key for key in keys.split() if fields.record.get(key) not in (None, "")
        )
        try:
            return read(key) if (key := next(stated, "")) else default
        except BadRecordError as error:
            if strict:
                raise place.error(name, error.message) from None
            return default

    def text(key: str) -> str:
        if key == "abstract_inverted_index":
            return fields.restored(key)
        return plain_text(fields.text(key)) if is_csl else fields.text(key)

    def year(key: str) -> int | None:
        value = fields.get(key)
        if not isinstance(value, (dict, str) if key == "issued" else dict):
            found = fields.year(key)
            if found is not None and found < 1000:
                fields.fail(
                    f"{key!r} must be a year such as 2019, or null; found {found}"
                )
            return found
        return first_year(str(value))  # {"date-parts": [[2019, 5]]}: the year is first

    def authors(key: str) -> tuple[str, ...]:
        if isinstance(names := fields.get(key), str):  # as in the snapshot of arXiv
            return tuple(re.split(r";| and ", names))
        return fields.names(key)

    def body(key: str) -> str:
        """Read a text, or a list of its paragraphs."""
        if isinstance(fields.get(key), list):
            return "\n\n".join(fields.strings(key))
        return fields.text(key)

    title = first("title display_name", text, "")
    abstract = first("abstract paperAbstract text abstract_inverted_index", text, "")
    if not title.strip() and "text" in fields.record:
        # a BEIR query is a single text
        title = abstract
        abstract = ""
    addresses = _strings(fields, *_ADDRESSES)
    note = "".join(_strings(fields, "note"))
    remarks = _strings(fields, *_REMARKS)
    preprints = arxiv_dois(" ".join([*addresses, *remarks]))
    stated = "".join(_strings(fields, "type")).lower()
    # a preprint in CSL only
    kind = "" if stated == "article" and not is_csl else stated
    venue = first("venue container-title journal", fields.venue, "")
    unpublished = is_preprint(kind, venue, remarks, addresses)
    dois = (
        dois_of(" ".join(addresses))
        or dois_of(note)
        or (preprints if unpublished else ())
    )
    ids = (number_text(fields.get(key)) for key in f"{_IDS} doi DOI".split())
    return replace(
        place,
        ids=tuple(filter(None, (*ids, *dois))),
        title=title,
        abstract=abstract,
        year=first("year publication_year issued", year, None),
        authors=first("authors author authorships", authors, ()),
        venue=venue,
        key=first(
            _IDS, lambda key: number_text(fields.get(key)) or fields.text(key), ""
        ),
        has_citation_key=is_csl,
        dois=dois,
        preprints=preprints,
        context=first("context", text, ""),
        body=first("body", body, ""),
        note=note,
        # JSON other than CSL does not state what an item is
        is_preprint=bool(stated or venue) and unpublished,
    )


def _strings(fields: Fields, *keys: str) -> list[str]:
    """Return the values of `keys` that are non-empty strings."""
    return [
        value for key in keys if isinstance(value := fields.get(key), str) and value
    ]
