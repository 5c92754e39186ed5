"""Expansion: neighbour scores, and the papers that the neighbours of a query cite or are cited together with.

The neighbours of a query are its first retrieved papers with known references (for co-citation: with known
citations). A neighbour has the weight 1 / (k0 + rank), normalised so that the weights of the first `neighbours` ranks
sum to 1. Its weight adds to the scores of the papers that it cites (`cites`; `closest` counts the first neighbours
only), of the papers that are co-cited with it (`co`), and of the papers that are bibliographically coupled with it
(`coupled`). `walk` is a personalised PageRank of two steps from the best candidates (Page et al. 1999,
http://ilpubs.stanford.edu:8090/422/), and `citers` and `references` are the linked papers of each candidate.

SciPy allocates arrays of all papers for each product of a sparse vector and the citation matrix. `SparseVector` numbers
the touched columns by a scratch array, which is never cleared: each place is written before it is read. Sums are added
in SciPy's order, so that all numbers are the same bit by bit.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.config import RRF_K0, ExpandConfig
from citerec.retrieve.fuse import Rank, rrf
from citerec.rules.known import Counts, Flags, GraphSnapshot, Rows, Scores, TemporalGraph, within
from citerec.types import (
    CandidateSet,
    Eligibility,
    Hits,
    Progress,
    QueryBatch,
    QueryVector,
    no_progress,
)

Weights = npt.NDArray[np.float64]
# returns the lists of some rows one after the other, and the length of each
Lists = Callable[[Rows], tuple[Rows, npt.NDArray[np.int64]]]


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """Weights of some papers, each once, in any order; both arrays have the same shape."""

    rows: Rows
    weights: Weights

    def times(self, lists: Lists, scratch: Rows) -> Self:
        """Return the product with a matrix of zeros and ones.

        Args:
            lists: The columns of the ones of each row, such as `Graph.lists`.
            scratch: Any content, shape (columns,); it is overwritten.
        """
        columns, lengths = lists(self.rows)
        return self._summed(columns, np.repeat(self.weights, lengths), scratch)

    def plus(self, other: Self, scratch: Rows) -> Self:
        """Return the sum of two vectors; `scratch` as in `times`."""
        rows = np.concatenate([self.rows, other.rows])
        return self._summed(rows, np.concatenate([self.weights, other.weights]), scratch)

    def at(self, rows: Rows, scratch: Rows) -> Weights:
        """Return the weights of some papers, 0 for those without one; `scratch` as in `times`."""
        scratch[rows] = -1
        scratch[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        place = scratch[rows]
        found = np.zeros(len(rows))
        found[place >= 0] = self.weights[place[place >= 0]]
        return found

    def _summed(self, rows: Rows, weights: Weights, scratch: Rows) -> Self:
        """Return a vector of some rows, with the weights of equal rows added."""
        place = np.arange(len(rows), dtype=np.int32)
        scratch[rows[::-1]] = place[::-1]  # of equal rows the first is written last
        first = scratch[rows]
        is_first = first == place
        numbers = (np.cumsum(is_first) - 1)[first]
        sums = np.bincount(numbers, weights)
        return replace(self, rows=rows[is_first][::-1], weights=sums[::-1])

    def scaled(self, by: Weights | float) -> Self:
        """Return the vector with each weight multiplied; `by` is a number or has the shape of `rows`."""
        return replace(self, weights=self.weights * by)

    def ones(self) -> Self:
        """Return the vector with all weights replaced by 1."""
        return replace(self, weights=np.ones(len(self.rows)))

    def only(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return the entries that a mask selects, shape of `rows`."""
        return replace(self, rows=self.rows[keep], weights=self.weights[keep])

    def ordered(self) -> Self:
        """Return the entries by rising row."""
        order = np.argsort(self.rows, kind="stable")
        return replace(self, rows=self.rows[order], weights=self.weights[order])


CLOSEST = 10  # neighbours that `closest` counts
_LEAST = 1e-6  # least cosine; smaller values are rounding errors


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourScores:
    """The scores that the neighbours of one query give to papers; each array has the shape of `rows`."""

    rows: Rows  # the scored papers
    cites: Scores  # total weight of the neighbours that cite the paper, in [0, 1]
    closest: Scores  # likewise, for the first `CLOSEST` neighbours
    counts: Counts  # neighbours that cite the paper
    co: Scores  # weighted sum of its co-citation cosines with the neighbours, in [0, 1]
    coupled: Scores  # likewise, of bibliographic coupling; 0 if its references are unknown
    neighbours: Rows  # those with known references, closest first; shape (neighbours,)
    cited_neighbours: Rows  # those with known citations, closest first; shape (neighbours,)

    def at(self, rows: Rows) -> Self:
        """Return the scores of other rows, 0 for rows without a score; `self.rows` must rise."""
        position = np.searchsorted(self.rows, rows).clip(max=max(len(self.rows) - 1, 0))
        is_known = self.rows[position] == rows if len(self.rows) else np.zeros(len(rows), np.bool_)

        def of(values: Any) -> Any:
            column = np.zeros(len(rows), values.dtype)
            column[is_known] = values[position[is_known]]
            return column

        columns = of(self.cites), of(self.closest), of(self.counts), of(self.co), of(self.coupled)
        return type(self)(rows, *columns, self.neighbours, self.cited_neighbours)


