"""Finds the papers that a list of references lacks, from the papers of the list: its seeds.

| source | score of a paper |
|---|---|
| co-citation | mean cosine of its citing papers and those of each seed |
| similar-lists | sum over the papers that cite it: squared cosine of their references and the seeds |
| coupling | cosine of its references and the seeds |
| cited-by | share of the seeds that cite it |
| dense | inner product with, or minus the distance from, the mean of the seeds' vectors |
| bm25 | BM25 for the key terms of the seeds' titles |

The sources are fused by a weighted sum. The scores of the citation graph are divided by the best one of their source;
those of texts and vectors are min-max scaled over its best papers.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from citerec.config import ExpandConfig
from citerec.errors import ConfigError
from citerec.rank.expand import SparseVector, neighbour_scores
from citerec.rank.reasons import MOST, matching, semantic
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import min_max, ranks_and_scores, summed
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph, within
from citerec.text import plural
from citerec.types import CandidateSet, Eligibility, Hits, Query, QueryBatch, Recommendation

if TYPE_CHECKING:
    from citerec.retrieve.dense import DenseRetriever


Points = npt.NDArray[np.float64]  # one per paper

CO_CITATION, SIMILAR_LISTS = "co-citation", "similar-lists"
COUPLING, CITED_BY = "coupling", "cited-by"
# Tuned by recall@20 on dev papers of two corpora.
WEIGHTS = {
    CO_CITATION: 1.5,
    SIMILAR_LISTS: 1.0,
    COUPLING: 1.0,
    CITED_BY: 1.0,
    "dense": 0.5,
    "bm25": 0.5,
}
GRAPH = frozenset({CO_CITATION, SIMILAR_LISTS, COUPLING, CITED_BY})
DEPTH = 200  # papers of each source that are fused
KEY_TERMS = 40
_EQUAL = 10**6  # k0 that gives all seeds the same weight, but for a millionth


@dataclass(frozen=True, slots=True, eq=False)
class SeedCandidates(CandidateSet):
    """The candidates for one list of references."""

    seeds: Rows  # the papers of the list, rising
    snapshot: GraphSnapshot  # the citations that are known


class SeedRetriever:
    """Finds papers that belong to lists of references. It caches what it reads of the graph: reuse the object."""

    def __init__(
        self,
        graph: TemporalGraph,
        *,
        bm25: Bm25Retriever | None = None,
        dense: "DenseRetriever | None" = None,
    ) -> None:
        """Prepare.

        Args:
            graph: The citation graph, which defines the known citations.
            bm25: Searches the key terms of the titles, see `by_key_terms`; None for no search.
            dense: Its vectors are searched; None for none.
        """
        self._graph, self._bm25, self._dense = graph, bm25, dense
        self._id_rank: npt.NDArray[np.int32] = graph.index.id_rank
        self._papers = graph.index.papers

    def candidates(self, batch: QueryBatch, k: int) -> list[SeedCandidates]:
        """Return the best eligible papers for the known references of each query, at least `k` if there are so many.

        Args:
            batch: The queries; only their known references are read. These are not recommended.
            k: Papers per list.

        Raises:
            ConfigError: If a query has no known reference.
        """
        snapshots = self._graph.snapshots(batch.queries, batch.eligible)
        return [
            self._of_list(batch.known_references(place), batch.eligible[place], snapshot, k)
            for place, snapshot in enumerate(snapshots)
        ]

    def _of_list(
        self, cited: Collection[int], rule: Eligibility, snapshot: GraphSnapshot, k: int
    ) -> SeedCandidates:
        if not cited:
            raise ConfigError("a list of references holds no paper of the corpus")
        seeds = np.array(sorted(cited), np.int32)
        rule = replace(rule, excluded=rule.excluded.union(seeds.tolist()))
        depth = max(k, DEPTH)
        sources = {
            name: hits for name, hits in self._sources(seeds, rule, snapshot, depth) if len(hits)
        }
        points = [source_points(name, hits) for name, hits in sources.items()]
        weights = [WEIGHTS[name] for name in sources]
        fused = summed([*sources.values()], points, weights, self._id_rank, depth)
        return SeedCandidates(fused, sources, seeds, snapshot)

    def _sources(
        self, seeds: Rows, rule: Eligibility, snapshot: GraphSnapshot, depth: int
    ) -> Iterator[tuple[str, Hits]]:
        for name, connected in graph_scores(self._graph, snapshot, seeds).items():
            scores = connected.only(within(rule, self._papers.years, connected.rows))
            points = scores.weights.astype(np.float32)
            yield name, Hits.ordered(scores.rows, points, self._id_rank, depth)
        if self._dense:
            mean = self._dense.vectors(seeds).mean(axis=0, keepdims=True)
            [hits] = self._dense.search(mean.astype(np.float32), [rule], depth)
            yield "dense", hits
        if self._bm25:
            [hits] = self._bm25.retrieve([self.titles(seeds)], [rule], depth)
            yield "bm25", hits

    def titles(self, seeds: Rows) -> Query:
        """Return the query of the titles of a list; its title is blank if none of them has one."""
        titles: list[str] = self._papers.texts("title", seeds).to_pylist()
        return Query(id="titles", title=" ".join(titles).strip() or "-", named=False)

    def matches(
        self, candidates: SeedCandidates, rows: Sequence[int], most: int
    ) -> list[list[str]]:
        """Return, for each paper at `rows`, at most `most` words that it shares with the titles of the list."""
        if not self._bm25:
            return [[] for _ in rows]
        return self._bm25.matches(self.titles(candidates.seeds), rows, most=most)


def by_key_terms(bm25: Bm25Retriever) -> Bm25Retriever:
    """Return a BM25 that searches key terms alone: the titles of hundreds of references have too many words."""
    return bm25.by_key_terms(KEY_TERMS)


@dataclass(frozen=True, slots=True)
class SeedFirstStage:
    """A first stage of the pipeline for the lists of references of one batch."""

    retriever: SeedRetriever
    lists: Sequence[Collection[int]]  # one per query of the batch

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the best eligible papers for the list of each query."""
        batch = QueryBatch(queries, eligible, [sorted(one) for one in self.lists])
        return [*self.retriever.candidates(batch, k)]


