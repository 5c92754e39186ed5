"""Writes recommendations as text, for people and for other programs.

Other packages add formats by entry points of the group `citerec.exporters`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from citerec.config import read_settings
from citerec.errors import ConfigError
from citerec.files.checksums import indented_json
from citerec.plugins import Plugins
from citerec.types import Query, Recommendation

__all__ = ["Exporter", "Format", "Result", "formats", "pieces"]

TREC_NAME = "citerec"  # the tag of a run


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
    """The recommendations for one query, best first; may be empty."""

    query: Query
    recommendations: tuple[Recommendation, ...]
    empty_reason: str = ""  # why there are no recommendations, for people
    # of the list for a sentence, in [0, 1]; None for a draft, or without a ranking model
    sureness: float | None = field(default=None, kw_only=True)


Exporter = Callable[[Iterable[Result]], Iterable[str]]
"""Writes recommendations in a format that another package adds.

It receives one result per query, each when its query has been ranked, and yields text: what is yielded is written at
once.
"""


def formats() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered exporters."""
    return tuple(dict.fromkeys([*Format, *Plugins.EXPORTERS.names]))


def pieces(
    results: Iterable[Result],
    format: str,
    *,
    batch: bool,
    color: bool = False,
    fields: Sequence[str] = (),
) -> Iterator[str]:
    """Write `results` as `format`, one piece per result as it arrives.

    A bibliography (BibTeX, RIS, CSL, DOIs) of a batch holds each paper once, so it is one piece.

    JSON is a list of papers for one query, and one of `{"query": id, "results": […]}` for a batch; `fields` are
    additional ones of each paper in JSON, from `jsonl.FIELDS`. `color` allows escape
    codes in tables. ConfigError if there is no such format; OutputError if two ids would be the same in a TREC run.
    """
    from citerec.export import jsonl

    match format:
        case Format.TABLE:
            from citerec.export.terminal import tables

            yield from tables(results, batch=batch, color=color)
        case Format.JSONL:
            yield from jsonl.lines(results, fields)
        case Format.JSON if batch:
            yield from jsonl.document(results, fields)
        case Format.JSON:
            for result in results:
                yield indented_json(jsonl.items(result, fields)).decode()
        case Format.TREC:
            from citerec.files.trec import trec_lists

            lists = (
                (
                    answer.query.id,
                    [item.paper.id for item in answer.recommendations],
                    [item.score for item in answer.recommendations],
                )
                for answer in results
            )
            yield from trec_lists(lists, TREC_NAME, "the run")
        case Format.BIBTEX | Format.RIS | Format.CSL | Format.DOI:
            from citerec.bibliography.styles import ReferenceConfig, references

            # each once, in the order of its first appearance
            papers = {
                item.paper.id: item.paper
                for result in results
                for item in result.recommendations
            }
            config = read_settings(ReferenceConfig, {"format": format})
            yield references([*papers.values()], config)
        case _:
            if format not in formats():
                raise ConfigError(
                    f"no format {format!r}; choose from {', '.join(formats())}"
                )
            exporter: Exporter = Plugins.EXPORTERS.load(format)
            yield from exporter(results)
