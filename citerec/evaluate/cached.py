"""Retrievers and scorers with caches, because the systems of an evaluation share most searches and pairs."""

from collections import defaultdict
from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

import numpy as np

from citerec.folder import IndexFolder
from citerec.rerank.reranker import Scorer
from citerec.retrieve.retriever import Retriever
from citerec.rules.known import Rows, Scores
from citerec.types import Eligibility, Hits, Progress, Query


class Cached(Protocol):
    """A stage that caches its results."""

    @property
    def saved(self) -> float:
        """The computing time of the results returned from the cache, in seconds."""
        ...


class CachedRetriever:
    """A retriever that caches the hits of another: the same queries are searched once."""

    def __init__(self, retriever: Retriever) -> None:
        """Begin with an empty cache."""
        self.retriever = retriever
        self._hits: dict[tuple[tuple[str, ...], int], tuple[list[Hits], float]] = {}
        self.saved = 0.0

    @property
    def name(self) -> str:
        """The name of the retriever."""
        return self.retriever.name

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return one `Hits` per query. The cache assumes the same rules for the same query ids."""
        key = tuple(query.id for query in queries), k
        if key in self._hits:
            self.saved += self._hits[key][1]
        else:
            start = perf_counter()
            hits = self.retriever.retrieve(queries, eligible, k)
            self._hits[key] = hits, perf_counter() - start
        return self._hits[key][0]


class CachedScorer:
    """A cross-encoder with a cache: each pair of query and row is scored once."""

    def __init__(self, scorer: Scorer) -> None:
        """Begin with an empty cache."""
        self._scorer = scorer
        self._known: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._scored, self._seconds, self._cached = 0, 0.0, 0

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        """Return the score of each candidate of each query; only pairs outside the cache are computed."""
        pairs = [*zip(queries, rows, strict=True)]
        new = [(query, self._unknown(query, candidates)) for query, candidates in pairs]
        new = [(query, missing) for query, missing in new if len(missing)]
        if new:
            start = perf_counter()
            fresh = self._scorer.score(index, [q for q, _ in new], [r for _, r in new], progress)
            self._seconds += perf_counter() - start
            for (query, missing), scores in zip(new, fresh, strict=True):
                self._known[query.id].update(zip(missing.tolist(), scores.tolist(), strict=True))
        scored = sum(len(missing) for _, missing in new)
        self._scored += scored
        self._cached += sum(map(len, rows)) - scored
        return [self._of_cache(query, candidates) for query, candidates in pairs]

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return each score in [0, 1], as the scorer maps it."""
        return self._scorer.to_unit_interval(scores)

    @property
    def saved(self) -> float:
        """The estimated computing time of the scores returned from the cache, in seconds."""
        return self._cached * self._seconds / self._scored if self._scored else 0.0

    def _unknown(self, query: Query, rows: Rows) -> Rows:
        known = self._known[query.id]
        return np.array([row for row in rows.tolist() if row not in known], np.int32)

    def _of_cache(self, query: Query, rows: Rows) -> Scores:
        known = self._known[query.id]
        return np.array([known[row] for row in rows.tolist()], np.float32)
