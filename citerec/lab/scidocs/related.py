"""Ranking tasks from an index: which papers go with a query, by its citations and its authors.

Each query has up to 5 papers that go with it and 25 drawn by chance that do not, as the published tasks have. The
latter come from the same kind of papers as the former can: those that are cited, that cite, that name an author. So
no task can be solved by telling one kind from another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR, Papers, codes
from citerec.corpus.splits import gold_citations, read_ids
from citerec.folder import IndexFolder
from citerec.lab.scidocs.labelled import TooSmallError
from citerec.lab.scidocs.ranking import RankedQuery, Rows, ranked_query
from citerec.rank.authors import name_key

POSITIVES, NEGATIVES = 5, 25
QUERIES = 1000  # of a task at most
FEWEST = 10  # queries; a task of fewer is left out
TRIED = 20 * QUERIES  # papers of a pool at most, until a task has its queries
PAPERS_OF_NAME = 100  # a name of more is taken for several people

NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """What goes with a paper."""

    best: Rows  # the papers that do, best first
    barred: Rows  # papers that are no fair negatives: these, and what may go with it, too
    latest: int | None = None  # the latest year that a negative may have


Find = Callable[[int, np.random.Generator], Related]
Asked = tuple[Find, Rows, Rows]
"""What finds what goes with a paper, the papers to ask, and those that negatives are drawn from."""


class Relations:
    """Who goes with whom in an index."""

    def __init__(self, index: IndexFolder) -> None:
        self.papers, self.graph = index.papers, index.graph
        rows = index.papers.rows_of(read_ids(index.splits / "test.ids"))
        self.test: Rows = np.unique(rows[rows >= 0])
        self._is_test = np.zeros(len(index.papers), np.bool_)
        self._is_test[self.test] = True

    @cached_property
    def cited(self) -> Rows:
        """The papers that are cited."""
        return np.unique(self.graph.indices)

    @cached_property
    def citing(self) -> Rows:
        """The papers that cite something."""
        return np.flatnonzero(np.diff(self.graph.indptr)).astype(np.int32)

    @cached_property
    def citers(self) -> Graph:
        """The citations turned round: `cited_by` of it gives who cites a paper."""
        order = np.argsort(self.graph.indices, kind="stable")
        counts = np.bincount(self.graph.indices, minlength=len(self.papers))
        return Graph(np.concatenate([[0], np.cumsum(counts)]), self.graph.citing[order])

    @cached_property
    def authors(self) -> tuple[Graph, Graph]:
        """Whose names stand on each paper, and the papers of each name, both rising."""
        return _authors(self.papers)

    @cached_property
    def _of_few(self) -> npt.NDArray[np.bool_]:
        """Which names stand on so few papers that they are one person's, shape (names,)."""
        return np.diff(self.authors[1].indptr) <= PAPERS_OF_NAME

    @cached_property
    def _gold(self) -> npt.NDArray[np.bool_]:
        return gold_citations(self.graph, self.papers.years)

    def cite(self, row: int, rng: np.random.Generator) -> Related:
        """What a paper cites, of no later year; negatives are of no later year, too."""
        mine = slice(self.graph.indptr[row], self.graph.indptr[row + 1])
        gold = self.graph.indices[mine][self._gold[mine]]
        year = int(self.papers.years[row])
        latest = None if year == NO_YEAR else year
        return Related(rng.permutation(gold), self.graph.references(row), latest)

    def co_cite(self, row: int, rng: np.random.Generator) -> Related:
        """What papers of the test split, and no others, cite together with a paper; what most of them do first."""
        citers = self.citers.references(row)
        late = self._is_test[citers]
        seen, counts = self._of_all(self.graph, citers[~late])
        new, counts = self._of_all(self.graph, citers[late])
        fair = ~np.isin(new, seen) & (new != row)
        return Related(_most_first(new[fair], counts[fair], rng), np.union1d(seen, new))

    def coupling(self, row: int, rng: np.random.Generator) -> Related:
        """Papers that share references with a paper; those that share most first."""
        others, counts = self._of_all(self.citers, self.graph.references(row))
        fair = others != row
        return Related(_most_first(others[fair], counts[fair], rng), others)

    def co_author(self, row: int, rng: np.random.Generator) -> Related:
        """Papers by an author of a paper, by chance."""
        names, written = self.authors
        mine = names.references(row)
        theirs, _ = self._of_all(written, mine[self._of_few[mine]])
        barred, _ = self._of_all(written, mine)
        return Related(rng.permutation(theirs[theirs != row]), barred)

    def _of_all(self, graph: Graph, rows: Rows) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return all that some rows point at, rising, and how many of them do."""
        if not len(rows):
            return NONE, np.zeros(0, np.int64)
        every = np.concatenate([graph.references(int(row)) for row in rows])
        return np.unique(every, return_counts=True)


def ranked_tasks(index: IndexFolder) -> Mapping[str, Callable[[], Asked]]:
    """Return by task what is asked; a task that is not looked at costs nothing."""
    known = Relations(index)
    return {
        "cite": lambda: (known.cite, known.test, known.cited),
        "co-cite": lambda: (known.co_cite, _together(known), known.cited),
        "coupling": lambda: (known.coupling, known.test, known.citing),
        "authors": lambda: (known.co_author, known.test, _named(known)),
    }


def draw_task(
    index: IndexFolder, find: Find, pool: Rows, among: Rows, *, seed: tuple[int, int]
) -> list[RankedQuery]:
    """Draw up to 1000 queries of a pool that something goes with, their papers, and 25 others each.

    Args:
        index: The index.
        find: Finds what goes with a paper.
        pool: The papers to ask.
        among: What negatives are drawn from. Of a pool of many, some 20,000 are tried.
        seed: Of the draws; each query's own do not depend on the others.

    Raises:
        TooSmallError: If there are fewer than 10.
    """
    drawn: list[RankedQuery] = []
    for row in np.random.default_rng(seed).permutation(pool)[:TRIED].tolist():
        rng = np.random.default_rng([*seed, row])
        related = find(row, rng)
        best = related.best[:POSITIVES]
        if not len(best):
            continue
        barred = np.append(related.barred, np.int32(row))
        others = _negatives(among, barred, index.papers.years, related.latest, rng)
        if len(others) == NEGATIVES:
            drawn.append(_query(index, row, best, others))
        if len(drawn) == QUERIES:
            break
    if len(drawn) < FEWEST:
        raise TooSmallError(f"{len(drawn)} queries can be made of it; needs {FEWEST}")
    return drawn


def _query(index: IndexFolder, row: int, best: Rows, others: Rows) -> RankedQuery:
    rows = [*best.tolist(), *others.tolist()]
    gains = [1] * len(best) + [0] * len(others)
    return ranked_query(row, index.papers.ids_at(rows), rows, gains)


def _negatives(
    among: Rows,
    barred: Rows,
    years: npt.NDArray[np.int32],
    latest: int | None,
    rng: np.random.Generator,
) -> Rows:
    """Draw 25 papers, or as many as there are."""

    def fair(rows: Rows) -> Rows:
        keep = ~np.isin(rows, barred)
        return rows[keep if latest is None else keep & (years[rows] <= latest)]

    few = fair(rng.choice(among, min(8 * NEGATIVES, len(among)), replace=len(among) > 10**5))
    few = few[np.sort(np.unique(few, return_index=True)[1])]  # some may have come twice
    if len(few) < NEGATIVES < len(among):  # most are barred: look at all
        few = rng.permutation(fair(among))
    return few[:NEGATIVES]


def _most_first(rows: Rows, counts: npt.NDArray[np.int64], rng: np.random.Generator) -> Rows:
    """Sort rows by falling counts, equal ones by chance."""
    mixed = rng.permutation(len(rows))
    return rows[mixed[np.argsort(-counts[mixed], kind="stable")]]


def _together(relations: Relations) -> Rows:
    """Return the papers that test papers cite."""
    graph = relations.graph
    return np.unique(np.concatenate([NONE, *(graph.references(int(n)) for n in relations.test)]))


def _named(relations: Relations) -> Rows:
    names, _ = relations.authors
    return np.flatnonzero(np.diff(names.indptr)).astype(np.int32)


def _authors(papers: Papers) -> tuple[Graph, Graph]:
    names, counts = papers.authors()
    distinct, which = codes(names)
    numbers: dict[str, int] = {}
    keys = [name_key(name) for name in distinct.to_pylist()]
    of_name = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    known = np.array([bool(key) for key in keys], np.bool_)[which]
    rows = np.repeat(np.arange(len(papers)), counts)[known]
    theirs = of_name[which][known]
    return _csr(rows, theirs, len(papers), len(numbers)), _csr(
        theirs, rows, len(numbers), len(papers)
    )


def _csr(rows: npt.NDArray[np.int64], to: npt.NDArray[np.int64], n: int, m: int) -> Graph:
    """Return pairs of `n` and `m` things as CSR, each pair once; one key sorts faster than two."""
    keys = np.sort(rows * m + to)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    counts = np.bincount(keys // max(m, 1), minlength=n)
    return Graph(np.concatenate([[0], np.cumsum(counts)]), (keys % max(m, 1)).astype(np.int32))
