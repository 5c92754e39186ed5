"""Citation rates: how often a paper is cited among papers of its age, and how often one venue cites another."""

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.rank.words import Venues
from citerec.rules.known import GraphSnapshot, Rows, Scores, TemporalGraph

Years = npt.NDArray[np.int32]


def citations_by_age(snapshot: GraphSnapshot, rows: Rows, years: Years) -> Scores:
    """Return log((1 + citations) / (1 + mean citations of its year)) of each paper, shape of `rows`.

    The mean is that of all `rows` of the same year: the candidates of a query are papers of its field. The citations
    are those that are known at the query's time. It is NaN for a paper without a year.
    """
    counts, of_rows = snapshot.counts[rows], years[rows]
    distinct, which = np.unique(of_rows, return_inverse=True)
    sums = np.bincount(which, counts, len(distinct))
    means = (sums / np.maximum(np.bincount(which, minlength=len(distinct)), 1))[which]
    values = np.log1p(counts) - np.log1p(means)
    return np.where(of_rows == NO_YEAR, np.nan, values).astype(np.float32)


def citations_by_year(snapshot: GraphSnapshot, rows: Rows, years: Years) -> Scores:
    """Return the same with the mean over all papers of the corpus."""
    counts, of_rows = snapshot.counts[rows], years[rows]
    number = np.maximum(np.bincount(years), 1)
    means = (np.bincount(years, snapshot.counts) / number)[of_rows]
    values = np.log1p(counts) - np.log1p(means)
    return np.where(of_rows == NO_YEAR, np.nan, values).astype(np.float32)


class VenueRates:
    """How often the papers of one venue cite those of another; reuse the object."""

    def __init__(self, graph: TemporalGraph, venues: Venues) -> None:
        """Prepare; `graph` is the citation graph of the expansion."""
        self._graph, self._venues = graph, venues
        self._order = np.argsort(venues.numbers, kind="stable").astype(np.int32)
        sizes = np.bincount(venues.numbers)
        self._ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])

    def rates(self, snapshot: GraphSnapshot, venue: str, rows: Rows) -> Scores:
        """Return the share of each candidate's venue in the known references of a venue's earlier papers.

        Args:
            snapshot: The known citations.
            venue: The venue of the query.
            rows: The candidates.

        Returns:
            In [0, 1], shape of `rows`. NaN if the venue of the candidate or of the query is unknown, or if no
            reference of the query's venue has a known venue.
        """
        number = self._venues.number(venue)
        missing = np.full(len(rows), np.nan, np.float32)
        if number <= 0:
            return missing
        of_venue = self._order[self._ends[number] : self._ends[number + 1]]
        cited = self._graph.cites[np.sort(of_venue[snapshot.citing[of_venue]])].indices
        cited = cited[self._graph.index.papers.years[cited] < snapshot.year]
        counts = np.bincount(self._venues.numbers[cited], minlength=len(self._ends))
        total = counts[1:].sum()
        if not total:
            return missing
        candidate_venues = self._venues.numbers[rows]
        rates = counts[candidate_venues] / total
        return np.where(candidate_venues == 0, np.nan, rates).astype(np.float32)