def source_points(name: str, hits: Hits) -> Points:
    """Return the scores of a source, scaled to [0, 1]; `hits` has at least one paper."""
    if name in GRAPH:  # 0 means not connected, so the last paper has more than nothing
        return hits.scores.astype(np.float64) / float(hits.scores[0])
    return min_max(hits.scores)


def graph_scores(
    graph: TemporalGraph, snapshot: GraphSnapshot, seeds: Rows
) -> dict[str, SparseVector]:
    """Return the positive scores of papers by each source of the citation graph, which connects them with the seeds.

    Args:
        graph: The citation graph.
        snapshot: The citations that are known.
        seeds: Distinct rows of the list's papers.
    """
    config = ExpandConfig(neighbours=len(seeds), k0=_EQUAL)
    [of_seeds] = neighbour_scores(graph, snapshot, [seeds], config)
    citing, shared = np.unique(graph.citers.lists(seeds)[0], return_counts=True)
    known = snapshot.is_citing(citing)
    citing, shared = citing[known], shared[known]
    references = graph.index.graph
    sizes = np.maximum(references.degrees(citing), 1)
    coupling = SparseVector(citing, shared / np.sqrt(sizes * len(seeds)))
    similar = replace(coupling, weights=coupling.weights**2)
    scores = {
        CO_CITATION: SparseVector(of_seeds.rows, of_seeds.co.astype(np.float64)),
        SIMILAR_LISTS: similar.times(references.lists, graph.scratch),
        COUPLING: coupling,
        CITED_BY: SparseVector(of_seeds.rows, of_seeds.cites.astype(np.float64)),
    }
    return {name: one.only(one.weights > 0) for name, one in scores.items()}


