"""How often the papers of one venue cite those of another, as of a query's year."""

import numpy as np

from citerec.rank.words import Venues
from citerec.rules.known import GraphSnapshot, Rows, Scores, TemporalGraph

MOST = 20_000  # papers of one venue whose references are counted: an even sample of a larger one


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
        of_venue = of_venue[:: -(-len(of_venue) // MOST) or 1]
        cited, _ = self._graph.index.graph.lists(of_venue[snapshot.is_citing(of_venue)])
        cited = cited[self._graph.index.papers.years[cited] < snapshot.year]
        counts = np.bincount(self._venues.numbers[cited], minlength=len(self._ends))
        total = counts[1:].sum()
        if not total:
            return missing
        candidate_venues = self._venues.numbers[rows]
        rates = counts[candidate_venues] / total
        return np.where(candidate_venues == 0, np.nan, rates).astype(np.float32)
