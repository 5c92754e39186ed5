"""Recommendations as text, for people and for the programs they use; one module per format.

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
    """The formats of citerec itself that `citerec recommend --format` takes."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    TREC = "trec"
    BIBTEX = "bibtex"
    RIS = "ris"
    CSL = "csl"


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
    """Write `results` as one text: all of `pieces`; there must be one result if there is no batch."""
    if not batch and len(results) != 1:
        raise ValueError(f"one query has one result, got {len(results)}")
    return "".join(pieces(results, format, batch=batch, width=width, color=color, fields=fields))


def pieces(
    results: Iterable[Result],
    format: str,
    *,
    batch: bool,
    width: int | None = None,
    color: bool = False,
    fields: Sequence[str] = (),
) -> Iterator[str]:
    """Write `results` as `format`, a piece for each as it comes.

    A bibliography (BibTeX, RIS, CSL) of a batch holds each paper once, so it comes in one piece.

    Args:
        results: One per query, in the order of the queries; exactly one where `batch` is false.
        format: One of `formats()`. JSON is a list of papers for one query, and one of `{"query": id, "results": […]}`
            for a batch.
        batch: Whether there were many queries.
        width: Columns of a table; those of the terminal if not given.
        color: Whether a table may hold escape codes of a terminal.
        fields: What of each paper JSON holds besides the usual, of `jsonl.FIELDS`.

    Yields:
        Text, ended by a line feed; none where a format has nothing to say.

    Raises:
        ConfigError: If there is no such format.
        OutputError: If a TREC run would hold one id for two.
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
        case Format.BIBTEX | Format.RIS | Format.CSL:
            yield _bibliography(results, format)
        case _:
            yield from _exporter(format)(results)


def _exporter(name: str) -> Exporter:
    if name not in formats():
        raise ConfigError(f"no format {name!r}; there are: {', '.join(formats())}")
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
        case _:
            from citerec.export import csl

            return csl.dump(results)
