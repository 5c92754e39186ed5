"""Recommendations as a TREC run: `qid Q0 docid rank score tag`."""

from collections.abc import Iterable, Iterator, Sequence

from citerec.export.result import Result
from citerec.run import trec_id

_TAG = "citerec"


def dump(results: Sequence[Result]) -> str:
    """Write one line a recommended paper, its ids as `trec_id` gives them.

    Evaluation tools sort a run again by its scores, as float32, and each breaks ties in a way of
    its own. So a score that does not fall below the one before it is written as the next float32
    below that one; every other score reads back as the same float32.
    """
    return "".join(_lines(result) for result in results)


def _lines(result: Result) -> str:
    query = trec_id(result.query.id)
    scores = _falling(r.score for r in result.recommendations)
    return "".join(
        f"{query} Q0 {trec_id(r.paper.id)} {r.rank} {score:.9g} {_TAG}\n"
        for r, score in zip(result.recommendations, scores, strict=True)
    )


def _falling(scores: Iterable[float]) -> Iterator[float]:
    """Yield `scores` as float32, each below the one before."""
    import numpy as np

    limit = np.finfo(np.float32).max
    above = np.float32(np.inf)
    for score in scores:
        below = np.nextafter(above, -limit)
        above = min(np.float32(np.clip(score, -limit, limit)), below)
        yield float(above)
