"""Features that read more than the hits and neighbours of a query: computed only for a model that reads them."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

import numpy as np

from citerec.fuse import min_max
from citerec.rank.catalogue import FEATURES, Group
from citerec.rank.expansion import ExpandedCandidates
from citerec.rank.linked import Links, centroid_similarity, citers, either, references
from citerec.rank.sentences import Table, cosines, highest, near, reciprocal_ranks, standardised
from citerec.rank.venues import VenueRates
from citerec.rank.walk import walk
from citerec.rank.words import Titles, Venues
from citerec.rules.known import Scores, TemporalGraph
from citerec.types import Query, QueryVector


class Evidence:
    """Computes these features on one index; reuse the object."""

    def __init__(
        self,
        graph: TemporalGraph,
        *,
        venues: Callable[[], Venues],
        titles: Titles,
    ) -> None:
        """Prepare; venues are read on first use."""
        self.graph, self.titles, self._read_venues = graph, titles, venues

    def columns(
        self, query: Query, candidates: ExpandedCandidates, names: Collection[str]
    ) -> dict[str, Scores]:
        """Return the features by name, each of shape (papers,): NaN if it is not among `names`, or missing."""
        missing = np.full(len(candidates.rows), np.nan, np.float32)
        wanted = {*names} if len(missing) else set[str]()
        if candidates.snapshot.is_empty:
            wanted -= _OF_CITATIONS
        one = _QueryEvidence(query, candidates, self)
        return {
            name: compute(one) if name in wanted else missing for name, compute in _COLUMNS.items()
        }

    @cached_property
    def venue_rates(self) -> VenueRates:
        """The citations between venues."""
        return VenueRates(self.graph, self._read_venues())


class _QueryEvidence:
    """Computes the features of one query."""

    def __init__(self, query: Query, candidates: ExpandedCandidates, of_index: Evidence) -> None:
        self._query, self._vector = query, candidates.query_vector
        self._rows, self._snapshot = candidates.rows, candidates.snapshot
        self._sentences = candidates.sentences
        self._graph, self._index = of_index.graph, of_index

    def linked_similarity(self) -> Scores:
        return self._by_vector(centroid_similarity, self._linked)

    def walk(self) -> Scores:
        visited = walk(self._graph, self._snapshot, self._rows)
        visits = visited.at(self._rows, self._graph.scratch)
        return (visits / max(float(visits.max(initial=0)), 1e-9)).astype(np.float32)

    def venue_citations(self) -> Scores:
        return self._index.venue_rates.rates(self._snapshot, self._query.venue, self._rows)

    def sentence(self) -> Scores:
        if self._cosines is None:
            return self._missing
        return highest(standardised(self._cosines[1:] if len(self._cosines) > 1 else self._cosines))

    def sentences_near(self) -> Scores:
        return self._missing if self._cosines is None else near(self._cosines)

    def sentence_bm25(self) -> Scores:
        return self._missing if self._bm25 is None else highest(standardised(self._bm25))

    def sentence_bm25_rank(self) -> Scores:
        return self._missing if self._bm25 is None else highest(reciprocal_ranks(self._bm25))

    def title_found(self) -> Scores:
        return self._index.titles.found_in(
            f"{self._query.title} {self._query.abstract}", self._rows
        )

    def _linked(self) -> Links:
        """Return the papers that each candidate cites or is cited by."""
        place = self._graph, self._snapshot, self._rows
        return either(citers(*place), references(*place))

    @cached_property
    def _cosines(self) -> Table | None:
        """The cosines of title and sentences, in this order, and the candidates; None without vectors."""
        vectors = self._sentences.vectors
        if vectors is None or self._vector is None:
            return None
        return cosines(vectors(), self._vector.of_papers(self._rows))

    @cached_property
    def _bm25(self) -> Table | None:
        """The scores by BM25 of title and sentences and the candidates; None without."""
        scores = self._sentences.bm25
        return scores(self._rows) if scores else None

    @property
    def _missing(self) -> Scores:
        return np.full(len(self._rows), np.nan, np.float32)

    def _by_vector(
        self, similarity: Callable[[QueryVector, Links], Scores], links: Callable[[], Links]
    ) -> Scores:
        if self._vector is None:
            return self._missing
        return _scaled(similarity(self._vector, links()))


def _scaled(values: Scores) -> Scores:
    """Return values scaled to [0, 1] over the candidates: the cosines of one encoder are not those of another."""
    known = np.isfinite(values)
    scaled = np.full(len(values), np.nan, np.float32)
    scaled[known] = min_max(values[known])
    return scaled


_COLUMNS: Mapping[str, Callable[[_QueryEvidence], Scores]] = {
    "linked_similarity": _QueryEvidence.linked_similarity,
    "walk": _QueryEvidence.walk,
    "venue_citations": _QueryEvidence.venue_citations,
    "sentence": _QueryEvidence.sentence,
    "sentences_near": _QueryEvidence.sentences_near,
    "sentence_bm25": _QueryEvidence.sentence_bm25,
    "sentence_bm25_rank": _QueryEvidence.sentence_bm25_rank,
    "title_found": _QueryEvidence.title_found,
}
SENTENCE_VECTORS = frozenset(("sentence", "sentences_near"))  # the features of these vectors
_OF_CITATIONS = frozenset(feature.name for feature in FEATURES if Group.GRAPH in feature.groups)