YOURS = "of your references"


class SeedFacts:
    """Counts the citations that connect papers with a list of references."""

    def __init__(self, graph: TemporalGraph, snapshot: GraphSnapshot, seeds: Rows) -> None:
        """Prepare; only citations of `snapshot` count."""
        self._graph, self._snapshot, self._seeds = graph, snapshot, seeds

    def cited_together(self, row: int) -> int:
        """Return how many papers of the list at least one paper cites together with the paper at `row`."""
        cited = [self._references(citing) for citing in self._citers(row).tolist()]
        return len(np.intersect1d(np.concatenate([*cited, self._seeds[:0]]), self._seeds))

    def cites(self, row: int) -> int:
        """Return how many papers of the list the paper at `row` cites."""
        return len(np.intersect1d(self._references(row), self._seeds))

    def cited_by(self, row: int) -> int:
        """Return how many papers of the list cite the paper at `row`."""
        return len(np.intersect1d(self._citers(row), self._seeds))

    def similar_lists(self, row: int) -> int:
        """Return how many papers cite both the paper at `row` and at least two papers of the list."""
        lists = [self._references(citing) for citing in self._citers(row).tolist()]
        return sum(len(np.intersect1d(one, self._seeds)) > 1 for one in lists)

    def _citers(self, row: int) -> Rows:
        rows = self._graph.citers.citers(row)
        return rows[self._snapshot.is_citing(rows)]

    def _references(self, row: int) -> Rows:
        graph = self._graph.index.graph
        [is_known] = self._snapshot.is_citing(np.array([row], np.int32))
        return graph.references(row) if is_known else graph.indices[:0]


def seed_reasons(
    graph: TemporalGraph,
    candidates: SeedCandidates,
    result: tuple[Recommendation, ...],
    words: Sequence[Sequence[str]],
) -> tuple[Recommendation, ...]:
    """Add to each paper the reasons of the sources that found it, largest share of its score first.

    Args:
        graph: The citation graph.
        candidates: The papers of `result`, in its order.
        result: The recommended papers.
        words: For each paper, the words that it shares with the titles of the list.
    """
    facts = SeedFacts(graph, candidates.snapshot, candidates.seeds)
    places = {name: _points(candidates, name) for name in candidates.hits_by_source}
    reasoned: list[Recommendation] = []
    for i, (item, row) in enumerate(zip(result, candidates.rows.tolist(), strict=True)):
        sources = sorted(item.stages, key=lambda name, at=i: -places[name][at])
        texts = (_text(name, facts, row, item, words[i]) for name in sources)
        reasoned.append(replace(item, reasons=tuple(filter(None, texts))[:MOST]))
    return tuple(reasoned)


def _points(candidates: SeedCandidates, name: str) -> Sequence[float]:
    """Return what a source adds to the score of each candidate."""
    hits = candidates.hits_by_source[name]
    points = WEIGHTS[name] * source_points(name, hits)
    scaled = replace(hits, scores=points.astype(np.float32))
    return np.nan_to_num(ranks_and_scores(scaled, candidates.rows)[1]).tolist()


def _text(
    source: str, facts: SeedFacts, row: int, item: Recommendation, words: Sequence[str]
) -> str:
    if source == CO_CITATION:
        count = facts.cited_together(row)
        return f"cited together with {count:,} {YOURS}" if count else ""
    if source == SIMILAR_LISTS:
        count = facts.similar_lists(row)
        return f"cited by {plural(count, 'paper')} with several {YOURS}" if count else ""
    if source == COUPLING:
        return f"cites {facts.cites(row):,} {YOURS}"
    if source == CITED_BY:
        return f"cited by {facts.cited_by(row):,} {YOURS}"
    if source == "dense":
        rank = item.stages[source].rank
        return semantic(rank)
    return matching(words)
