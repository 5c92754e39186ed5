"""Features that read more than the hits and neighbours of a query: computed only for a model that reads them."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.rank.authors import Authors
from citerec.rank.citing_titles import citing_titles_score
from citerec.rank.expansion import ExpandedCandidates
from citerec.rank.linked import (
    Links,
    centroid_similarity,
    citers,
    closest_similarity,
    either,
    references,
    sampled,
)
from citerec.rank.rates import VenueRates, citations_by_age, citations_by_year
from citerec.rank.walk import walk
from citerec.rank.words import Titles, Venues
from citerec.rules.eligible import query_rows
from citerec.rules.known import Scores, TemporalGraph, citing_before
from citerec.types import Query, QueryVector


class Evidence:
    """Computes these features on one index; reuse the object."""

    def __init__(
        self,
        graph: TemporalGraph,
        titles: Titles,
        *,
        authors: Callable[[], Authors],
        venues: Callable[[], Venues],
    ) -> None:
        """Prepare; authors and venues are read on first use."""
        self.graph, self.titles = graph, titles
        self._read_authors, self._read_venues = authors, venues

    def columns(
        self, query: Query, candidates: ExpandedCandidates, names: Collection[str]
    ) -> dict[str, Scores]:
        """Return the features by name, each of shape (papers,): NaN if it is not among `names`, or missing."""
        missing = np.full(len(candidates.rows), np.nan, np.float32)
        if candidates.snapshot.is_empty:
            return dict.fromkeys(_COLUMNS, missing)
        one = _QueryEvidence(query, candidates, self)
        return {
            name: compute(one) if name in names and len(missing) else missing
            for name, compute in _COLUMNS.items()
        }

    @cached_property
    def authors(self) -> Authors:
        """The authors of all papers."""
        return self._read_authors()

    @cached_property
    def venue_rates(self) -> VenueRates:
        """The citations between venues."""
        return VenueRates(self.graph, self._read_venues())


class _QueryEvidence:
    """Computes the features of one query."""

    def __init__(self, query: Query, candidates: ExpandedCandidates, of_index: Evidence) -> None:
        self._query, self._vector = query, candidates.query_vector
        self._rows, self._snapshot = candidates.rows, candidates.snapshot
        self._graph, self._index = of_index.graph, of_index

    @cached_property
    def _citers(self) -> Links:
        return citers(self._graph, self._snapshot, self._rows)

    @property
    def _years(self) -> npt.NDArray[np.int32]:
        return self._graph.index.papers.years

    def citing_titles(self) -> Scores:
        return citing_titles_score(self._query, self._citers, self._index.titles)

    def citing_similarity(self) -> Scores:
        return self._by_vector(centroid_similarity, lambda: self._citers)

    def citing_closest(self) -> Scores:
        return self._by_vector(closest_similarity, lambda: self._citers)

    def linked_similarity(self) -> Scores:
        return self._by_vector(centroid_similarity, self._linked)

    def author_topic(self) -> Scores:
        return self._by_vector(centroid_similarity, self._by_authors)

    def author_closest(self) -> Scores:
        return self._by_vector(closest_similarity, self._by_authors)

    def walk_50(self) -> Scores:
        visits = walk(self._graph, self._snapshot, self._rows, 50)
        return visits[:, self._rows].toarray()[0].astype(np.float32)

    def walk(self) -> Scores:
        visits = walk(self._graph, self._snapshot, self._rows)
        return visits[:, self._rows].toarray()[0].astype(np.float32)

    def citations_by_age(self) -> Scores:
        return citations_by_age(self._snapshot, self._rows, self._years)

    def citations_by_year(self) -> Scores:
        return citations_by_year(self._snapshot, self._rows, self._years)

    def venue_citations(self) -> Scores:
        return self._index.venue_rates.rates(self._snapshot, self._query.venue, self._rows)

    def _linked(self) -> Links:
        return either(self._citers, references(self._graph, self._snapshot, self._rows))

    def _by_authors(self) -> Links:
        """Return the other papers of the authors of each candidate, of an earlier year than the query."""
        papers = self._index.authors.papers_of_same(self._rows)
        others = papers.indices != np.repeat(self._rows, np.diff(papers.indptr))
        earlier = citing_before(self._snapshot.year, self._years)
        earlier[list(query_rows([self._query], self._graph.index.papers)[0])] = False
        return sampled(papers, earlier, others)

    def _by_vector(
        self, similarity: Callable[[QueryVector, Links], Scores], links: Callable[[], Links]
    ) -> Scores:
        if self._vector is None:
            return np.full(len(self._rows), np.nan, np.float32)
        return similarity(self._vector, links())


_COLUMNS: Mapping[str, Callable[[_QueryEvidence], Scores]] = {
    "citing_titles": _QueryEvidence.citing_titles,
    "citing_similarity": _QueryEvidence.citing_similarity,
    "citing_closest": _QueryEvidence.citing_closest,
    "linked_similarity": _QueryEvidence.linked_similarity,
    "walk": _QueryEvidence.walk,
    "citations_by_age": _QueryEvidence.citations_by_age,
    "citations_by_year": _QueryEvidence.citations_by_year,
    "author_topic": _QueryEvidence.author_topic,
    "author_closest": _QueryEvidence.author_closest,
    "walk_50": _QueryEvidence.walk_50,
    "venue_citations": _QueryEvidence.venue_citations,
}
