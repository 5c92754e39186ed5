"""The citations that a query may know of: those made by papers of an earlier year, and never its own.

One rule for `recommend` (all papers of an earlier year), training and evaluation (train-split papers of an earlier
year). A query without a year knows all but its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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
from citerec.types import Query

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
Counts = npt.NDArray[np.int32]

LATELY = 3  # years that count as the last ones
_KEPT = 16  # years whose counts are in memory at once


class KnownGraph(StrEnum):
    """Which citations a stage may use at query time."""

    TRAIN = "train"
    EARLIER = "earlier"


def citing_before(year: int | None, years: npt.NDArray[np.int32]) -> Flags:
    """Return which papers a query of a year may know the citations of, shape (n,)."""
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
class AsOf:
    """What is known at one query's time."""

    year: int  # the query's, else the one after the latest of the corpus
    citing: Flags  # who has citations that are known, shape (papers,)
    counts: Counts  # known citations of each paper, shape (papers,)
    recent: Counts  # of those, the ones made in the last `LATELY` years

    @property
    def is_empty(self) -> bool:
        """Whether no citation is known at all."""
        return not self.counts.any()


class KnownCitations:
    """The citation graph of an index, as known at each query's time."""

    def __init__(self, index: IndexFolder, graph: KnownGraph) -> None:
        """Read the graph of an index when it is first asked for; `graph` says whose citations count."""
        self.index, self.graph = index, graph
        self._years = index.papers.years
        self._seen: dict[tuple[int | None, tuple[int, ...]], AsOf] = {}

    def of(self, queries: Sequence[Query]) -> list[AsOf]:
        """Return what each query knows; queries that know the same share one object."""
        own = own_rows(queries, self.index.papers)
        keys = [
            (query.year, self._known_rows(query.year, rows))
            for query, rows in zip(queries, own, strict=True)
        ]
        made = {key: self.at(key[0], own=key[1]) for key in dict.fromkeys(keys)}
        return [made[key] for key in keys]

    def at(self, year: int | None, *, own: tuple[int, ...] = ()) -> AsOf:
        """Return what is known in a year.

        Args:
            year: The query's; None for a query without a year.
            own: The query's own rows, as `own_rows` gives them; none for a query outside the corpus.
        """
        own = self._known_rows(year, own)
        key = year, own
        if key not in self._seen:
            if len(self._seen) >= _KEPT:
                self._seen.pop(next(iter(self._seen)))
            self._seen[key] = self._at(year, own)
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

    def _at(self, year: int | None, own: tuple[int, ...]) -> AsOf:
        citing = citing_before(year, self._years) & self._speaking
        citing[list(own)] = False
        now = int(self._years.max(initial=NO_YEAR)) + 1 if year is None else year
        lately = citing & (self._years != NO_YEAR) & (self._years >= now - LATELY)
        return AsOf(now, citing, self._counted(citing), self._counted(lately))

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