def neighbour_scores(
    graph: TemporalGraph, snapshot: GraphSnapshot, lists: Sequence[Rows], config: ExpandConfig
) -> list[NeighbourScores]:
    """Compute the neighbour scores of queries with the same known citations.

    The co-citation of p and c is the cosine of their citing papers: common / sqrt(citing p * citing c). Coupling is the
    cosine of their references. With the weights W and the citation matrix A, the sums are (W A^T) A and (W A) A^T, so
    no matrix of all pairs is computed.

    Args:
        graph: The citation graph.
        snapshot: The known citations of these queries.
        lists: For each query, the retrieved papers, best first.
        config: The number of neighbours, and k0 of their weights.

    Returns:
        One per query, in the order given, for all papers with a score; rows rise.
    """
    return [_of_query(graph, snapshot, rows, config) for rows in lists]


def _of_query(
    graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows, config: ExpandConfig
) -> NeighbourScores:
    is_citing, is_cited = snapshot.is_citing(rows), snapshot.citations(rows) > 0
    citing = _weights(rows, is_citing, config)
    first = config.replace(neighbours=min(CLOSEST, config.neighbours))
    cites, scratch = graph.index.graph.lists, graph.scratch
    scores = {
        "cites": citing.times(cites, scratch),
        "closest": _weights(rows, is_citing, first).times(cites, scratch),
        "counts": citing.ones().times(cites, scratch),
        "co": _co_cited(graph, snapshot, _weights(rows, is_cited, config)),
        "coupled": _coupled(graph, snapshot, citing),
    }
    return _merged(
        {name: vector.ordered() for name, vector in scores.items()},
        rows[is_citing][: config.neighbours],
        rows[is_cited][: config.neighbours],
    )


