"""The citations that are known at a query's time: whether those of a paper are, and how many a paper has."""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from citerec.corpus.citedby import UNDATED, CitedBy
from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int32]

RECENT_YEARS = 3  # years of recent citations


class GraphSnapshot(Protocol):
    """The citations that are known at one query's time."""

    @property
    def year(self) -> int:
        """The query's, for ages; `TemporalGraph.snapshot_before` defines it for a query without a year."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether no citation is known."""
        ...

    @property
    def citing(self) -> Flags:
        """Whether the references of a paper are known, shape (papers,): for work that reads all papers."""
        ...

    @property
    def counts(self) -> Counts:
        """Known citations of each paper, shape (papers,): for work that reads all papers."""
        ...

    @property
    def recent(self) -> Counts:
        """Those of the last `RECENT_YEARS` years, shape (papers,): for work that reads all papers."""
        ...

    def is_citing(self, rows: Rows) -> Flags:
        """Return whether the references of some papers are known, shape of `rows`."""
        ...

    def citations(self, rows: Rows) -> Counts:
        """Return how many known citations some papers have, shape of `rows`."""
        ...

    def recent_citations(self, rows: Rows) -> Counts:
        """Return how many of them are of the last `RECENT_YEARS` years, shape of `rows`."""
        ...

    def as_of(self, year: int) -> Self:
        """Return the same citations for a query of another year."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArraySnapshot:
    """A snapshot of any citations: arrays of all papers."""

    year: int
    citing: Flags
    counts: Counts
    recent: Counts

    @property
    def is_empty(self) -> bool:
        """Whether no citation is known."""
        return not self.counts.any()

    def is_citing(self, rows: Rows) -> Flags:
        """Return whether the references of some papers are known, shape of `rows`."""
        return self.citing[rows]

    def citations(self, rows: Rows) -> Counts:
        """Return how many known citations some papers have, shape of `rows`."""
        return self.counts[rows]

    def recent_citations(self, rows: Rows) -> Counts:
        """Return how many of them are of the last `RECENT_YEARS` years, shape of `rows`."""
        return self.recent[rows]

    def as_of(self, year: int) -> Self:
        """Return the same citations for a query of another year."""
        return replace(self, year=year)


@dataclass(frozen=True, slots=True, eq=False)
class YearSnapshot:
    """A snapshot of the citations of all papers before a year: looked up when a query needs them."""

    year: int
    before: int | None  # the first year of unknown citations; None if all are known
    recent_from: int  # the first year of recent citations
    own: tuple[int, ...]  # rows whose citations would be known by their year, but are not
    is_empty: bool
    graph: Graph
    cited_by: CitedBy
    years: npt.NDArray[np.int32]  # of the papers, shape (papers,)

    def is_citing(self, rows: Rows) -> Flags:
        """Return whether the references of some papers are known, shape of `rows`."""
        known = self.graph.degrees(rows) > 0
        if self.before is not None:
            years = self.years[rows]
            known &= (years < self.before) & (years != NO_YEAR)
        for row in self.own:
            known &= rows != row
        return known

    def citations(self, rows: Rows) -> Counts:
        """Return how many known citations some papers have, shape of `rows`."""
        return self._without_own(self.cited_by.counts(rows, self.before), rows, self.own)

    def recent_citations(self, rows: Rows) -> Counts:
        """Return how many of them are of the last `RECENT_YEARS` years, shape of `rows`."""
        before = UNDATED if self.before is None else self.before
        recent = self.cited_by.counts(rows, before) - self.cited_by.counts(rows, self.recent_from)
        own = tuple(row for row in self.own if self.years[row] >= max(self.recent_from, 1))
        return self._without_own(recent.clip(min=0), rows, own)

    def as_of(self, year: int) -> Self:
        """Return the same citations for a query of another year."""
        return replace(self, year=year)

    @property
    def citing(self) -> Flags:
        """Whether the references of a paper are known, shape (papers,)."""
        return self.is_citing(self._all)

    @property
    def counts(self) -> Counts:
        """Known citations of each paper, shape (papers,)."""
        return self.citations(self._all)

    @property
    def recent(self) -> Counts:
        """Those of the last `RECENT_YEARS` years, shape (papers,)."""
        return self.recent_citations(self._all)

    @property
    def _all(self) -> Rows:
        return np.arange(len(self.years), dtype=np.int32)

    def _without_own(self, counts: Counts, rows: Rows, own: tuple[int, ...]) -> Counts:
        for row in own:
            counts -= np.isin(rows, self.graph.references(row))
        return counts
