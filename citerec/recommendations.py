"""From the candidate set of a query to what is shown: papers with ranks, scores and probabilities."""

from collections.abc import Mapping

from citerec.fuse import stage_hits
from citerec.types import CandidateSet, Hits, Paper, Recommendation, StageHit


def as_recommendations(
    candidates: CandidateSet, papers: Mapping[int, Paper]
) -> tuple[Recommendation, ...]:
    """Return candidates as recommendations, in their order; `papers` are theirs, by row."""
    rows = candidates.rows
    places = {name: _places(candidates.stages[name], candidates) for name in candidates.stages}
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
                if of_stage[rank - 1][0]  # 0 where the stage did not find it
            },
        )
        for rank, (row, score, probability) in enumerate(scored, start=1)
    )


def _places(hits: Hits, candidates: CandidateSet) -> list[tuple[int, float]]:
    """Return rank and score that a stage gave each paper; rank 0 where it did not find one."""
    ranks, scores = stage_hits(hits, candidates.rows)
    return list(zip(ranks.tolist(), scores.tolist(), strict=True))
