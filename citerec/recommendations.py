"""Converts the candidate set of a query to recommendations: papers with ranks, scores and probabilities."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from citerec.corpus.papers import Papers
from citerec.retrieve.fuse import ranks_and_scores
from citerec.types import CandidateSet, Hits, Paper, Recommendation, StageHit

READ_AT_ONCE = 32  # queries of a batch whose papers are in memory together


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The recommendations for one query of a batch."""

    items: tuple[Recommendation, ...]
    # what the user should know, such as that the draft is in the corpus
    notices: tuple[str, ...] = ()


def with_papers(
    papers: Papers, candidates: Sequence[CandidateSet]
) -> Iterator[tuple[Recommendation, ...]]:
    """Yield the recommendations for each query; each paper is read once for all queries of a part."""
    for start in range(0, len(candidates), READ_AT_ONCE):
        part = candidates[start : start + READ_AT_ONCE]
        by_row = papers.at(row for c in part for row in c.rows.tolist())
        yield from (as_recommendations(c, by_row) for c in part)


def as_recommendations(
    candidates: CandidateSet, papers: Mapping[int, Paper]
) -> tuple[Recommendation, ...]:
    """Return candidates as recommendations, in their order; `papers` holds each candidate by row."""
    rows = candidates.rows
    places = {
        name: _places(candidates.hits_by_source[name], candidates)
        for name in candidates.hits_by_source
    }
    values: list[float | None] = [None] * len(rows)
    if candidates.probabilities:
        calibrated = _places(candidates.probabilities, candidates)
        values = [value if rank else None for rank, value in calibrated]
    scored = zip(rows.tolist(), candidates.hits.scores.tolist(), values, strict=True)
    return tuple(
        Recommendation(
            rank=rank,
            paper=papers[row],
            score=score,
            probability=probability,
            stages={
                name: StageHit(*of_stage[rank - 1])
                for name, of_stage in places.items()
                if of_stage[rank - 1][0]  # rank 0 if the stage did not find it
            },
        )
        for rank, (row, score, probability) in enumerate(scored, start=1)
    )


def _places(hits: Hits, candidates: CandidateSet) -> list[tuple[int, float]]:
    """Return the rank and the score of each candidate in the hits of a stage; rank 0 if it is not a hit."""
    ranks, scores = ranks_and_scores(hits, candidates.rows)
    return list(zip(ranks.tolist(), scores.tolist(), strict=True))
