"""Writes recommendations as text, for people and for other programs; one module per format.

Other packages add formats by entry points of the group `citerec.exporters`.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from citerec import plugins
from citerec.errors import ConfigError
from citerec.export.result import Result

__all__ = ["Exporter", "Format", "Result", "dump", "formats", "pieces"]


class Exporter(Protocol):
    """Writes recommendations in a format that another package adds; a function is one."""

    def __call__(self, results: Iterable[Result], /) -> Iterable[str]:
        """Yield the text in pieces, such as one per result: what is yielded is written at once.

        Args:
            results: One per query, in the order of the queries; each comes when its query has been ranked.
        """
        ...


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


def formats() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered exporters."""
    own = {str(name) for name in Format}
    return (*Format, *(name for name in plugins.names(plugins.EXPORTERS) if name not in own))


def dump(
    results: Sequence[Result],
    format: str,
    *,
    batch: bool,
    width: int | None = None,
    color: bool = False,
    fields: Sequence[str] = (),
) -> str:
    """Write `results` as one text: all of `pieces` joined.

    Raises:
        ValueError: If `batch` is false and there is not exactly one result.
    """
    if not batch and len(results) != 1:
        raise ValueError(f"one query has one result, got {len(results)}")
    parts = pieces(
        results,
        format,
        batch=batch,
        width=width,
        color=color,
        fields=fields,
    )
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
            from citerec.export import table

            yield from table.tables(results, batch=batch, width=width, color=color)
        case Format.JSON:
            from citerec.export import jsonl

            if batch:
                yield from jsonl.document(results, fields)
            else:
                yield from (jsonl.dump_list(result, fields) for result in results)
        case Format.JSONL:
            from citerec.export import jsonl

            yield from jsonl.lines(results, fields)
        case Format.TREC:
            from citerec.export import trec

            yield from trec.blocks(results)
        case Format.BIBTEX | Format.RIS | Format.CSL | Format.DOI:
            yield _bibliography(results, format)
        case _:
            yield from _exporter(format)(results)


def _exporter(name: str) -> Exporter:
    if name not in formats():
        raise ConfigError(f"no format {name!r}; choose from {', '.join(formats())}")
    return plugins.load(plugins.EXPORTERS, name)


def _bibliography(results: Iterable[Result], format: str) -> str:
    """Write the recommended papers in a format of reference managers."""
    match format:
        case Format.BIBTEX:
            from citerec.export import bibtex

            return bibtex.dump(results)
        case Format.RIS:
            from citerec.export import ris

            return ris.dump(results)
        case Format.DOI:
            from citerec.export import dois

            return dois.dump(results)
        case _:
            from citerec.export import csl

            return csl.dump(results)
