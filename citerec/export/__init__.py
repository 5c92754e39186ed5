"""Writes recommendations as text, for people and for other programs.

Other packages add formats by entry points of the group `citerec.exporters`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Protocol

from citerec import plugins
from citerec.errors import ConfigError
from citerec.types import Paper, Query, Recommendation

__all__ = ["Exporter", "Format", "Result", "dump", "formats", "pieces"]


class Format(StrEnum):
    """The values of `citerec recommend --format` that citerec itself defines."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    TREC = "trec"
    BIBTEX = "bibtex"
    RIS = "ris"
    CSL = "csl"
    DOI = "doi"


@dataclass(frozen=True, slots=True)
class Result:
    """The recommendations for one query, best first; may be empty.

    Raises:
        ValueError: If a score is not finite.
    """

    query: Query
    recommendations: tuple[Recommendation, ...]
    empty_reason: str = ""  # why there are no recommendations, for people

    def __post_init__(self) -> None:
        for recommendation in self.recommendations:
            hits = recommendation.stages.values()
            if not all(map(isfinite, (recommendation.score, *(hit.score for hit in hits)))):
                raise ValueError(f"scores must be finite; {recommendation.paper.id!r} has others")


class Exporter(Protocol):
    """Writes recommendations in a format that another package adds; a function is one."""

    def __call__(self, results: Iterable[Result], /) -> Iterable[str]:
        """Yield the text in pieces, such as one per result: what is yielded is written at once.

        Args:
            results: One per query, in the order of the queries; each comes when its query has been ranked.
        """
        ...


def formats() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered exporters."""
    return tuple(dict.fromkeys([*Format, *plugins.names(plugins.EXPORTERS)]))


def dump(
    results: Sequence[Result],
    format: str,
    *,
    batch: bool,
    width: int | None = None,
    color: bool = False,
    fields: Sequence[str] = (),
) -> str:
    """Write `results` as one text: all of `pieces` joined."""
    parts = pieces(results, format, batch=batch, width=width, color=color, fields=fields)
    return "".join(parts)


def pieces(
    results: Iterable[Result],
    format: str,
    *,
    batch: bool,
    width: int | None = None,
    color: bool = False,
    fields: Sequence[str] = (),
) -> Iterator[str]:
    """Write `results` as `format`, one piece per result as it arrives.

    A bibliography (BibTeX, RIS, CSL, DOIs) of a batch holds each paper once, so it is one piece.

    Args:
        results: One per query, in the order of the queries; exactly one if `batch` is false.
        format: One of `formats()`. JSON is a list of papers for one query, and one of `{"query": id, "results": […]}`
            for a batch.
        batch: Whether the results are for a batch of queries.
        width: Columns of a table; those of the terminal if not given.
        color: Whether a table may hold escape codes of a terminal.
        fields: Additional fields of each paper in JSON, from `jsonl.FIELDS`.

    Yields:
        Text that ends with a line feed; nothing where a format has no text for the results.

    Raises:
        ConfigError: If there is no such format.
        OutputError: If two ids would be the same in a TREC run.
    """
    match format:
        case Format.TABLE:
            from citerec.export.terminal import tables

            yield from tables(results, batch=batch, width=width, color=color)
        case Format.JSON | Format.JSONL:
            from citerec.export import jsonl

            if format == Format.JSONL:
                yield from jsonl.lines(results, fields)
            elif batch:
                yield from jsonl.document(results, fields)
            else:
                yield from (jsonl.dump_list(result, fields) for result in results)
        case Format.TREC:
            from citerec.export.trec import blocks

            yield from blocks(results)
        case Format.BIBTEX | Format.RIS | Format.CSL | Format.DOI:
            yield _bibliography(results, format)
        case _:
            if format not in formats():
                raise ConfigError(f"no format {format!r}; choose from {', '.join(formats())}")
            exporter: Exporter = plugins.load(plugins.EXPORTERS, format)
            yield from exporter(results)


def _bibliography(results: Iterable[Result], format: str) -> str:
    """Write each recommended paper once, in the order of its first appearance."""
    from citerec.bibliography import write
    from citerec.bibliography.keys import paper_doi

    by_id: dict[str, Paper] = {}
    for result in results:
        for recommendation in result.recommendations:
            by_id.setdefault(recommendation.paper.id, recommendation.paper)
    papers = list(by_id.values())
    match format:
        case Format.BIBTEX:
            return write.bibtex(papers)
        case Format.RIS:
            return write.ris(papers)
        case Format.CSL:
            return write.csl(papers)
        case _:  # papers without a DOI are left out
            dois = dict.fromkeys(filter(None, map(paper_doi, papers)))
            return "".join(f"{doi}\n" for doi in dois)
