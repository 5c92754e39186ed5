"""Writes recommendations as JSON, in the format of docs/reference/formats.md, for programs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from citerec.bibliography.keys import paper_doi
from citerec.export import Result
from citerec.types import BIBLIOGRAPHIC, Paper, Recommendation

# additional fields, written on request
FIELDS = ("title", "year", "authors", "venue", *BIBLIOGRAPHIC, "abstract")


def dump_list(result: Result, fields: Sequence[str] = ()) -> str:
    """Write one query's recommendations as an indented JSON list, with the additional `fields` (of `FIELDS`)."""
    return _json(items(result, fields), orjson.OPT_INDENT_2)


def document(results: Iterable[Result], fields: Sequence[str] = ()) -> Iterator[str]:
    """Write all queries as one JSON list of `{"query": id, "results": [...]}`, one piece per element."""
    opening = "[\n"
    for line in lines(results, fields):
        yield opening + line.rstrip("\n")
        opening = ",\n"
    yield "[]\n" if opening == "[\n" else "\n]\n"


def lines(results: Iterable[Result], fields: Sequence[str] = ()) -> Iterator[str]:
    """Write one line per query: `{"query": id, "results": [...]}`."""
    return (_json({"query": r.query.id, "results": items(r, fields)}) for r in results)


def _json(value: Any, option: int = 0) -> str:
    return orjson.dumps(value, option=option | orjson.OPT_APPEND_NEWLINE).decode()


def items(result: Result, fields: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return one query's recommendations as JSON values, with the additional `fields` (of `FIELDS`)."""
    return [
        _item(recommendation) | {name: _field(recommendation.paper, name) for name in fields}
        for recommendation in result.recommendations
    ]


def _field(paper: Paper, name: str) -> Any:
    value = paper_doi(paper) if name == "doi" else getattr(paper, name)
    return list(value) if isinstance(value, tuple) else value


def _item(recommendation: Recommendation) -> dict[str, Any]:
    stages = recommendation.stages.items()
    return {
        "rank": recommendation.rank,
        "id": recommendation.paper.id,
        "title": recommendation.paper.title,
        "year": recommendation.paper.year,
        "score": float(recommendation.score),
        "stages": {s: {"rank": hit.rank, "score": float(hit.score)} for s, hit in stages},
        "probability": recommendation.probability,
        "reasons": list(recommendation.reasons),
    }
