"""The citation graph as of a query's year: without the query's own citations and without later citations.

- Evaluation and training use citations of an earlier year than the query's, made by train papers (`TRAIN`) or by all
  papers (`EARLIER`).
- `recommend` (`PUBLISHED`) uses citations of an earlier year for a query that is a paper of the corpus. A draft outside
  the corpus is newer than all its eligible papers. Its known citations are those of all papers up to its own year, or
  of all papers if it has no year.

With `--year-max Y`, citations of papers that were published after Y are unknown; for a draft, those of Y are known.
A bound that is later than the draft and than every paper of the corpus is no bound, so it changes no list.
Only `first_unknown_year` decides this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from threading import local
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from citerec.corpus.citedby import UNDATED, CitedBy, transpose_of
from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR
from citerec.folder import IndexFolder
from citerec.rules.eligible import query_rows
from citerec.rules.held_out import train_papers
from citerec.types import Eligibility, Query
from citerec.valid import YEARS

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


Scores = npt.NDArray[np.float32]

Key = tuple[int | None, tuple[int, ...], bool]  # year, own rows, is_draft

_MAX_SNAPSHOTS = 16  # snapshots in memory at once


class CitationScope(StrEnum):
    """Whose citations are known at query time."""

    TRAIN = "train"  # of train papers of an earlier year
    EARLIER = "earlier"  # of all papers of an earlier year
    PUBLISHED = "published"  # of all papers of an earlier year; for a draft outside the corpus, of its own year, too


PROTOCOL = (CitationScope.TRAIN, CitationScope.EARLIER)  # the choices of an evaluation


def first_unknown_year(
    query: Query, eligible: Eligibility, scope: CitationScope, *, in_corpus: bool, latest: int
) -> int | None:
    """Return the first year whose citations are unknown for a query; None if all citations are known.

    Args:
        query: Citations made in the query's year are unknown, unless the query is a draft (see `PUBLISHED`).
        eligible: The rule of the query. For `PUBLISHED`, citations after the last year of the rule are unknown.
        scope: The papers whose citations count.
        in_corpus: Whether the query is a paper of the corpus.
        latest: The year of the latest paper of the corpus.
    """
    if scope in PROTOCOL:
        return query.year
    last, newest = eligible.year_max, max(latest, query.year or latest)
    if last is not None and last > newest:  # a bound beyond the draft and every paper is none
        last = newest if newest > latest else None
    after = None if last is None else min(last, YEARS[-1]) + 1
    if not in_corpus:
        return after
    return min((year for year in (query.year, after) if year is not None), default=None)


def latest_year(years: npt.NDArray[np.int32]) -> int:
    """Return the year of the latest paper; `NO_YEAR` if no paper has a year."""
    return int(years.max(initial=NO_YEAR))


def citing_before(year: int | None, years: npt.NDArray[np.int32]) -> Flags:
    """Return a mask of the papers that were published before a year, shape (n,); all papers for None."""
    if year is None:
        return np.ones(len(years), np.bool_)
    return (years < year) & (years != NO_YEAR)


class TemporalGraph:
    """The citation graph of an index, with a snapshot for each query's time."""

    def __init__(self, index: IndexFolder, scope: CitationScope) -> None:
        """Prepare; the citations are read on first use. `scope` selects the papers whose citations count."""
        self.index, self.scope = index, scope
        self._years = index.papers.years
        self._per_thread = local()
        self._snapshots: dict[Key, GraphSnapshot] = {}

    def snapshots(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility]
    ) -> list[GraphSnapshot]:
        """Return the snapshot of each query; queries with the same known citations share one object.

        Args:
            queries: Papers of the corpus, or drafts.
            eligible: One rule per query.
        """
        keys: list[Key] = []
        for query, rule, own in zip(
            queries, eligible, query_rows(queries, self.index.papers), strict=True
        ):
            year = first_unknown_year(
                query, rule, self.scope, in_corpus=bool(own), latest=self._latest
            )
            is_draft = self.scope not in PROTOCOL and not own
            keys.append((year, self._known_rows(year, own), is_draft))
        made = {
            key: self.snapshot_before(key[0], own=key[1], is_draft=key[2])
            for key in dict.fromkeys(keys)
        }
        return [made[key] for key in keys]

    def snapshot_before(
        self, year: int | None, *, own: tuple[int, ...] = (), is_draft: bool = False
    ) -> GraphSnapshot:
        """Return the snapshot before the first day of a year.

        Args:
            year: The first year of unknown citations. None if all are known; the snapshot's year is then the year after
                the latest paper.
            own: The query's own rows, as `query_rows` returns them; empty for a query outside the corpus.
            is_draft: Whether the query is a draft of the previous year, whose citations are known.
        """
        own = self._known_rows(year, own)
        key = year, own, is_draft
        if key not in self._snapshots:
            if len(self._snapshots) >= _MAX_SNAPSHOTS:
                self._snapshots.pop(next(iter(self._snapshots)))
            snapshot = self._new_snapshot(year, own)
            self._snapshots[key] = snapshot.as_of(snapshot.year - 1) if is_draft else snapshot
        return self._snapshots[key]

    def _known_rows(self, year: int | None, own: tuple[int, ...]) -> tuple[int, ...]:
        """Return the query's own rows whose citations a snapshot would include otherwise."""
        return tuple(row for row in own if citing_before(year, self._years[row : row + 1])[0])

    @cached_property
    def citers(self) -> CitedBy:
        """The papers that cite each paper."""
        return transpose_of(self.index.graph, self._years)

    @property
    def scratch(self) -> Rows:
        """An array of any content for the work of this thread, shape (papers,); only touched parts take memory."""
        if not hasattr(self._per_thread, "scratch"):
            self._per_thread.scratch = np.empty(len(self._years), np.int32)
        return self._per_thread.scratch

    def _new_snapshot(self, year: int | None, own: tuple[int, ...]) -> GraphSnapshot:
        now = self._latest + 1 if year is None else year
        if self.scope is CitationScope.TRAIN:
            citing = citing_before(year, self._years) & self._papers_with_references
            citing[list(own)] = False
            recent = citing & (self._years != NO_YEAR) & (self._years >= now - RECENT_YEARS)
            return ArraySnapshot(now, citing, self._counted(citing), self._counted(recent))
        own = tuple(row for row in own if len(self.index.graph.references(row)))
        return YearSnapshot(
            year=now,
            before=year,
            recent_from=now - RECENT_YEARS,
            own=own,
            is_empty=self._citing_before(year) == len(own),
            graph=self.index.graph,
            cited_by=self.citers,
            years=self._years,
        )

    def _citing_before(self, year: int | None) -> int:
        """Return how many papers with references were published before a year."""
        counts = self._citing_by_year
        return int(counts.sum() if year is None else counts[NO_YEAR + 1 : max(year, 0)].sum())

    @cached_property
    def _citing_by_year(self) -> npt.NDArray[np.int64]:
        """The number of papers with references of each year from `NO_YEAR` on."""
        return np.bincount(self._years[np.diff(self.index.graph.indptr) > 0])

    @cached_property
    def _latest(self) -> int:
        return latest_year(self._years)

    def _counted(self, citing: Flags) -> Counts:
        cited = self.index.graph.indices[citing[self._citing]]
        return np.bincount(cited, minlength=len(self._years)).astype(np.int32)

    @cached_property
    def _citing(self) -> npt.NDArray[np.int32]:
        return self.index.graph.citing

    @cached_property
    def _papers_with_references(self) -> Flags:
        """Mask of the papers with references that count, shape (papers,)."""
        cites: Flags = np.diff(self.index.graph.indptr) > 0
        return cites & train_papers(self.index) if self.scope is CitationScope.TRAIN else cites
