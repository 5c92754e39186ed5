"""A cross-encoder that scores no pair twice: the systems of an evaluation share most of their candidates."""

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from citerec.folder import IndexFolder
from citerec.rerank.cascade import Scorer
from citerec.rerank.rerank import Rows, Scores
from citerec.types import Progress, Query


class CachedScorer:
    """Scores pairs as another scorer does, and remembers them by query and row."""

    def __init__(self, scorer: Scorer) -> None:
        """Begin without any."""
        self._scorer = scorer
        self._known: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._scored, self._seconds, self._recalled = 0, 0.0, 0

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the score of each candidate of each query; only those not yet known are scored."""
        pairs = [*zip(queries, rows, strict=True)]
        new = [(query, self._unknown(query, mine)) for query, mine in pairs]
        new = [(query, mine) for query, mine in new if len(mine)]
        if new:
            start = perf_counter()
            fresh = self._scorer.score(index, [q for q, _ in new], [r for _, r in new], progress)
            self._seconds += perf_counter() - start
            for (query, mine), scores in zip(new, fresh, strict=True):
                self._known[query.id].update(zip(mine.tolist(), scores.tolist(), strict=True))
        scored = sum(len(mine) for _, mine in new)
        self._scored += scored
        self._recalled += sum(map(len, rows)) - scored
        return [self._recall(query, mine) for query, mine in pairs]

    def probability(self, scores: Scores) -> Scores:
        """Return the calibrated probability of each score."""
        return self._scorer.probability(scores)

    @property
    def spared(self) -> float:
        """The seconds that it would have taken to score again what was remembered, so far."""
        return self._recalled * self._seconds / self._scored if self._scored else 0.0

    def _unknown(self, query: Query, rows: Rows) -> Rows:
        known = self._known[query.id]
        return np.array([row for row in rows.tolist() if row not in known], np.int32)

    def _recall(self, query: Query, rows: Rows) -> Scores:
        known = self._known[query.id]
        return np.array([known[row] for row in rows.tolist()], np.float32)
