"""Writes recommendations as CSL-JSON, for Zotero, Pandoc and other programs."""

from collections.abc import Iterable
from typing import Any

import orjson

from citerec.bibliography.keys import paper_doi, split_name
from citerec.export.publication import Kind, kind_of, published
from citerec.export.result import Result, papers
from citerec.text import one_line, web_address
from citerec.types import Paper

_TYPES = {
    Kind.JOURNAL: "article-journal",
    Kind.CONFERENCE: "paper-conference",
    Kind.CHAPTER: "chapter",
    Kind.BOOK: "book",
    Kind.THESIS: "thesis",
    Kind.REPORT: "report",
    Kind.PREPRINT: "article",  # CSL's type for a preprint
    Kind.UNKNOWN: "document",
}


def dump(results: Iterable[Result]) -> str:
    """Write each recommended paper once, as a list, without abstracts because of their licences."""
    items = [item(paper.id, paper) for paper in papers(results)]
    return orjson.dumps(items, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def item(key: str, paper: Paper) -> dict[str, Any]:
    """Return a paper as an item of a list; `key` is its id there."""
    kind = kind_of(paper)
    venue, publisher = published(paper, kind)
    if kind is Kind.PREPRINT and not publisher:  # CSL has the server as the publisher
        venue, publisher = "", venue
    fields = {
        "id": key,
        "type": _TYPES[kind],
        "title": one_line(paper.title),
        "author": [_author(name) for name in paper.authors if one_line(name)],
        "issued": {"date-parts": [[paper.year]]} if paper.year is not None else None,
        "container-title": venue,
        "volume": one_line(paper.volume),
        "issue": one_line(paper.issue),
        "page": one_line(paper.pages),
        "publisher": publisher,
        "DOI": paper_doi(paper),
        "URL": web_address(paper.url),
    }
    return {name: value for name, value in fields.items() if value}


def _author(name: str) -> dict[str, str]:
    parts = split_name(name)
    if parts.group:
        return {"literal": parts.family}
    author = {"family": parts.family, "given": parts.given, "suffix": parts.suffix}
    return {key: value for key, value in author.items() if value}
