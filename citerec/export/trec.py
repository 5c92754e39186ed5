"""Writes recommendations as a TREC run: `qid Q0 docid rank score tag`."""

from collections.abc import Iterable, Iterator
from itertools import tee

from citerec.export import Result
from citerec.run import trec_ids
from citerec.types import falling

_TAG = "citerec"
_THE_RUN = "the run"  # its name in error messages: the path is not known here


def blocks(results: Iterable[Result]) -> Iterator[str]:
    """Write one line per recommended paper, with ids as `trec_id` writes them; one block per query.

    Evaluation tools sort a run again by its scores as float32, and each breaks ties in its own way. So a score that is
    not below the previous one is written as the next float32 below it; every other score reads back as the same
    float32.

    Raises:
        OutputError: If two queries, or two papers of one query, would have the same id.
    """
    for_ids, for_lines = tee(results)  # read in parallel, so no result is buffered
    queries = trec_ids((result.query.id for result in for_ids), _THE_RUN)
    return (_lines(query, result) for query, result in zip(queries, for_lines, strict=True))


def _lines(query: str, result: Result) -> str:
    papers = trec_ids((r.paper.id for r in result.recommendations), _THE_RUN)
    scores = falling([r.score for r in result.recommendations]).tolist()
    return "".join(
        f"{query} Q0 {paper} {r.rank} {score:.9g} {_TAG}\n"
        for paper, r, score in zip(papers, result.recommendations, scores, strict=True)
    )
