"""Expansion: neighbour scores, and the papers that the neighbours of a query cite or are cited together with.

The neighbours of a query are its first retrieved papers with known references (for co-citation: with known
citations). A neighbour has the weight 1 / (k0 + rank), normalised so that the weights of the first `neighbours` ranks
sum to 1. Its weight adds to the scores of the papers that it cites (`cited_by`; `cited_by_closest` counts the first
neighbours only), of the papers that are co-cited with it (`co_cited`), and of those that are bibliographically coupled
with it (`coupled`).

SciPy allocates arrays of all papers for each product of a sparse vector and the citation matrix. `SparseVector` numbers
the touched columns by a scratch array, which is never cleared: each place is written before it is read. Sums are added
in SciPy's order, so that all numbers are the same bit by bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import RANKING_DEPTH, RRF_K0
from citerec.files.arrays import Array, Counts, Flags, Floats, Rows, Scores
from citerec.graph.temporal import CitationCounts, GraphSnapshot, TemporalGraph
from citerec.index.vectors import unit
from citerec.retrieve.fuse import reciprocal_ranks, rrf
from citerec.rules.eligible import within
from citerec.types import (
    CandidateSet,
    Hits,
    Progress,
    QueryBatch,
    QueryVector,
    no_progress,
)

EXPAND = "expand"  # the name of the hits of the expansion
NEIGHBOURS = 50
EXTRA = RANKING_DEPTH  # papers that the expansion adds, at most
WEIGHT = 0.3  # of the expansion against the first stages, in [0, 1]
CLOSEST = 10  # neighbours that `cited_by_closest` counts
LEAST = 1e-6  # least cosine; smaller values are rounding errors

# returns the lists of some rows one after the other, and the length of each
Lists = Callable[[Rows], tuple[Rows, Counts]]


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """Floats of some papers, each once, in any order; both arrays have the same shape."""

    rows: Rows
    weights: Floats
    scratch: Rows  # of any content, shape (columns,); it is overwritten

    def times(self, lists: Lists) -> Self:
        """Return the product with a matrix of zeros and ones; `lists` returns the columns of the ones of each row."""
        columns, lengths = lists(self.rows)
        return self._summed(columns, np.repeat(self.weights, lengths))

    def plus(self, other: Self) -> Self:
        """Return the sum of two vectors."""
        rows = np.concatenate([self.rows, other.rows])
        return self._summed(rows, np.concatenate([self.weights, other.weights]))

    def at(self, rows: Rows) -> Floats:
        """Return the weights of some papers, 0 for those without one."""
        place = self._places(rows)
        weights = np.zeros(len(rows))
        weights[place >= 0] = self.weights[place[place >= 0]]
        return weights

    def minus(self, other: Self) -> Self:
        """Subtract the weights of the papers that both vectors have; weights below `LEAST` are left out."""
        place = self._places(other.rows)
        rest = self.weights.copy()
        rest[place[place >= 0]] -= other.weights[place >= 0]
        return replace(self, weights=rest).only(rest >= LEAST)

    def scaled(self, by: Floats | float) -> Self:
        """Return the vector with each weight multiplied; `by` is a number or has the shape of `rows`."""
        return replace(self, weights=self.weights * by)

    def divided(self, degrees: Callable[[Rows], Array]) -> Self:
        """Return the vector divided by the root of each paper's degree, as a cosine is."""
        return self.scaled(1 / np.sqrt(np.maximum(degrees(self.rows), 1)))

    def only(self, keep: Flags) -> Self:
        """Return the entries that a mask selects, shape of `rows`."""
        return replace(self, rows=self.rows[keep], weights=self.weights[keep])

    def _places(self, rows: Rows) -> Rows:
        """Return the place of each of some papers in the vector, -1 for those without a weight."""
        self.scratch[rows] = -1
        self.scratch[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return self.scratch[rows]

    def _summed(self, rows: Rows, weights: Floats) -> Self:
        """Return a vector of some rows, with the weights of equal rows added."""
        place = np.arange(len(rows), dtype=np.int32)
        # of equal rows the first is written last
        self.scratch[rows[::-1]] = place[::-1]
        first = self.scratch[rows]
        is_first = first == place
        numbers = (np.cumsum(is_first) - 1)[first]
        sums = np.bincount(numbers, weights)
        return replace(self, rows=rows[is_first][::-1], weights=sums[::-1])


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores:
    """The scores that the neighbours of one query give to papers; each array has the shape of `rows`."""

    rows: Rows  # the scored papers
    cited_by: Scores  # total weight of the neighbours that cite the paper, in [0, 1]
    cited_by_closest: Scores  # likewise, for the first `CLOSEST` neighbours
    cited_by_count: CitationCounts  # neighbours that cite the paper
    # weighted sum of its co-citation cosines with the neighbours, in [0, 1]
    co_cited: Scores
    # likewise, of bibliographic coupling; 0 if its references are unknown
    coupled: Scores
    neighbours: Rows  # those with known references, closest first; shape (neighbours,)
    # those with known citations, closest first; shape (neighbours,)
    cited_neighbours: Rows

    def at(self, rows: Rows) -> Self:
        """Return the scores of other rows, 0 for rows without a score; `self.rows` must rise."""
        places = np.searchsorted(self.rows, rows)  # np.isin would sort all rows
        known = np.flatnonzero(places < np.searchsorted(self.rows, rows, "right"))
        places = places[known]
        columns: dict[str, Any] = {}
        for name in (
            "cited_by",
            "cited_by_closest",
            "cited_by_count",
            "co_cited",
            "coupled",
        ):
            values = getattr(self, name)
            columns[name] = np.zeros(len(rows), values.dtype)
            columns[name][known] = values[places]
        return replace(self, rows=rows, **columns)


def neighbour_scores(
    snapshot: GraphSnapshot,
    rows: Rows,
    neighbours: int = NEIGHBOURS,
    k0: int = RRF_K0,
) -> NeighbourScores:
    """Compute the neighbour scores of one query, for all papers with a score; their rows rise.

    The co-citation of p and c is the cosine of their citing papers: common / sqrt(citing p * citing c). Coupling is the
    cosine of their references. With the weights W and the citation matrix A, the sums are (W A^T) A and (W A) A^T, so
    no matrix of all pairs is computed.

    `rows` are the retrieved papers, best first.
    """
    is_citing = snapshot.is_citing(rows)
    is_cited = snapshot.citations(rows) > 0
    graph = snapshot.temporal
    scratch = graph.scratch

    def weights(mask: Flags, count: int) -> SparseVector:
        """Return the weights of so many neighbours: the first papers of the list that a mask selects."""
        positions = np.flatnonzero(mask)[:count]
        by_rank = reciprocal_ranks(len(rows), k0)
        whole = reciprocal_ranks(count, k0).sum()
        return SparseVector(rows[positions], by_rank[positions] / whole, scratch)

    citing = weights(is_citing, neighbours)
    closest = weights(is_citing, min(CLOSEST, neighbours))
    ones = replace(citing, weights=np.ones(len(citing.rows)))
    cites = graph.index.graph.lists
    scores = {
        "cited_by": citing.times(cites),
        "cited_by_closest": closest.times(cites),
        "cited_by_count": ones.times(cites),
        "co_cited": _co_cited(snapshot, weights(is_cited, neighbours)),
        "coupled": _coupled(snapshot, citing),
    }
    distinct = _distinct(np.concatenate([vector.rows for vector in scores.values()]))
    scratch[distinct] = np.arange(len(distinct), dtype=np.int32)
    columns: dict[str, Any] = {}
    for name, vector in scores.items():
        columns[name] = np.zeros(
            len(distinct), np.int32 if name == "cited_by_count" else np.float32
        )
        columns[name][scratch[vector.rows]] = vector.weights
    return NeighbourScores(
        rows=distinct,
        **columns,
        neighbours=rows[is_citing][:neighbours],
        cited_neighbours=rows[is_cited][:neighbours],
    )


def _distinct(rows: Rows) -> Rows:
    """Return the distinct rows, rising; sorting is much faster than the hashing of np.unique."""
    rows = np.sort(rows)
    return rows[np.concatenate([[True], rows[1:] != rows[:-1]])[: len(rows)]]


def _co_cited(snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted co-citations of each paper, without those with itself, whose cosine is 1."""
    graph = snapshot.temporal
    citing = weights.divided(snapshot.citations).times(graph.all_citers.sampled)
    citing = citing.only(snapshot.is_citing(citing.rows))
    both = citing.times(graph.index.graph.lists)
    return both.divided(snapshot.citations).minus(weights)


def _coupled(snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted coupling of each paper, without that with itself, whose cosine is 1."""
    citations = snapshot.temporal.index.graph
    cited = weights.divided(citations.degrees).times(citations.lists)
    both = cited.times(snapshot.temporal.all_citers.sampled)
    both = both.only(snapshot.is_citing(both.rows)).divided(citations.degrees)
    return both.minus(weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedCandidates(CandidateSet):
    """The retrieved and the added candidates of one query, before a learning-to-rank model orders them.

    The order is the weighted reciprocal rank fusion of the retrieved list and the expansion.
    """

    neighbour_scores: NeighbourScores  # of each paper of `hits`, in its order
    snapshot: GraphSnapshot  # the citations that are known for the query


@dataclass(frozen=True, slots=True)
class CandidateExpander:
    """A stage that adds the papers that the neighbours of each query cite or are cited together with."""

    graph: TemporalGraph  # which citations are known
    neighbours: int = NEIGHBOURS

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[ExpandedCandidates]:
        """Add to each query the eligible papers with a neighbour score above 0.

        Its first neighbours are its known references, then its first candidates.
        """
        index = self.graph.index
        snapshots = self.graph.snapshots(batch.queries, batch.eligible)
        expanded: list[ExpandedCandidates] = []
        for i, (retrieved, snapshot) in enumerate(
            zip(candidates, snapshots, strict=True)
        ):
            known = np.array(sorted(batch.known_references(i)), np.int32)
            closest = np.concatenate(
                [known, retrieved.rows[~np.isin(retrieved.rows, known)]]
            )
            scores = neighbour_scores(snapshot, closest, self.neighbours)
            weight = scores.cited_by + scores.co_cited
            keep = within(batch.eligible[i], index.years, scores.rows) & (weight > 0)
            found = scores.rows[keep], weight[keep]
            added = Hits.ordered(*found, index.id_rank, EXTRA)
            hits = rrf([retrieved.hits, added], index.id_rank, weights=[1, WEIGHT])
            expanded.append(
                ExpandedCandidates(
                    hits=hits,
                    hits_by_source={**retrieved.hits_by_source, EXPAND: added},
                    neighbour_scores=scores.at(hits.rows),
                    snapshot=snapshot,
                    query_vector=retrieved.query_vector,
                    sentences=retrieved.sentences,
                    body=retrieved.body,
                    agreement=retrieved.agreement,
                    contexts=retrieved.contexts,
                )
            )
        return expanded


SEEDS = 10  # best candidates at which a walk starts
DAMPING = 0.85  # probability of each further step
STEPS = 2


def walk(snapshot: GraphSnapshot, best: Rows) -> SparseVector:
    """Return how often a walk visits each paper after its start; papers that it does not visit are left out.

    The starts are the first `SEEDS` of the best candidates with a known citation, weighted by 1 / (`RRF_K0` + rank).

    Source: a personalised PageRank, Page et al. 1999, http://ilpubs.stanford.edu:8090/422.
    """
    graph = snapshot.temporal
    starts = best[snapshot.is_citing(best) | (snapshot.citations(best) > 0)][:SEEDS]
    weights = reciprocal_ranks(len(starts))
    here = SparseVector(starts, weights / max(weights.sum(), 1e-9), graph.scratch)
    visits = here.only(np.zeros(len(starts), np.bool_))
    citations = graph.index.graph
    for step in range(1, STEPS + 1):  # from each paper to a reference or a citing paper
        is_citing = snapshot.is_citing(here.rows)
        links = np.where(
            is_citing, citations.degrees(here.rows), 0
        ) + snapshot.citations(here.rows)
        leaving = replace(here, weights=here.weights / np.maximum(links, 1))
        cited = leaving.only(is_citing).times(citations.lists)
        citing = leaving.times(graph.all_citers.sampled)
        here = cited.plus(citing.only(snapshot.is_citing(citing.rows)))
        visits = visits.plus(here.scaled((1 - DAMPING) * DAMPING**step))
    return visits


MAX_LINKS = 100  # links of one candidate and kind
BLOCK = 2048  # vectors that are read at once, so that they stay in the caches of the processor


def linked_similarity(
    snapshot: GraphSnapshot, rows: Rows, query: QueryVector
) -> Scores:
    """Return the cosine of the query's vector and the mean direction of what each paper cites or is cited by.

    Only known citations count, of earlier references; `MAX_LINKS` of each kind. NaN for a paper without such a paper.
    """
    from scipy.sparse import csr_array

    graph = snapshot.temporal
    citing, lengths = graph.all_citers.sampled(rows)
    cited, degrees = graph.index.graph.lists(rows)
    is_known = np.repeat(snapshot.is_citing(rows), degrees) & (
        snapshot.years[cited] < snapshot.year
    )
    owners, links = thinned(citing, lengths, snapshot.is_citing(citing))
    more_owners, more_links = thinned(cited, degrees, is_known)
    owners = np.concatenate([owners, more_owners])
    links = np.concatenate([links, more_links])
    linked = _distinct(links)
    graph.scratch[linked] = np.arange(len(linked), dtype=np.int32)
    ones = np.ones(len(links), np.float32)
    places = (owners, graph.scratch[links])
    by_paper = csr_array((ones, places), shape=(len(rows), len(linked))).tocsc()
    by_paper.data[:] = 1  # a paper that both kinds have counts once
    sums = np.zeros((len(rows), len(query.values)), np.float32)
    for start in range(0, len(linked), BLOCK):
        block = slice(start, start + BLOCK)
        sums += by_paper[:, block] @ query.of_papers(linked[block])
    cosines = unit(sums) @ unit(query.values)
    return np.where(
        np.bincount(owners, minlength=len(rows)) > 0, cosines, np.nan
    ).astype(np.float32)


def thinned(
    links: Rows, lengths: Counts, chosen: Flags
) -> tuple[npt.NDArray[np.intp], Rows]:
    """Return an even sample of at most `MAX_LINKS` of the chosen links of each paper, after the places of the papers.

    `links` holds the links of one paper after the other, `lengths` how many each has, `chosen` which of them count.
    """
    owners = np.repeat(np.arange(len(lengths)), lengths)[chosen]
    links = links[chosen]
    sizes = np.bincount(owners, minlength=len(lengths))
    place = np.arange(len(links)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = sizes[owners]
    share = np.minimum(MAX_LINKS, size)
    is_kept = place * share // size != (place - 1) * share // size
    return owners[is_kept], links[is_kept]