def _co_cited(graph: TemporalGraph, snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted co-citations of each paper, without those with itself."""
    by_size = weights.scaled(1 / _cited_size(snapshot, weights.rows))
    shared = by_size.times(graph.citers.lists, graph.scratch)  # the papers that cite the neighbours
    shared = shared.only(snapshot.is_citing(shared.rows))
    both = shared.times(graph.index.graph.lists, graph.scratch)
    return _others(both.scaled(1 / _cited_size(snapshot, both.rows)), weights, graph.scratch)


def _cited_size(snapshot: GraphSnapshot, rows: Rows) -> Weights:
    """Return the square root of the known citations of each paper, at least 1."""
    return np.sqrt(np.maximum(snapshot.citations(rows), 1))


def _coupled(graph: TemporalGraph, snapshot: GraphSnapshot, weights: SparseVector) -> SparseVector:
    """Return the weighted coupling of each paper, without that with itself."""
    citations = graph.index.graph

    def size(rows: Rows) -> Weights:
        return np.sqrt(np.maximum(citations.degrees(rows), 1))

    cited = weights.scaled(1 / size(weights.rows)).times(citations.lists, graph.scratch)
    both = cited.times(graph.citers.lists, graph.scratch)
    both = both.only(snapshot.is_citing(both.rows))
    return _others(both.scaled(1 / size(both.rows)), weights, graph.scratch)


def _others(both: SparseVector, weights: SparseVector, scratch: Rows) -> SparseVector:
    """Subtract the cosine of each neighbour with itself, which is 1."""
    scratch[weights.rows] = -1
    scratch[both.rows] = np.arange(len(both.rows), dtype=np.int32)
    place = scratch[weights.rows]
    rest = both.weights.copy()
    rest[place[place >= 0]] -= weights.weights[place >= 0]
    return replace(both, weights=rest).only(rest >= _LEAST)


def _weights(rows: Rows, mask: Flags, config: ExpandConfig) -> SparseVector:
    """Return the weights of the neighbours: the first papers of a list that a mask selects."""
    positions = np.flatnonzero(mask)[: config.neighbours]
    of_rank: Weights = 1 / (config.k0 + np.arange(1, len(rows) + 1))
    whole = (1 / (config.k0 + np.arange(1, config.neighbours + 1))).sum()
    return SparseVector(rows[positions], of_rank[positions] / whole)


def _merged(
    scores: Mapping[str, SparseVector], neighbours: Rows, cited_neighbours: Rows
) -> NeighbourScores:
    # sorted: much faster than the hashing of np.unique
    all_rows = np.sort(np.concatenate([vector.rows for vector in scores.values()]))
    rows = all_rows[np.concatenate([[True], all_rows[1:] != all_rows[:-1]])[: len(all_rows)]]
    columns: dict[str, Any] = {}
    for name, vector in scores.items():
        columns[name] = np.zeros(len(rows), np.int32 if name == "counts" else np.float32)
        columns[name][np.searchsorted(rows, vector.rows)] = vector.weights
    return NeighbourScores(
        rows=rows, **columns, neighbours=neighbours, cited_neighbours=cited_neighbours
    )


SEEDS = 10  # best candidates at which a walk starts
DAMPING = 0.85  # probability of each further step
STEPS = 2


def walk(graph: TemporalGraph, snapshot: GraphSnapshot, best: Rows) -> SparseVector:
    """Return how often a walk visits each paper after its start; papers that it does not visit are left out.

    Args:
        graph: The citation graph.
        snapshot: The known citations.
        best: The best candidates of one query; the first `SEEDS` with a known citation are the starts, weighted by
            1 / (`RRF_K0` + rank).
    """
    starts = best[snapshot.is_citing(best) | (snapshot.citations(best) > 0)][:SEEDS]
    weights = 1 / (RRF_K0 + np.arange(1, len(starts) + 1))
    here = SparseVector(starts, weights / max(weights.sum(), 1e-9))
    visits = SparseVector(starts[:0], weights[:0])
    for step in range(1, STEPS + 1):
        here = _step(graph, snapshot, here)
        visits = visits.plus(here.scaled((1 - DAMPING) * DAMPING**step), graph.scratch)
    return visits


def _step(graph: TemporalGraph, snapshot: GraphSnapshot, here: SparseVector) -> SparseVector:
    """Return the probability of each paper after one more step."""
    at, citations = here.rows, graph.index.graph
    is_citing = snapshot.is_citing(at)
    links = np.where(is_citing, citations.degrees(at), 0) + snapshot.citations(at)
    leaving = replace(here, weights=here.weights / np.maximum(links, 1))
    cited = leaving.only(is_citing).times(citations.lists, graph.scratch)
    citing = leaving.times(graph.citers.lists, graph.scratch)
    return cited.plus(citing.only(snapshot.is_citing(citing.rows)), graph.scratch)


Links = Any  # a sparse matrix of ones in CSR form, shape (candidates, papers)

MOST = 100  # links of one candidate


def citers(graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows) -> Links:
    """Return the papers that are known to cite each paper."""
    links = _links(*graph.citers.lists(rows), graph)
    return thinned(links, snapshot.is_citing(links.indices))


def references(graph: TemporalGraph, snapshot: GraphSnapshot, rows: Rows) -> Links:
    """Return the known references of each paper of an earlier year than the query's."""
    links = _links(*graph.index.graph.lists(rows), graph)
    is_known = np.repeat(snapshot.is_citing(rows), np.diff(links.indptr))
    return thinned(links, (graph.index.papers.years[links.indices] < snapshot.year) & is_known)


def _links(columns: Rows, lengths: npt.NDArray[np.int64], graph: TemporalGraph) -> Links:
    from scipy.sparse import csr_array

    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    shape = (len(lengths), len(graph.index.papers))
    return csr_array((np.ones(len(columns), np.float32), columns, ends), shape=shape)


def either(one: Links, other: Links) -> Links:
    """Return the links of two kinds together; a paper that both have counts once."""
    both = (one + other).tocsr()
    both.data[:] = 1
    both.sort_indices()
    return both


def thinned(links: Links, chosen: Flags) -> Links:
    """Return an even sample of at most `MOST` of the chosen links of each candidate.

    Args:
        links: The links to choose from.
        chosen: The links that may be in the sample, in the order of `links.indices`.
    """
    links = _only(links, chosen)
    sizes = np.diff(links.indptr)
    if sizes.max(initial=0) <= MOST:
        return links
    place = np.arange(len(links.indices)) - np.repeat(links.indptr[:-1], sizes)
    size = np.repeat(sizes, sizes)
    share = np.minimum(MOST, size)
    return _only(links, place * share // size != (place - 1) * share // size)


def _only(links: Links, chosen: Flags) -> Links:
    from scipy.sparse import csr_array

    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])[links.indptr]
    return csr_array((links.data[chosen], links.indices[chosen], ends), shape=links.shape)


