"""Writes recommendations as RIS, for EndNote, Mendeley and other programs; uses rispy."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from citerec.bibliography.keys import paper_doi, split_name
from citerec.export.publication import Kind, kind_of, published
from citerec.export.result import Result, papers
from citerec.text import one_line, web_address
from citerec.types import Paper

_TYPES = {
    Kind.JOURNAL: "JOUR",
    Kind.CONFERENCE: "CPAPER",
    Kind.CHAPTER: "CHAP",
    Kind.BOOK: "BOOK",
    Kind.THESIS: "THES",
    Kind.REPORT: "RPRT",
    Kind.PREPRINT: "UNPB",
    Kind.UNKNOWN: "GEN",
}


def dump(results: Iterable[Result]) -> str:
    """Write each recommended paper once, without abstracts because of their licences."""
    cited_papers = papers(results)
    return write([paper.id for paper in cited_papers], cited_papers)


def write(keys: Iterable[str], cited_papers: Iterable[Paper]) -> str:
    """Return papers as records, a blank line after each but the last; `keys` are their ids in the file."""
    records = list(map(_record, keys, cited_papers))
    if not records:
        return ""
    rispy: Any = import_module("rispy")  # it has no types
    return rispy.dumps(records, implementation=_writer(rispy))


def _writer(rispy: Any) -> Any:
    """Return rispy's writer without the numbers that it writes before records: they are not part of RIS."""

    def set_header(self: Any, count: int) -> str:
        return ""

    return type("Writer", (rispy.RisWriter,), {"set_header": set_header})


def _record(key: str, paper: Paper) -> dict[str, Any]:
    kind = kind_of(paper)
    first, _, last = one_line(paper.pages).partition("-")
    venue, publisher = published(paper, kind)
    record = {
        "type_of_reference": _TYPES[kind],
        "id": one_line(key),
        "title": one_line(paper.title),
        "authors": [_author(name) for name in paper.authors if one_line(name)],
        "year": str(paper.year) if paper.year is not None else "",
        "journal_name" if kind is Kind.JOURNAL else "secondary_title": venue,
        "volume": one_line(paper.volume),
        "number": one_line(paper.issue),
        "start_page": first.strip(),
        "end_page": last.strip("- "),
        "publisher": publisher,
        "doi": paper_doi(paper),
        "urls": [url] if (url := web_address(paper.url)) else [],
    }
    return {name: value for name, value in record.items() if value}


def _author(name: str) -> str:
    parts = split_name(name)
    return ", ".join(part for part in (parts.family, parts.given, parts.suffix) if part)
