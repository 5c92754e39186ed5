"""Writes recommendations as JSON, in the format of docs/reference/formats.md, for programs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from citerec.bibliography.keys import paper_doi
from citerec.errors import ConfigError
from citerec.export import Result
from citerec.types import BIBLIOGRAPHIC, Json, Paper

# additional fields, written on request
FIELDS = ("title", "year", "authors", "venue", *BIBLIOGRAPHIC, "retracted", "abstract")


def check_fields(names: Sequence[str], where: str = "") -> None:
    """Raise ConfigError if one of the additional fields does not exist; `where` precedes the message."""
    if unknown := [name for name in names if name not in FIELDS]:
        raise ConfigError(
            f"{where}no field {unknown[0]!r}; choose from {', '.join(FIELDS)}"
        )


def document(results: Iterable[Result], fields: Sequence[str] = ()) -> Iterator[str]:
    """Write all queries as one JSON list of `{"query": id, "results": [...]}`, one piece per element."""
    opening = "[\n"
    for line in lines(results, fields):
        yield opening + line.rstrip("\n")
        opening = ",\n"
    yield "[]\n" if opening == "[\n" else "\n]\n"


def lines(results: Iterable[Result], fields: Sequence[str] = ()) -> Iterator[str]:
    """Write one line per query: `{"query": id, "results": [...]}`, and `place` of a sentence."""
    for result in results:
        value = {
            "query": result.query.id,
            **place(result),
            "results": items(result, fields),
        }
        yield orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE).decode()


def place(result: Result) -> Json:
    """Return the sentence that was searched, its section and its sureness; nothing for a draft."""
    query = result.query
    sureness = result.sureness
    texts = {"sentence": query.context or query.title, "section": query.section}
    return texts | {"sureness": sureness} if query.is_sentence else {}


def items(result: Result, fields: Sequence[str] = ()) -> list[Json]:
    """Return one query's recommendations as JSON values, with the additional `fields` (of `FIELDS`)."""
    return [
        {
            "rank": item.rank,
            "id": item.paper.id,
            "title": item.paper.title,
            "year": item.paper.year,
            "score": float(item.score),
            "stages": {
                name: {"rank": hit.rank, "score": float(hit.score)}
                for name, hit in item.stages.items()
            },
            "probability": item.probability,
            "reasons": list(item.reasons),
            **({"passage": item.passage} if item.passage else {}),
            **{name: _field(item.paper, name) for name in fields},
        }
        for item in result.recommendations
    ]


def _field(paper: Paper, name: str) -> Any:
    value = paper_doi(paper) if name == "doi" else getattr(paper, name)
    return list(value) if isinstance(value, tuple) else value
