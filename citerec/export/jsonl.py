"""Recommendations as JSON: the form that the README promises, for programs."""

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from citerec.export.result import Result
from citerec.types import Recommendation


def dump_list(result: Result) -> str:
    """Write one query's recommendations as a JSON list, indented."""
    return _json(_items(result), orjson.OPT_INDENT_2)


def lines(results: Iterable[Result]) -> Iterator[str]:
    """Write one line a query: `{"query": id, "results": […]}`."""
    return (_json({"query": r.query.id, "results": _items(r)}) for r in results)


def _json(value: Any, option: int = 0) -> str:
    return orjson.dumps(value, option=option | orjson.OPT_APPEND_NEWLINE).decode()


def _items(result: Result) -> list[dict[str, Any]]:
    return [_item(recommendation) for recommendation in result.recommendations]


def _item(recommendation: Recommendation) -> dict[str, Any]:
    stages = recommendation.stages.items()
    return {
        "rank": recommendation.rank,
        "id": recommendation.paper.id,
        "title": recommendation.paper.title,
        "year": recommendation.paper.year,
        "score": float(recommendation.score),
        "stages": {s: {"rank": hit.rank, "score": float(hit.score)} for s, hit in stages},
        "reasons": recommendation.reasons,
    }
