"""The last stage: pools, features and the learned ranker put together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from citerec.candidates import Candidates
from citerec.config import ExpandConfig, RerankConfig
from citerec.folder import IndexFolder
from citerec.fuse import Rank
from citerec.rank.facts import Facts
from citerec.rank.features import Features, Group, Matrix, without
from citerec.rank.known import KnownGraph, Rows
from citerec.rank.pool import CandidateExpander, CandidateSet, with_rerank_scores
from citerec.rank.ranker import Ranker
from citerec.rerank.cascade import Cascade
from citerec.types import Eligible, Hits, Progress, Query

NAME = "ranker"  # what its hits go by
BLEND = 0.4  # weight of a reranker that the ranker has not learned to read
DEPTH = 1000  # candidates of the first stages that it reads, at least


def beside(cascade: Cascade, ranker: Ranker, asked: RerankConfig | None = None) -> Cascade:
    """Return rerankers as they work beside a ranker.

    To one that reads them they give a feature of all that they may read; against another the last of them weighs
    what was asked for, else `BLEND`.

    Args:
        cascade: The rerankers.
        ranker: It has the last word.
        asked: How its user wants them.
    """
    if ranker.reads_reranker:
        return replace(cascade, early_stop=False)
    given = asked.weight if asked else None
    return cascade.with_weight(BLEND if given is None else given)


@dataclass(frozen=True, slots=True, eq=False)
class RankedCandidates(Candidates):
    """What the ranker made of one query's pool, and from what."""

    pool: CandidateSet
    matrix: Matrix  # of features, in the order of `pool.rows`
    facts: Facts  # what ties these papers to the query

    def features_of(self, rows: Rows) -> Matrix:
        """Return the features of some papers of the pool, in their order."""
        order = np.argsort(self.pool.rows)
        return self.matrix[order[np.searchsorted(self.pool.rows, rows, sorter=order)]]


class LtrStage:
    """Orders what the first stages found, and what close papers cite, by a learned ranker."""

    def __init__(
        self,
        index: IndexFolder,
        ranker: Ranker,
        known: KnownGraph = KnownGraph.PUBLISHED,
        expand: ExpandConfig | None = None,
        disabled_features: Collection[Group] = (),
    ) -> None:
        """Prepare.

        Args:
            index: Whose papers are ordered.
            ranker: It has the last word.
            known: Whose citations count; by default as `recommend` knows them.
            expand: How papers join the candidates; by default as the ranker learned.
            disabled_features: Feature groups to leave out, for comparisons; without the graph there is no expansion.
        """
        self.ranker = ranker
        self._disabled = disabled_features
        expand = expand or ranker.expand
        if Group.GRAPH in disabled_features:
            expand = replace(expand, extra=0)
        self._id_rank: Rank = index.id_rank
        self._expander = CandidateExpander(index, known, expand)
        self._features = Features(index, self._expander.known)

    def order(
        self,
        queries: Sequence[Query],
        eligible: Sequence[Eligible],
        found: Sequence[Candidates],
        *,
        k: int,
        cited: Collection[int] = (),
        cascade: Cascade | None = None,
        progress: Progress | None = None,
    ) -> list[RankedCandidates]:
        """Order the pool of each query.

        Args:
            queries: They and their candidates are read together.
            eligible: One per query.
            found: What the first stages found for each.
            k: How many of the best must be right, if a reranker may stop early.
            cited: Rows of references that all of the queries are known to have.
            cascade: The rerankers, if any: they read the best of each pool before, or, where the ranker never learned
                what their word is worth, the best of its list after, by its own weight (see `beside`).
            progress: Receives how many pairs are reranked.

        Returns:
            One per query, in the order given, of all papers of its pool.
        """
        known = [sorted(cited)] * len(queries)
        pools = self._expander.pool(queries, eligible, found, known)
        if cascade and self.ranker.reads_reranker:
            pools = with_rerank_scores(pools, queries, cascade, k, progress)
        pairs = zip(queries, pools, strict=True)
        ordered = [self._ordered(query, pool, sorted(cited)) for query, pool in pairs]
        if cascade is None or self.ranker.reads_reranker:
            return ordered
        done = cascade.rerank(queries, [one.hits for one in ordered], k, progress)
        return [
            # Nothing says how likely a paper is at a mixed score, and the ranker's own would not follow the order.
            replace(
                one,
                hits=new.hits,
                stages={**one.stages, **new.stages},
                probabilities=None,
            )
            for one, new in zip(ordered, done, strict=True)
        ]

    def _ordered(self, query: Query, pool: CandidateSet, cited: Sequence[int]) -> RankedCandidates:
        matrix = self._features.matrix(query, pool, cited)
        if self._disabled:
            matrix = without(matrix, self._disabled)
        scores = self.ranker.score(matrix)
        order = np.lexsort((self._id_rank[pool.rows], -scores))
        hits = Hits(pool.rows[order], scores[order])
        likely = None
        if calibration := self.ranker.calibration:
            likely = Hits(hits.rows, calibration.probabilities(hits.scores).astype(np.float32))
        facts = Facts(self._expander.known, pool.known, pool.neighbour_scores, cited)
        stages = {**pool.stages, NAME: hits}
        return RankedCandidates(hits, stages, pool, matrix, facts, probabilities=likely)
