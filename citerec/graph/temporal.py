"""Which citations may be known for a query: those of the citation graph as of its year, without its own.

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
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from threading import local
from typing import Self

import numpy as np

from citerec.files.arrays import Array, Flags, Rows, Years, offsets
from citerec.index.folder import IndexFolder
from citerec.index.graph import UNDATED, CitedBy, Graph
from citerec.index.papers import NO_YEAR
from citerec.rules.eligible import query_rows
from citerec.rules.held_out import train_papers
from citerec.types import YEARS, Eligibility, Query

CitationCounts = Rows  # int32, as row numbers


RECENT_YEARS = 3  # years of recent citations


@dataclass(frozen=True, slots=True, eq=False)
class GraphSnapshot:
    """The citations that are known at one query's time: looked up when a query needs them."""

    year: int  # the query's, for ages; `snapshot_before` defines it for a query without a year
    is_empty: bool  # whether no citation is known
    before: int | None  # the first year of unknown citations; None if all are known
    recent_from: int  # the first year of recent citations
    # rows whose citations would be known by their year, but are not
    own: tuple[int, ...]
    graph: Graph
    cited_by: CitedBy  # its transpose
    years: Years  # of the papers, shape (papers,)
    temporal: "TemporalGraph"  # which it is a snapshot of

    def is_citing(self, rows: Rows) -> Flags:
        """Return whether the references of some papers are known, shape of `rows`."""
        known = self.graph.degrees(rows) > 0
        if self.before is not None:
            known &= citing_before(self.before, self.years[rows])
        for row in self.own:
            known &= rows != row
        return known

    def citations(self, rows: Rows) -> CitationCounts:
        """Return how many known citations some papers have, shape of `rows`."""
        return self._without_own(
            self.cited_by.counts(rows, self.before), rows, self.own
        )

    def recent_citations(self, rows: Rows) -> CitationCounts:
        """Return how many of them are of the last `RECENT_YEARS` years, shape of `rows`."""
        before = UNDATED if self.before is None else self.before
        recent = self.cited_by.counts(rows, before) - self.cited_by.counts(
            rows, self.recent_from
        )
        own = tuple(
            row for row in self.own if self.years[row] >= max(self.recent_from, 1)
        )
        return self._without_own(recent.clip(min=0), rows, own)

    def _without_own(
        self, counts: CitationCounts, rows: Rows, own: tuple[int, ...]
    ) -> CitationCounts:
        for row in own:
            counts -= np.isin(rows, self.graph.references(row))
        return counts

    def citing(self, row: int) -> Rows:
        """Return the papers that are known to cite the paper at `row`, rising."""
        rows = self.temporal.all_citers[row]
        return rows[self.is_citing(rows)]

    def references(self, row: int) -> Rows:
        """Return the known references of the paper at `row`."""
        [is_known] = self.is_citing(np.array([row], np.int32))
        references = self.temporal.index.graph.references(row)
        return references if is_known else references[:0]


class CitationScope(StrEnum):
    """Whose citations are known at query time."""

    TRAIN = "train"  # of train papers of an earlier year
    EARLIER = "earlier"  # of all papers of an earlier year
    PUBLISHED = "published"  # of all papers of an earlier year; for a draft outside the corpus, of its own year, too


PROTOCOL = (CitationScope.TRAIN, CitationScope.EARLIER)  # the choices of an evaluation


def first_unknown_year(
    query: Query,
    eligible: Eligibility,
    scope: CitationScope,
    *,
    in_corpus: bool,
    latest: int,
) -> int | None:
    """Return the first year whose citations are unknown for a query; None if all citations are known.

    The module's docstring has the rules. `in_corpus` is whether the query is a paper of the corpus, `latest` the year
    of the latest paper of the corpus.
    """
    if scope in PROTOCOL:
        return query.year
    last = eligible.year_max
    newest = max(latest, query.year or latest)
    # a bound beyond the draft and every paper is none
    if last is not None and last > newest:
        last = newest if newest > latest else None
    after = None if last is None else min(last, YEARS[-1]) + 1
    if not in_corpus:
        return after
    return min((year for year in (query.year, after) if year is not None), default=None)


def citing_before(year: int | None, years: Years) -> Flags:
    """Return a mask of the papers that were published before a year, shape (n,); all papers for None."""
    if year is None:
        return np.ones(len(years), np.bool_)
    return (years < year) & (years != NO_YEAR)


