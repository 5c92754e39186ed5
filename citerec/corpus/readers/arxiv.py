"""The metadata snapshot of arXiv: JSON lines with `id title abstract authors_parsed update_date versions`.

Source: https://www.kaggle.com/datasets/Cornell-University/arxiv.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from citerec.bibliography.latex import to_text
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.library import NO_CITATIONS, library_paper
from citerec.types import Paper

NOTE = NO_CITATIONS.replace("this library", "the snapshot of arXiv")
_OLD = re.compile(r"[a-z-]+(?:\.[A-Za-z-]+)?/([0-9]{2})[0-9]{5}")  # ids until March 2007
_NEW = re.compile(r"([0-9]{2})[0-9]{2}\.[0-9]{4,5}")
_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")


def matches(keys: Mapping[str, object]) -> bool:
    """Whether records with these keys are of this format."""
    return "id" in keys and ("authors_parsed" in keys or {"versions", "update_date"} <= keys.keys())


def read(fields: Fields) -> Paper:
    """Turn one record into a paper; its year is that of its first version."""
    docid = fields.id()
    authors = fields.items("authors_parsed", _name)
    if not authors and isinstance(text := fields.record.get("authors"), str):
        authors = tuple(re.split(r",\s+|\s+and\s+", to_text(text)))
    return library_paper(
        fields,
        ids=[docid],
        title=to_text(fields.title()),
        abstract=to_text(fields.text("abstract")),
        year=_year(fields, docid),
        authors=authors,
        venue=to_text(fields.text("journal-ref")),
        doi=fields.text("doi").split(" ")[0],
        url=f"https://arxiv.org/abs/{docid}",
        type="preprint",
    )


def _name(parts: Any) -> str | None:
    """Turn `["Doe", "Jane", "Jr."]` into `Jane Doe Jr.`; further parts are affiliations."""
    if not isinstance(parts, list):
        return None
    words = [part for part in cast("list[Any]", parts)[:3] if isinstance(part, str)]
    last, first, suffix = (*words, "", "", "")[:3]
    return to_text(" ".join(filter(None, (first, last, suffix))))


def _year(fields: Fields, docid: str) -> int | None:
    """Return the year of the first version; else that in the id, which is its month; else that of the last update."""
    versions: Any = fields.record.get("versions")
    first: Any = cast("list[Any]", versions)[0] if isinstance(versions, list) and versions else {}
    created = cast("dict[str, Any]", first).get("created") if isinstance(first, dict) else ""
    if isinstance(created, str) and (match := _YEAR.search(created)):
        return int(match[0])
    if match := _OLD.fullmatch(docid) or _NEW.fullmatch(docid):
        short = int(match[1])
        return short + (1900 if short > 90 else 2000)
    match = _YEAR.search(fields.text("update_date"))
    return int(match[0]) if match else None
