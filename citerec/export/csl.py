"""Recommendations as CSL-JSON, for Zotero, Pandoc and their like."""

from collections.abc import Iterable
from typing import Any

import orjson

from citerec.export.clean import one_line
from citerec.export.names import split_name
from citerec.export.result import Result, papers
from citerec.query.doi import doi_of
from citerec.types import Paper


def dump(results: Iterable[Result]) -> str:
    """Write each recommended paper once, in a list; without abstracts, for their licences."""
    items = [_item(paper) for paper in papers(results)]
    return orjson.dumps(items, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _item(paper: Paper) -> dict[str, Any]:
    item = {
        "id": paper.id,
        "type": "article-journal" if paper.venue else "article",
        "title": one_line(paper.title),
        "author": [_author(name) for name in paper.authors if one_line(name)],
        "issued": {"date-parts": [[paper.year]]} if paper.year is not None else None,
        "container-title": one_line(paper.venue),
        "DOI": doi_of(paper.id),
    }
    return {key: value for key, value in item.items() if value}


def _author(name: str) -> dict[str, str]:
    parts = split_name(name)
    if parts.group:
        return {"literal": parts.family}
    author = {"family": parts.family, "given": parts.given, "suffix": parts.suffix}
    return {key: value for key, value in author.items() if value}
