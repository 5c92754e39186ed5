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

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from citerec.display import plural
from citerec.files.arrays import Floats, Rows, Scores
from citerec.graph.temporal import GraphSnapshot, TemporalGraph
from citerec.index.papers import Papers
from citerec.rank.expand import SparseVector, neighbour_scores
from citerec.rank.reasons import (
    MAX_REASONS,
    MOST_WORDS,
    matching,
    quoted,
    semantic,
    such_as,
)
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.fuse import min_max, ranks_and_scores, summed
from citerec.rules.eligible import within
from citerec.types import CandidateSet, Eligibility, Hits, Query, Recommendation

CO_CITATION = "co-citation"
SIMILAR_LISTS = "similar-lists"
COUPLING = "coupling"
CITED_BY = "cited-by"
# Tuned by recall@20 on dev papers of two corpora.
WEIGHTS = {
    CO_CITATION: 1.5,
    SIMILAR_LISTS: 1.0,
    COUPLING: 1.0,
    CITED_BY: 1.0,
    "dense": 0.5,
    "bm25": 0.5,
}
CONNECTED = {
    CO_CITATION: "cited together with",
    COUPLING: "cites",
    CITED_BY: "cited by",
}
DEPTH = 200  # papers of each source that are fused
KEY_TERMS = 40  # the titles of hundreds of references have too many words
_EQUAL = 10**6  # k0 that gives all seeds the same weight, but for a millionth


@dataclass(frozen=True, slots=True, eq=False)
class SeedCandidates(CandidateSet):
    """The candidates for one list of references."""

    seeds: Rows  # the papers of the list, rising
    snapshot: GraphSnapshot  # the citations that are known


