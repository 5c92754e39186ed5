"""Recommendations as RIS, for EndNote, Mendeley and their like; written by rispy."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from citerec.export.clean import one_line
from citerec.export.names import split_name
from citerec.export.result import Result, papers
from citerec.query.doi import doi_of
from citerec.types import Paper


def dump(results: Iterable[Result]) -> str:
    """Write each recommended paper once; without abstracts, for their licences."""
    records = [_record(paper) for paper in papers(results)]
    if not records:
        return ""
    rispy: Any = import_module("rispy")  # it has no types
    return rispy.dumps(records, implementation=_writer(rispy))


def _writer(rispy: Any) -> Any:
    """Return rispy's writer without the numbers that it puts before records: they are no RIS."""

    def set_header(self: Any, count: int) -> str:
        return ""

    return type("Writer", (rispy.RisWriter,), {"set_header": set_header})


def _record(paper: Paper) -> dict[str, Any]:
    record = {
        "type_of_reference": "JOUR" if paper.venue else "GEN",
        "id": one_line(paper.id),
        "title": one_line(paper.title),
        "authors": [_author(name) for name in paper.authors if one_line(name)],
        "year": str(paper.year) if paper.year is not None else "",
        "journal_name": one_line(paper.venue),
        "doi": doi_of(paper.id),
    }
    return {key: value for key, value in record.items() if value}


def _author(name: str) -> str:
    parts = split_name(name)
    return ", ".join(part for part in (parts.family, parts.given, parts.suffix) if part)
