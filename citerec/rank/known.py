"""Which citations a query knows: never its own, and none that was made after it was written.

- Evaluation and training are strict: citations made in an earlier year than the query's, by train papers (`TRAIN`) or
  by all papers (`EARLIER`).
- `recommend` (`PUBLISHED`) is strict, too, for a query that is a paper of the corpus. A draft that is not was written
  after everything that it may be given was published, so it knows the citations of all papers of no later year than its
  own, or of all papers if it has no year.

With `--year-max Y` a query knows nothing that was published after Y; a draft knows the citations of Y, too.
`first_unknown_year` is the one place that decides this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.corpus.queries import QUERIES
from citerec.corpus.splits import read_ids
from citerec.eligibility import own_rows
from citerec.folder import IndexFolder
from citerec.types import Eligible, Query
from citerec.valid import YEARS

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int32]

Key = tuple[int | None, tuple[int, ...], bool]  # year, own rows, is_draft

LATELY = 3  # years that count as the last ones
_KEPT = 16  # years whose counts are in memory at once


class KnownGraph(StrEnum):
    """Which citations a stage may use at query time."""

    TRAIN = "train"  # of train papers of an earlier year
    EARLIER = "earlier"  # of all papers of an earlier year
    PUBLISHED = "published"  # as `recommend`: likewise, and those of its own year for a draft that is not in the corpus


PROTOCOL = (KnownGraph.TRAIN, KnownGraph.EARLIER)  # what an evaluation may choose from


def first_unknown_year(
    query: Query, eligible: Eligible, graph: KnownGraph, *, in_corpus: bool
) -> int | None:
    """Return the first year whose citations a query does not know; None if it knows those of every year.

    Args:
        query: A query of a year does not know the citations made in that year, unless it is a draft (see `PUBLISHED`).
        eligible: Its rule; `recommend` knows no citation that was made after the last year of this rule.
        graph: Whose citations count.
        in_corpus: Whether the query is a paper of the corpus.
    """
    if graph in PROTOCOL:
        return query.year
    last = eligible.year_max
    after = None if last is None else min(last, YEARS[-1]) + 1
    if not in_corpus:
        return after
    return min((year for year in (query.year, after) if year is not None), default=None)


def citing_before(year: int | None, years: npt.NDArray[np.int32]) -> Flags:
    """Return which papers have citations that were made before a year, shape (n,); None for all papers."""
    if year is None:
        return np.ones(len(years), np.bool_)
    return (years < year) & (years != NO_YEAR)


def train_papers(index: IndexFolder) -> Flags:
    """Return which papers are of the train split, shape (n,).

    Where a corpus ships queries of its own, those are all papers but the ones whose ids dev or test queries have.
    """
    ships_queries = (index.splits / QUERIES).is_file()
    named = ("dev", "test") if ships_queries else ("train",)
    ids = [docid for split in named for docid in read_ids(index.splits / f"{split}.ids")]
    rows = index.papers.rows_of(ids)
    train = np.full(len(index.papers), ships_queries)
    train[rows[rows >= 0]] = not ships_queries
    return train


@dataclass(frozen=True, slots=True, eq=False)
class GraphSnapshot:
    """What is known at one query's time."""

    year: (
        int  # the query's, to which ages are counted; see `TemporalGraph.at` for one without a year
    )
    citing: Flags  # who has citations that are known, shape (papers,)
    counts: Counts  # known citations of each paper, shape (papers,)
    recent: Counts  # of those, the ones made in the last `LATELY` years

    @property
    def is_empty(self) -> bool:
        """Whether no citation is known at all."""
        return not self.counts.any()


class TemporalGraph:
    """The citation graph of an index, as known at each query's time."""

    def __init__(self, index: IndexFolder, graph: KnownGraph) -> None:
        """Read the graph of an index when it is first asked for; `graph` says whose citations count."""
        self.index, self.graph = index, graph
        self._years = index.papers.years
        self._seen: dict[Key, GraphSnapshot] = {}

    def of(self, queries: Sequence[Query], eligible: Sequence[Eligible]) -> list[GraphSnapshot]:
        """Return what each query knows; queries that know the same share one object.

        Args:
            queries: Papers of the corpus, or drafts.
            eligible: One rule per query.
        """
        keys: list[Key] = []
        for query, rule, own in zip(
            queries, eligible, own_rows(queries, self.index.papers), strict=True
        ):
            year = first_unknown_year(query, rule, self.graph, in_corpus=bool(own))
            is_draft = self.graph not in PROTOCOL and not own
            keys.append((year, self._known_rows(year, own), is_draft))
        made = {key: self.at(key[0], own=key[1], is_draft=key[2]) for key in dict.fromkeys(keys)}
        return [made[key] for key in keys]

    def at(
        self, year: int | None, *, own: tuple[int, ...] = (), is_draft: bool = False
    ) -> GraphSnapshot:
        """Return what is known just before a year begins.

        Args:
            year: The first whose citations are unknown; None if all are known, which is the year after the latest.
            own: The query's own rows, as `own_rows` gives them; none for a query outside the corpus.
            is_draft: Whether the query is a draft of the year before that one, whose citations it knows.
        """
        own = self._known_rows(year, own)
        key = year, own, is_draft
        if key not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen.pop(next(iter(self._seen)))
            snapshot = self._at(year, own)
            self._seen[key] = replace(snapshot, year=snapshot.year - 1) if is_draft else snapshot
        return self._seen[key]

    def _known_rows(self, year: int | None, own: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of a query's own rows whose citations would be known otherwise."""
        return tuple(row for row in own if citing_before(year, self._years[row : row + 1])[0])

    @cached_property
    def cites(self) -> Any:
        """Who cites whom, all of it, as a sparse matrix of ones, shape (papers, papers)."""
        from scipy.sparse import csr_array

        graph, papers = self.index.graph, len(self._years)
        ones = np.ones(len(graph.indices), np.float32)
        return csr_array((ones, graph.indices, graph.indptr), shape=(papers, papers))

    @cached_property
    def cited_by(self) -> Any:
        """By whom each paper is cited: `cites`, transposed."""
        return self.cites.T.tocsr()

    def _at(self, year: int | None, own: tuple[int, ...]) -> GraphSnapshot:
        citing = citing_before(year, self._years) & self._speaking
        citing[list(own)] = False
        now = int(self._years.max(initial=NO_YEAR)) + 1 if year is None else year
        lately = citing & (self._years != NO_YEAR) & (self._years >= now - LATELY)
        return GraphSnapshot(now, citing, self._counted(citing), self._counted(lately))

    def _counted(self, citing: Flags) -> Counts:
        cited = self.index.graph.indices[citing[self._citing]]
        return np.bincount(cited, minlength=len(self._years)).astype(np.int32)

    @cached_property
    def _citing(self) -> npt.NDArray[np.int32]:
        return self.index.graph.citing

    @cached_property
    def _speaking(self) -> Flags:
        """Who cites anything, of those whose citations count at all."""
        cites: Flags = np.diff(self.index.graph.indptr) > 0
        return cites & train_papers(self.index) if self.graph is KnownGraph.TRAIN else cites
