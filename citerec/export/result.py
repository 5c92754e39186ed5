"""The input of all export formats: a query with its recommendations."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from citerec.types import Paper, Query, Recommendation


@dataclass(frozen=True, slots=True)
class Result:
    """The recommendations for one query, best first; may be empty.

    Raises:
        ValueError: If a score is not finite.
    """

    query: Query
    recommendations: tuple[Recommendation, ...]
    why_nothing: str = ""  # why there are no recommendations, for people

    def __post_init__(self) -> None:
        for recommendation in self.recommendations:
            hits = recommendation.stages.values()
            if not all(map(isfinite, (recommendation.score, *(hit.score for hit in hits)))):
                raise ValueError(f"scores must be finite; {recommendation.paper.id!r} has others")


def papers(results: Iterable[Result]) -> list[Paper]:
    """Return every recommended paper once, in the order of its first appearance."""
    by_id: dict[str, Paper] = {}
    for result in results:
        for recommendation in result.recommendations:
            by_id.setdefault(recommendation.paper.id, recommendation.paper)
    return list(by_id.values())
