"""Finds papers by the sentences in which others cite them: the known ones alone, as of a query's time."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from citerec.config import RANKING_DEPTH
from citerec.files.arrays import Rows
from citerec.graph.temporal import GraphSnapshot, TemporalGraph
from citerec.index.contexts import Contexts
from citerec.index.vectors import on_threads, unit, vectors_of_contexts
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import min_max, summed
from citerec.retrieve.hybrid import HybridRetriever, sentence_alone
from citerec.rules.eligible import within
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Progress,
    Query,
    QueryBatch,
    QueryVector,
    no_progress,
)

DEPTH = RANKING_DEPTH  # contexts of each search
TOP = 3  # best contexts of a paper, which add to its score
# contexts of a paper that are compared with a draft: an even sample of more
COMPARED = 100
POWER = 3  # of a context's scaled score: the best of several counts most
WEIGHT = 1.0  # of contexts in the candidates of a sentence; titles and abstracts have 1


class ContextRetriever:
    """A stage that finds papers by the contexts that cite them, for sentences; several threads may use it."""

    def __init__(
        self, graph: TemporalGraph, contexts: Contexts, hybrid: HybridRetriever
    ) -> None:
        """Open the contexts of an index; `graph` defines which are known.

        They are searched by BM25 and by vectors where `hybrid`, which searches the papers, uses these.
        """
        self.contexts = contexts
        self.graph = graph
        self._index = graph.index
        bm25 = hybrid.bm25
        self.bm25 = Bm25Retriever(contexts, bm25.config) if bm25 else None
        self._dense = hybrid.dense
        self.vectors = vectors_of_contexts(graph.index) if hybrid.dense else None

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[CandidateSet]:
        """Add to the candidates of each sentence the papers that others cite in like sentences.

        The sentences of a batch are searched together; the candidates of drafts stay as they are.
        """
        found = [*candidates]
        places = [i for i, query in enumerate(batch.queries) if query.is_sentence]
        if not places:
            return found
        part = batch.at(places)
        known = self.known(self.graph.snapshots(part.queries, part.eligible))
        sentences = [*map(sentence_alone, part.queries)]
        papers = self.papers(sentences, known, part.eligible)
        for i, by_source in zip(places, papers, strict=True):
            lists = [found[i].hits, *by_source.values()]
            points = [min_max(found[i].hits.scores)]
            points += [h.scores / max(h.scores.max(initial=0), 1e-9) for h in lists[1:]]
            weights = [1.0, *[WEIGHT / len(by_source)] * len(by_source)]
            hits = summed(lists, points, weights, self._index.id_rank)
            found[i] = replace(found[i], hits=hits, contexts=by_source)
        return found

    def known(self, snapshots: Sequence[GraphSnapshot]) -> list[Eligibility]:
        """Return which contexts, by number, each query may know: those of papers whose citations it knows."""
        rules: list[Eligibility] = []
        for snapshot in snapshots:
            own = [n for row in snapshot.own for n in self.contexts.of_paper(row)]
            year = snapshot.before
            unknown = self._unknown if year is None else self._unknown_or_undated
            last = None if year is None else year - 1
            rules.append(Eligibility(last, unknown.union(own) if own else unknown))
        return rules

    @cached_property
    def _unknown(self) -> frozenset[int]:
        """The contexts that no query knows: of papers that are not in the scope of the graph."""
        is_known = self.graph.snapshot_before(None).is_citing(self.contexts.citing)
        return frozenset(np.flatnonzero(~is_known).tolist())

    @cached_property
    def _unknown_or_undated(self) -> frozenset[int]:
        return self._unknown.union(np.flatnonzero(self.contexts.years == 0).tolist())

    def papers(
        self,
        sentences: Sequence[Query],
        known: Sequence[Eligibility],
        eligible: Sequence[Eligibility],
    ) -> list[dict[str, Hits]]:
        """Return the eligible papers that known contexts cite, for each sentence: by "bm25", and by "dense" or not.

        The score of a paper is the sum over its best `TOP` contexts of scores to the power of `POWER`, min-max scaled
        over all contexts that were found. `known` holds the rule of the contexts of each sentence, see `known`, and
        `eligible` that of the papers.
        """
        by_source = dict[str, list[Hits]]()
        if self.bm25:
            by_source["bm25"] = self.bm25.retrieve(sentences, known, DEPTH)
        if self.vectors and self._dense:
            vectors = self._dense.encoded(sentences)
            with on_threads(self._dense.config.threads):
                nearest = self.vectors.nearest(vectors, known, DEPTH)
            rank = self.contexts.id_rank
            by_source["dense"] = [Hits.ordered(*hits, rank, DEPTH) for hits in nearest]
        return [
            {name: self._cited(found[i], rule) for name, found in by_source.items()}
            for i, rule in enumerate(eligible)
        ]

    def nearest(
        self,
        query: Query,
        vector: QueryVector | None,
        snapshot: GraphSnapshot,
        rows: Sequence[int],
    ) -> dict[int, int]:
        """Return the number of the known context about each paper that is nearest to a query; some papers have none.

        `vector` is that of the query, if the index has vectors.
        """
        about: dict[int, Rows] = {}
        for row in rows:
            numbers = self.contexts.about(row)
            known = numbers[snapshot.is_citing(self.contexts.citing[numbers])]
            if len(known):
                about[row] = known[:: -(-len(known) // COMPARED)]
        if not about:
            return {}
        numbers = np.unique(np.concatenate([*about.values()]))
        if self.vectors and vector:
            scores = unit(self.vectors.approximate(numbers)) @ unit(vector.values)
        elif self.bm25:
            [scores] = self.bm25.scores_of_papers([query], numbers)
        else:
            return {}
        places = {row: np.searchsorted(numbers, known) for row, known in about.items()}
        best = {row: int(of[np.argmax(scores[of])]) for row, of in places.items()}
        return {row: int(numbers[i]) for row, i in best.items() if scores[i] > 0}

    def _cited(self, hits: Hits, rule: Eligibility) -> Hits:
        """Return the eligible papers that some contexts cite."""
        papers, counts = self.contexts.cited(hits.rows)
        # 1 for the best context, 0 for the last of several
        below = hits.scores[:1] - hits.scores  # they fall
        scaled = 1 - below / max(float(np.ptp(below)) if len(below) else 0, 1e-9)
        points = np.repeat(scaled**POWER, counts)
        # paper by paper, best contexts first, as they are already in `hits`
        order = np.argsort(papers, kind="stable")
        papers = papers[order]
        first = np.searchsorted(papers, papers)
        is_best = np.arange(len(papers)) - first < TOP
        rows, places = np.unique(papers[is_best], return_inverse=True)
        scores = np.bincount(places, points[order][is_best], len(rows))
        keep = within(rule, self._index.papers.years, rows)
        found = rows[keep].astype(np.int32), scores[keep].astype(np.float32)
        return Hits.ordered(*found, self._index.id_rank)