def citations_of(graph: Graph, citing: Flags) -> Graph:
    """Return the graph of the citations that flagged papers make; the others cite nothing."""
    keep = citing[graph.citing]
    degrees = np.where(citing, graph.lengths, 0)
    return Graph(offsets(degrees), graph.indices[keep])


class TemporalGraph:
    """The citation graph of an index, with a snapshot for each query's time."""

    def __init__(self, index: IndexFolder, scope: CitationScope) -> None:
        """Prepare; the citations are read on first use. `scope` selects the papers whose citations count."""
        self.index = index
        self.scope = scope
        self._lag = 0
        self._years = index.papers.years
        self._latest = int(self._years.max(initial=NO_YEAR))
        self._per_thread = local()

    def lagged(self, years: int) -> Self:
        """Return a graph that does not know the citations of the last `years` years before each query's year, either.

        Citations of dev and test papers are unknown in an evaluation, and a corpus may be older than a query.
        """
        other = copy(self)
        other._lag = years
        return other

    def snapshots(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility]
    ) -> list[GraphSnapshot]:
        """Return the snapshot of each query by its rule."""
        found: list[GraphSnapshot] = []
        own_rows = query_rows(queries, self.index.papers)
        for query, rule, own in zip(queries, eligible, own_rows, strict=True):
            in_corpus = bool(own)
            year = first_unknown_year(
                query, rule, self.scope, in_corpus=in_corpus, latest=self._latest
            )
            is_draft = self.scope not in PROTOCOL and not in_corpus
            found.append(self.snapshot_before(year, own=own, is_draft=is_draft))
        return found

    def snapshot_before(
        self, year: int | None, *, own: tuple[int, ...] = (), is_draft: bool = False
    ) -> GraphSnapshot:
        """Return the snapshot before the first day of a year, the first one of unknown citations.

        If all are known (None), its year is that after the latest paper. `own` are the rows of the query, see
        `query_rows`; `is_draft`: it is a draft of the previous year, whose citations are known.
        """
        now = self._latest + 1 if year is None else year
        before = now - self._lag if self._lag else year
        graph, cited_by = self._known
        is_citing = citing_before(before, self._years[[*own]])
        own = tuple(
            r
            for r, c in zip(own, is_citing, strict=True)
            if c and len(graph.references(r))
        )
        by_year, _ = self._by_year
        citing = by_year if before is None else by_year[NO_YEAR + 1 : max(before, 0)]
        return GraphSnapshot(
            year=now - is_draft,
            is_empty=int(citing.sum()) == len(own),
            before=before,
            recent_from=now - RECENT_YEARS,
            own=own,
            graph=graph,
            cited_by=cited_by,
            years=self._years,
            temporal=self,
        )

    @cached_property
    def all_citers(self) -> CitedBy:
        """The papers that cite each paper, at any time and of any scope: what reads them filters by `is_citing`."""
        return self.index.graph.transposed(self._years)

    @cached_property
    def _known(self) -> tuple[Graph, CitedBy]:
        """The citations that count, whatever their year, and their transpose."""
        graph = self.index.graph
        if self.scope is not CitationScope.TRAIN:
            return graph, self.all_citers
        of_train_papers = citations_of(graph, train_papers(self.index))
        return of_train_papers, of_train_papers.transposed(self._years)

    @cached_property
    def _by_year(self) -> tuple[Array, Array]:
        """The number of papers with references of each year from `NO_YEAR` on, and that of their references."""
        degrees = self._known[0].lengths
        papers = np.bincount(self._years, degrees > 0)
        return papers, np.bincount(self._years, degrees)

    def mean_references(self, snapshot: GraphSnapshot) -> float:
        """Return how many references the latest of the known citing papers have, the mean of a tenth; 0 for none."""
        before = snapshot.before
        years = slice(None) if before is None else slice(NO_YEAR + 1, max(before, 0))
        papers, references = (counts[years][::-1].cumsum() for counts in self._by_year)
        if not papers.any():
            return 0.0
        tenth = int(np.searchsorted(papers, papers[-1] / 10))
        return float(references[tenth] / papers[tenth])

    @property
    def scratch(self) -> Rows:
        """An array of any content for the work of this thread, shape (papers,); only touched parts take memory."""
        if not hasattr(self._per_thread, "scratch"):
            self._per_thread.scratch = np.empty(len(self._years), np.int32)
        return self._per_thread.scratch