@dataclass(frozen=True, slots=True)
class SeedRetriever:
    """A `FirstStage` that finds the papers that belong to the list of references of each query."""

    graph: TemporalGraph  # which citations are known
    lists: Sequence[Collection[int]]  # the rows of the list of each query of a batch
    bm25: Bm25Retriever | None  # further sources
    dense: DenseRetriever | None

    def candidates(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[CandidateSet]:
        """Return the best eligible papers for the list of each query, at least `k` if there are so many."""
        found: list[CandidateSet] = []
        depth = max(k, DEPTH)
        papers = self.graph.index.papers
        id_rank = self.graph.index.id_rank
        snapshots = self.graph.snapshots(queries, eligible)
        for cited, rule, snapshot in zip(self.lists, eligible, snapshots, strict=True):
            seeds = np.array(sorted(cited), np.int32)
            rule = replace(rule, excluded=rule.excluded.union(cited))  # noqa: PLW2901
            searched: dict[str, Hits] = {}
            connected = graph_scores(snapshot, seeds)
            for name, (rows, scores) in connected.items():
                keep = within(rule, papers.years, rows) & (scores > 0)
                points = scores[keep].astype(np.float32)
                searched[name] = Hits.ordered(rows[keep], points, id_rank, depth)
            if self.dense:
                mean = self.dense.approximate_vectors(seeds).mean(0, keepdims=True)
                mean = mean.astype(np.float32)
                [searched["dense"]] = self.dense.search(mean, [rule], depth)
            if self.bm25:
                by_terms = self.bm25.by_key_terms(KEY_TERMS)
                titles = titles_of(seeds, papers)
                [searched["bm25"]] = by_terms.retrieve([titles], [rule], depth)
            sources = {name: hits for name, hits in searched.items() if len(hits)}
            points = [source_points(name, hits) for name, hits in sources.items()]
            weights = [WEIGHTS[name] for name in sources]
            fused = summed([*sources.values()], points, weights, id_rank, depth)
            found.append(SeedCandidates(fused, sources, seeds, snapshot))
        return found


def titles_of(seeds: Rows, papers: Papers) -> Query:
    """Return the query of the titles of a list; its title is blank if none of them has one."""
    titles: list[str] = papers.texts("title", seeds).to_pylist()
    return Query(id="titles", title=" ".join(titles).strip() or "-", named=False)


def source_points(name: str, hits: Hits) -> Floats:
    """Return the scores of a source, scaled to [0, 1]; `hits` has at least one paper."""
    if name in ("dense", "bm25"):
        return min_max(hits.scores)
    # 0 means not connected, so the last paper has more than nothing
    return hits.scores.astype(np.float64) / float(hits.scores[0])


def graph_scores(
    snapshot: GraphSnapshot, seeds: Rows
) -> dict[str, tuple[Rows, Floats | Scores]]:
    """Return papers and their scores by each source of the citation graph: above 0 if connected with the seeds."""
    graph = snapshot.temporal
    neighbours = neighbour_scores(snapshot, seeds, len(seeds), _EQUAL)
    citing, shared = np.unique(graph.all_citers.sampled(seeds)[0], return_counts=True)
    known = snapshot.is_citing(citing)
    citing = citing[known]
    shared = shared[known]
    references = graph.index.graph
    sizes = np.maximum(references.degrees(citing), 1)
    coupling = shared / np.sqrt(sizes * len(seeds))
    similar = SparseVector(citing, coupling**2, graph.scratch).times(references.lists)
    return {
        CO_CITATION: (neighbours.rows, neighbours.co_cited),
        SIMILAR_LISTS: (similar.rows, similar.weights),
        COUPLING: (citing, coupling),
        CITED_BY: (neighbours.rows, neighbours.cited_by),
    }


def connections(
    snapshot: GraphSnapshot, seeds: Rows, row: int
) -> dict[str, Sequence[int]]:
    """Return the papers by whose known citations a paper is connected with a list, by source of the citation graph.

    co-citation: papers of the list that are cited together with it, the most often first; similar-lists: papers that
    cite it and two of the list; coupling: papers of the list that it cites; cited-by: those that cite it.
    """
    citing = snapshot.citing(row).tolist()
    cited, *lists = (
        np.intersect1d(snapshot.references(paper), seeds).tolist()
        for paper in (row, *citing)
    )
    return {
        CO_CITATION: [row for row, _ in Counter(chain(*lists)).most_common()],
        SIMILAR_LISTS: [
            row for row, shared in zip(citing, lists, strict=True) if len(shared) > 1
        ],
        COUPLING: cited,
        CITED_BY: np.intersect1d(citing, seeds).tolist(),
    }


def seed_reasons(
    graph: TemporalGraph,
    candidates: SeedCandidates,
    result: tuple[Recommendation, ...],
    bm25: Bm25Retriever | None,
) -> tuple[Recommendation, ...]:
    """Add to each paper the reasons of the sources that found it, largest share of its score first."""
    # what each source adds to the score of each candidate
    added: dict[str, Sequence[float]] = {}
    for name, hits in candidates.hits_by_source.items():
        points = WEIGHTS[name] * source_points(name, hits)
        scaled = replace(hits, scores=points.astype(np.float32))
        added[name] = np.nan_to_num(
            ranks_and_scores(scaled, candidates.rows)[1]
        ).tolist()
    reasoned = list[Recommendation]()
    papers = graph.index.papers
    rows = candidates.rows.tolist()
    words: list[list[str]] = [[]] * len(rows)
    if bm25:
        titles = titles_of(candidates.seeds, papers)
        words = bm25.by_key_terms(KEY_TERMS).matches(titles, rows, most=MOST_WORDS)
    for i, (item, row) in enumerate(zip(result, rows, strict=True)):
        connected = connections(candidates.snapshot, candidates.seeds, row)
        several = plural(len(connected[SIMILAR_LISTS]), "paper")
        texts = {
            name: f"{CONNECTED[name]} {len(by):,} of your references{such_as(len(by))} {quoted(papers, by[0])}"
            if name in CONNECTED
            else f"cited by {several} with several of your references"
            for name, by in connected.items()
            if by
        } | {"dense": semantic(item, len(papers)), "bm25": matching(words[i])}
        sources = sorted(item.stages, key=lambda name, at=i: -added[name][at])
        shown = [texts[name] for name in sources if texts.get(name)]
        reasoned.append(replace(item, reasons=tuple(shown[:MAX_REASONS])))
    return tuple(reasoned)