def compact(links: Links) -> tuple[Rows, Links]:
    """Return the distinct linked papers, rising, and the links with their positions as columns."""
    from scipy.sparse import csr_array

    distinct, columns = np.unique(links.indices, return_inverse=True)
    shape = (links.shape[0], len(distinct))
    return distinct.astype(np.int32), csr_array((links.data, columns, links.indptr), shape=shape)


def centroid_similarity(query: QueryVector, links: Links) -> Scores:
    """Return the cosine of the query's vector and the mean direction of the linked papers, shape (candidates,).

    It is NaN for a candidate without links.

    Args:
        query: The vector of the query.
        links: Ones at the links of each candidate.
    """
    distinct, links = compact(links)
    vectors = query.of_papers(distinct)
    links.data = links.data / _lengths(vectors)[links.indices]
    sums = links @ vectors
    return np.where(np.diff(links.indptr) > 0, unit(sums) @ unit(query.values), np.nan).astype(
        np.float32
    )


def unit(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return vectors of length 1."""
    return vectors / _lengths(vectors)[..., None]


def _lengths(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the length of each vector, at least 1e-9; no copy of the vectors is made."""
    return np.maximum(np.sqrt(np.einsum("...i,...i->...", vectors, vectors)), np.float32(1e-9))


EXPAND = "expand"  # the name of the hits of the expansion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedCandidates(CandidateSet):
    """The retrieved and the added candidates of one query, before a learning-to-rank model orders them.

    The order is the weighted reciprocal rank fusion of the retrieved list and the expansion.
    """

    neighbour_scores: NeighbourScores  # of each paper of `hits`, in its order
    snapshot: GraphSnapshot  # the citations that are known for the query


class CandidateExpander:
    """A stage that adds the papers that the neighbours of each query cite or are cited together with."""

    def __init__(self, graph: TemporalGraph, config: ExpandConfig | None = None) -> None:
        """Prepare; `graph` defines the known citations, `config` the number and the weights of neighbours."""
        self.config = config or ExpandConfig()
        self.graph = graph
        self._id_rank: Rank = graph.index.id_rank
        self._years = graph.index.papers.years

    def run(
        self,
        batch: QueryBatch,
        candidates: Sequence[CandidateSet],
        progress: Progress = no_progress,
    ) -> list[ExpandedCandidates]:
        """Add to each query the eligible papers that its neighbours cite or are cited together with.

        Args:
            batch: The queries. The known references of a query are its first neighbours.
            candidates: One candidate set per query; its first papers are the neighbours.
            progress: Not called, because expansion is fast.

        Returns:
            One per query, in the order given.
        """
        same: defaultdict[GraphSnapshot, list[int]] = defaultdict(list)
        for i, snapshot in enumerate(self.graph.snapshots(batch.queries, batch.eligible)):
            same[snapshot].append(i)
        expanded: dict[int, ExpandedCandidates] = {}
        for snapshot, positions in same.items():
            lists = [
                _closest_first(candidates[i].rows, batch.known_references(i)) for i in positions
            ]
            scores = neighbour_scores(self.graph, snapshot, lists, self.config)
            for i, of_query in zip(positions, scores, strict=True):
                expanded[i] = self._joined(batch.eligible[i], candidates[i], of_query, snapshot)
        return [expanded[i] for i in range(len(batch))]

    def _joined(
        self,
        rule: Eligibility,
        retrieved: CandidateSet,
        scores: NeighbourScores,
        snapshot: GraphSnapshot,
    ) -> ExpandedCandidates:
        added = self._added(rule, scores)
        hits = rrf([retrieved.hits, added], self._id_rank, weights=[1, self.config.weight])
        return ExpandedCandidates(
            hits=hits,
            hits_by_source={**retrieved.hits_by_source, EXPAND: added},
            neighbour_scores=scores.at(hits.rows),
            snapshot=snapshot,
            query_vector=retrieved.query_vector,
            sentences=retrieved.sentences,
        )

    def _added(self, rule: Eligibility, scores: NeighbourScores) -> Hits:
        """Return the eligible papers with a neighbour score above 0, highest first."""
        weight = scores.cites + scores.co
        keep = within(rule, self._years, scores.rows) & (weight > 0)
        rows, weight = scores.rows[keep], weight[keep]
        return Hits.ordered(rows, weight, self._id_rank, self.config.extra)


def _closest_first(retrieved: Rows, cited: Sequence[int]) -> Rows:
    """Return the known references, then the retrieved papers that are not among them."""
    known = np.array(sorted(cited), np.int32)
    return np.concatenate([known, retrieved[~np.isin(retrieved, known)]])
