"""Ranking tasks from an index: related papers of a query, by citations and authors.

Each query has up to 5 related papers and 25 random others, as in the published tasks. The others are of the same kind
as the related ones (cited, citing, or with an author), so that the kind does not reveal the label.
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
from citerec.rank.features import name_key

POSITIVES, NEGATIVES = 5, 25
QUERIES = 1000  # of a task at most
FEWEST = 10  # queries of a task at least
TRIED = 20 * QUERIES  # papers tried as queries at most
PAPERS_OF_NAME = 100  # a name with more papers is taken for several people

NONE = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """The related papers of a paper."""

    best: Rows  # the related papers, best first
    excluded: Rows  # papers that are no negatives: related and possibly related ones
    latest: int | None = None  # the latest year of a negative


Find = Callable[[int, np.random.Generator], Related]
TaskSource = tuple[Find, Rows, Rows]
"""The function that finds related papers, the possible queries, and the possible negatives."""


class Relations:
    """The relations between the papers of an index."""

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
        """The reversed citation graph: its `cited_by` returns the citing papers."""
        order = np.argsort(self.graph.indices, kind="stable")
        counts = np.bincount(self.graph.indices, minlength=len(self.papers))
        return Graph(np.concatenate([[0], np.cumsum(counts)]), self.graph.citing[order])

    @cached_property
    def authors(self) -> tuple[Graph, Graph]:
        """The names of each paper, and the papers of each name, both rising."""
        return _authors(self.papers)

    @cached_property
    def _of_few(self) -> npt.NDArray[np.bool_]:
        """Which names have so few papers that they are one person, shape (names,)."""
        return np.diff(self.authors[1].indptr) <= PAPERS_OF_NAME

    @cached_property
    def _gold(self) -> npt.NDArray[np.bool_]:
        return gold_citations(self.graph, self.papers.years)

    def cite(self, row: int, rng: np.random.Generator) -> Related:
        """Return the references of a paper of no later year; negatives are of no later year, too."""
        entries = slice(self.graph.indptr[row], self.graph.indptr[row + 1])
        gold = self.graph.indices[entries][self._gold[entries]]
        year = int(self.papers.years[row])
        latest = None if year == NO_YEAR else year
        return Related(rng.permutation(gold), self.graph.references(row), latest)

    def co_cite(self, row: int, rng: np.random.Generator) -> Related:
        """Return the papers that only test-split papers cite together with a paper, most often first."""
        citers = self.citers.references(row)
        late = self._is_test[citers]
        seen, counts = self._of_all(self.graph, citers[~late])
        new, counts = self._of_all(self.graph, citers[late])
        fair = ~np.isin(new, seen) & (new != row)
        return Related(_most_first(new[fair], counts[fair], rng), np.union1d(seen, new))

    def coupling(self, row: int, rng: np.random.Generator) -> Related:
        """Return papers that share references with a paper, most shared first."""
        others, counts = self._of_all(self.citers, self.graph.references(row))
        fair = others != row
        return Related(_most_first(others[fair], counts[fair], rng), others)

    def co_author(self, row: int, rng: np.random.Generator) -> Related:
        """Return papers by an author of a paper, in random order."""
        names, papers_of_name = self.authors
        own_names = names.references(row)
        papers, _ = self._of_all(papers_of_name, own_names[self._of_few[own_names]])
        excluded, _ = self._of_all(papers_of_name, own_names)
        return Related(rng.permutation(papers[papers != row]), excluded)

    def _of_all(self, graph: Graph, rows: Rows) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return all targets of some rows, rising, and how many rows have each."""
        if not len(rows):
            return NONE, np.zeros(0, np.int64)
        every = np.concatenate([graph.references(int(row)) for row in rows])
        return np.unique(every, return_counts=True)


def ranked_tasks(index: IndexFolder) -> Mapping[str, Callable[[], TaskSource]]:
    """Return the source of each task, computed on demand."""
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
    """Draw up to 1000 queries that have related papers, with these papers and 25 others each.

    Args:
        index: The index.
        find: Finds the related papers of a paper.
        pool: The possible queries; up to 20,000 are tried.
        among: The possible negatives.
        seed: Of the samples; those of a query do not depend on other queries.

    Raises:
        TooSmallError: If there are fewer than 10 queries.
    """
    drawn: list[RankedQuery] = []
    for row in np.random.default_rng(seed).permutation(pool)[:TRIED].tolist():
        rng = np.random.default_rng([*seed, row])
        related = find(row, rng)
        best = related.best[:POSITIVES]
        if not len(best):
            continue
        excluded = np.append(related.excluded, np.int32(row))
        others = _negatives(among, excluded, index.papers.years, related.latest, rng)
        if len(others) == NEGATIVES:
            drawn.append(_query(index, row, best, others))
        if len(drawn) == QUERIES:
            break
    if len(drawn) < FEWEST:
        raise TooSmallError(f"{len(drawn)} queries are possible; the task needs {FEWEST}")
    return drawn


def _query(index: IndexFolder, row: int, best: Rows, others: Rows) -> RankedQuery:
    rows = [*best.tolist(), *others.tolist()]
    gains = [1] * len(best) + [0] * len(others)
    return ranked_query(row, index.papers.ids_at(rows), rows, gains)


def _negatives(
    among: Rows,
    excluded: Rows,
    years: npt.NDArray[np.int32],
    latest: int | None,
    rng: np.random.Generator,
) -> Rows:
    """Draw 25 papers, or as many as there are."""

    def fair(rows: Rows) -> Rows:
        keep = ~np.isin(rows, excluded)
        return rows[keep if latest is None else keep & (years[rows] <= latest)]

    few = fair(rng.choice(among, min(8 * NEGATIVES, len(among)), replace=len(among) > 10**5))
    few = few[np.sort(np.unique(few, return_index=True)[1])]  # some may have come twice
    if len(few) < NEGATIVES < len(among):  # most are excluded: try all
        few = rng.permutation(fair(among))
    return few[:NEGATIVES]


def _most_first(rows: Rows, counts: npt.NDArray[np.int64], rng: np.random.Generator) -> Rows:
    """Sort rows by falling counts, equal ones in random order."""
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
    """Convert pairs to CSR without duplicates; sorting one combined key is faster than two."""
    keys = np.sort(rows * m + to)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    counts = np.bincount(keys // max(m, 1), minlength=n)
    return Graph(np.concatenate([[0], np.cumsum(counts)]), (keys % max(m, 1)).astype(np.int32))
