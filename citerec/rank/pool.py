"""The pool of one query: what the first stages found and what close papers cite, with what is known of each paper."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from citerec.candidates import Candidates
from citerec.config import ExpandConfig
from citerec.eligibility import within
from citerec.folder import IndexFolder
from citerec.fuse import Rank, rrf
from citerec.rank.expand import NeighbourScores, neighbour_scores
from citerec.rank.known import GraphSnapshot, KnownGraph, Rows, Scores, TemporalGraph
from citerec.rerank.cascade import NAME as RERANK
from citerec.rerank.cascade import Cascade
from citerec.types import Eligible, Hits, Progress, Query

EXPAND = "expand"  # what the papers that close ones speak for go by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSet:
    """The candidates of one query, before the ranker orders them."""

    hits: Hits  # all of them: weighted rrf of the first stages' list and the expansion
    stages: Mapping[str, Hits]  # what each stage found: bm25, dense, expand, rerank (raw scores)
    neighbour_scores: (
        NeighbourScores  # what the neighbours say of each paper of `hits`, in its order
    )
    known: GraphSnapshot  # the citations that were known
    rerank_probabilities: Hits | None = None  # the reranker's probabilities; None without one

    @property
    def rows(self) -> Rows:
        """The papers, shape (papers,)."""
        return self.hits.rows


class CandidateExpander:
    """Makes the pools of queries on one index."""

    def __init__(
        self, index: IndexFolder, known: KnownGraph, config: ExpandConfig | None = None
    ) -> None:
        """Prepare; `known` says whose citations count, `config` how close papers are asked."""
        self.config = config or ExpandConfig()
        self.known = TemporalGraph(index, known)
        self._id_rank: Rank = index.id_rank
        self._years = index.papers.years

    def pool(
        self,
        queries: Sequence[Query],
        eligible: Sequence[Eligible],
        found: Sequence[Candidates],
        cited: Sequence[Sequence[int]] = (),
    ) -> list[CandidateSet]:
        """Let the papers join that close ones speak for; those not eligible stay out.

        Args:
            queries: Those that know the same citations are expanded together.
            eligible: One per query.
            found: What the first stages found for each, deep enough to be ranked.
            cited: For each, the rows of references that it is known to have: no paper is closer. By default none.

        Returns:
            One per query, in the order given.
        """
        alike: defaultdict[GraphSnapshot, list[int]] = defaultdict(list)
        for i, snapshot in enumerate(self.known.of(queries, eligible)):
            alike[snapshot].append(i)
        pools: dict[int, CandidateSet] = {}
        for snapshot, group in alike.items():
            lists = [_closest_first(found[i].hits.rows, cited[i] if cited else ()) for i in group]
            said = neighbour_scores(self.known, snapshot, lists, self.config)
            for i, mine in zip(group, said, strict=True):
                pools[i] = self._pool(eligible[i], found[i], mine, snapshot)
        return [pools[i] for i in range(len(queries))]

    def _pool(
        self, rule: Eligible, found: Candidates, said: NeighbourScores, snapshot: GraphSnapshot
    ) -> CandidateSet:
        expanded = self._expanded(rule, said)
        hits = rrf([found.hits, expanded], self._id_rank, weights=[1, self.config.weight])
        return CandidateSet(
            hits=hits,
            stages={**found.stages, EXPAND: expanded},
            neighbour_scores=said.at(hits.rows),
            known=snapshot,
        )

    def _expanded(self, rule: Eligible, said: NeighbourScores) -> Hits:
        """Return the eligible papers that the neighbours speak for, by how strongly they do."""
        weight = said.cites + said.co
        keep = within(rule, self._years, said.rows) & (weight > 0)
        rows, weight = said.rows[keep], weight[keep]
        order = np.lexsort((self._id_rank[rows], -weight))[: self.config.extra]
        return Hits(rows[order], weight[order])


def _closest_first(found: Rows, cited: Sequence[int]) -> Rows:
    known = np.array(sorted(cited), np.int32)
    return np.concatenate([known, found[~np.isin(found, known)]])


def with_rerank_scores(
    pools: Sequence[CandidateSet],
    queries: Sequence[Query],
    cascade: Cascade,
    k: int,
    progress: Progress | None = None,
) -> list[CandidateSet]:
    """Let the rerankers read the best of each pool; return the pools with what they think of them.

    Args:
        pools: One per query.
        queries: They and their pools are read together.
        cascade: The rerankers.
        k: How many of the best must be right, if reading may stop early.
        progress: Receives how many pairs are scored.
    """
    done = cascade.rerank(queries, [pool.hits for pool in pools], k, progress)
    return [
        replace(
            pool,
            stages={**pool.stages, **one.stages},
            rerank_probabilities=Hits(
                one.stages[RERANK].rows, _probabilities(cascade, one.stages[RERANK])
            ),
        )
        for pool, one in zip(pools, done, strict=True)
    ]


def _probabilities(cascade: Cascade, hits: Hits) -> Scores:
    return cascade.stages[-1].scorer.probability(hits.scores)
