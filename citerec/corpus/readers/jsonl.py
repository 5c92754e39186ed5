"""Corpora of one JSON object a paper: citerec's own, BEIR, Open Research, Citeomatic and arXiv's snapshot.

A dialect is a pair: whether a record with some keys is of it, and how a paper is made of it.
Sources: BEIR: Thakur et al., NeurIPS 2021. Open Research Corpus: Ammar et al., NAACL 2018. Citeomatic: Bhagavatula et
al., NAACL 2018. arXiv: https://www.kaggle.com/datasets/Cornell-University/arxiv.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from citerec.bibliography.keys import to_text
from citerec.corpus.readers.fields import NO_CITATIONS, Fields, library_paper
from citerec.corpus.readers.files import Rows
from citerec.corpus.readers.json_stream import json_records
from citerec.types import Paper

_OPENRESEARCH = {"paperAbstract", "outCitations", "inCitations", "s2Url", "keyPhrases"}
_CITEOMATIC = {"out_citations", "in_citations", "key_phrases", "out_citation_count"}
# Two digits of the year begin the ids of arXiv: `hep-th/9901001` until March 2007, `0704.0001` since.
_ARXIV_ID = re.compile(r"(?:[a-z-]+(?:\.[A-Za-z-]+)?/)?([0-9]{2})[0-9]{2}\.?[0-9]{3,5}")
_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A format of JSON objects, told by the keys of its records."""

    matches: Callable[[Mapping[str, object]], bool]
    read: Callable[[Fields], Paper]
    NOTE: str = ""

    def records(self, stream: BinaryIO) -> Rows:
        """Yield the records of one file: a line each, or an array."""
        return json_records(stream)


def _beir(fields: Fields) -> Paper:
    """Read a record of BEIR; years, authors and references are in `metadata`, if anywhere, as SciDocs has them."""
    more = fields.inner("metadata")
    return Paper(
        id=fields.id("_id"),
        title=fields.title() if "title" in fields.record else "",
        abstract=fields.text("text"),
        year=more.year(),
        authors=more.names("authors"),
        venue=more.text("venue"),
        citations=more.strings("references"),
        **more.bibliographic(),
    )


def _openresearch(fields: Fields) -> Paper:
    return fields.paper(
        abstract="paperAbstract",
        citations="outCitations",
        url="s2Url",
        volume="journalVolume",
        pages="journalPages",
    )


def _arxiv(fields: Fields) -> Paper:
    docid = fields.id()
    authors = fields.items("authors_parsed", _parsed_name)
    if not authors and isinstance(text := fields.record.get("authors"), str):
        authors = tuple(re.split(r",\s+|\s+and\s+", to_text(text)))
    return library_paper(
        fields,
        ids=[docid],
        title=to_text(fields.title()),
        abstract=to_text(fields.text("abstract")),
        year=_arxiv_year(fields, docid),
        authors=authors,
        venue=to_text(fields.text("journal-ref")),
        doi=fields.text("doi").split(" ")[0],
        url=f"https://arxiv.org/abs/{docid}",
        type="preprint",
    )


def _parsed_name(parts: Any) -> str | None:
    """Turn `["Doe", "Jane", "Jr."]` into `Jane Doe Jr.`; further parts are affiliations."""
    if not isinstance(parts, list):
        return None
    words = [part for part in cast("list[Any]", parts)[:3] if isinstance(part, str)]
    last, first, suffix = (*words, "", "", "")[:3]
    return to_text(" ".join(filter(None, (first, last, suffix))))


def _arxiv_year(fields: Fields, docid: str) -> int | None:
    """Return the year of the first version; else that in the id; else that of the last update."""
    created = next((version.text("created") for version in fields.objects("versions")), "")
    if match := _YEAR.search(created):
        return int(match[0])
    if match := _ARXIV_ID.fullmatch(docid):
        return int(match[1]) + (1900 if int(match[1]) > 90 else 2000)
    match = _YEAR.search(fields.text("update_date"))
    return int(match[0]) if match else None


# The first match wins: canonical is last, since other formats have its keys, too. Only canonical records have
# `citations`.
FORMATS: Mapping[str, Dialect] = {
    "arxiv": Dialect(
        lambda keys: (
            "id" in keys
            and ("authors_parsed" in keys or {"versions", "update_date"} <= keys.keys())
        ),
        _arxiv,
        NO_CITATIONS.replace("this library", "the snapshot of arXiv"),
    ),
    "openresearch": Dialect(
        lambda keys: (
            "id" in keys and "citations" not in keys and not _OPENRESEARCH.isdisjoint(keys)
        ),
        _openresearch,
    ),
    "citeomatic": Dialect(
        lambda keys: "id" in keys and "citations" not in keys and not _CITEOMATIC.isdisjoint(keys),
        lambda fields: fields.paper(citations="out_citations"),
    ),
    "beir": Dialect(lambda keys: "_id" in keys and "text" in keys, _beir),
    "canonical": Dialect(lambda keys: "id" in keys and "title" in keys, Fields.paper),
}
