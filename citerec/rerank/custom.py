"""Rerankers that a user brings: an object that scores papers for a query works as a cross-encoder does."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.rerank.cascade import NAME, Cascade, CascadeReranker
from citerec.retrieve.fuse import min_max
from citerec.rules.known import Rows, Scores
from citerec.types import Paper, Progress, Query

DEPTH = 50  # candidates per query


class Reranker(Protocol):
    """Scores the best candidates of a query; it may have an attribute `depth`, how many (50 by default)."""

    def score(self, query: Query, papers: Sequence[Paper]) -> Sequence[float]:
        """Return one finite score per paper, in the order given; a higher one is better."""
        ...


class PaperScorer:
    """Reads the papers of an index for a reranker that takes papers."""

    def __init__(self, reranker: Reranker) -> None:
        """Wrap a reranker."""
        self._reranker = reranker

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the scores of the candidates of each query, float32.

        Raises:
            ConfigError: If the reranker does not return one finite number per paper.
        """
        scores: list[Scores] = []
        for query, of_query in zip(queries, rows, strict=True):
            papers = index.papers.at(of_query.tolist())
            found = self._reranker.score(query, [papers[row] for row in of_query.tolist()])
            values = np.asarray(found, np.float32)
            if values.shape != (len(of_query),) or not np.isfinite(values).all():
                raise ConfigError(
                    f"{name_of(self._reranker)}.score must return {len(of_query)} finite numbers, one per paper, "
                    f"got shape {values.shape}"
                )
            scores.append(values)
        return scores

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return the scores of one query scaled to [0, 1], for interpolation; they are no calibrated probabilities."""
        return min_max(scores).astype(np.float32)


def cascade_of(index: IndexFolder, reranker: Reranker, weight: float | None) -> Cascade:
    """Return a reranker as the only one of a cascade.

    Args:
        index: Whose papers it scores.
        reranker: The object.
        weight: Against the previous order, in [0, 1]; None for 1.

    Raises:
        ConfigError: If its depth is no whole number of at least 1.
    """
    depth = getattr(reranker, "depth", DEPTH)
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
        raise ConfigError(f"the depth of {name_of(reranker)} must be at least 1, got {depth!r}")
    only = CascadeReranker(
        name=NAME,
        shown=name_of(reranker),
        scorer=PaperScorer(reranker),
        depth=depth,
        weight=1.0 if weight is None else weight,
        settings={"device": "cpu", "weights": name_of(reranker)},
        has_probability=False,
    )
    return Cascade(index, (only,))


def name_of(part: object) -> str:
    """Return the name under which messages show an object that a user brings: its `name`, else its type."""
    return str(getattr(part, "name", "") or type(part).__name__)
