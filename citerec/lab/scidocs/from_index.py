"""The suite on an index: tasks of the same kinds, built from its papers, citations and authors.

The tasks in the order of the published ones that they replace:

    venue f1       the venue of a paper                             for MAG's topics
    period f1      five periods of years                            for MeSH's classes
    coupling       papers that share references with a query        for co-view
    authors        papers of a common author                        for co-read
    cite           references of a query                            for cite
    co-cite        papers that test papers cite with a query        for co-cite

Each query of a ranking task has up to 5 related papers and 25 random others, as in the published tasks. The others are
of the same kind as the related ones (cited, citing, or with an author), so that the kind does not reveal the label.

An index has no user activity (co-views, co-reads, clicks): coupling and authors are other kinds of relatedness, and
there is no recommendation task. The scores compare encoders on one index; they are not comparable with published
ones. Queries of cite and coupling are test-split papers, and co-cited pairs are cited together by test papers only, so
that an encoder trained on the train split has not seen them.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.index.folder import IndexFolder
from citerec.index.graph import Graph, Lists
from citerec.index.papers import NO_YEAR, Papers, codes
from citerec.index.splits import gold_citations, read_ids
from citerec.lab.scidocs.classify import LabelledVectors, classify
from citerec.lab.scidocs.ranking import (
    RankedQuery,
    Rows,
    Take,
    ranked_query,
    score_ranking,
)
from citerec.lab.scidocs.suite import SuiteResult, ranking_counts, ranking_metrics
from citerec.rank.features import name_key
from citerec.text import EncoderForm
from citerec.types import Progress, no_progress

VENUES = 20  # classes at most
PAPERS_OF_VENUE = 50  # at least
PERIODS = 5
PAPERS = 25_000  # per task at most, about as many as for MAG; more if a rare class would vanish
SHARES = (0.6, 0.8)  # of each class: start of validation and of test

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Papers of one split of a classification task."""

    rows: Rows
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTask:
    """Papers and their classes by split; every class is in every split."""

    train: Part
    validation: Part
    test: Part

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """The splits: train, validation, test."""
        return self.train, self.validation, self.test


class TooSmallError(ValueError):
    """An index is too small for a task; the message has the reason."""


def venue_task(papers: Papers, *, seed: int = 0) -> LabelledTask:
    """Build the task to predict the venue of a paper, in place of MAG's topics.

    Venues that differ only in case and punctuation are equal. The classes are the 20 most common venues with at least
    50 papers each.

    Raises:
        TooSmallError: If there are fewer than two.
    """
    topics = venue_topics(papers)
    rows = np.array([row for row, topic in enumerate(topics) if topic], np.int32)
    labels = [topic for topic in topics if topic]
    if len(set(labels)) < 2:
        raise TooSmallError(f"fewer than 2 venues have {PAPERS_OF_VENUE} papers")
    return _split(rows, labels, np.random.default_rng([seed, 0]))


def venue_topics(papers: Papers) -> list[str]:
    """Return the class of each paper, see `venue_task`; empty if it has none."""
    keys = venue_keys(papers)
    counts = Counter(key for key in keys if key)
    common = sorted(counts, key=lambda key: (-counts[key], key))[:VENUES]
    classes = {key for key in common if counts[key] >= PAPERS_OF_VENUE}
    return [key if key in classes else "" for key in keys]


def venue_keys(papers: Papers) -> list[str]:
    """Return the normalised venue of each paper: its words in lower case; empty if it has none."""
    seen: dict[str, str] = {}
    for venue in (venues := papers.column("venue").to_pylist()):
        if venue not in seen:
            seen[venue] = " ".join(_WORD.findall(venue.casefold()))
    return [seen[venue] for venue in venues]


def period_task(papers: Papers, *, seed: int = 0) -> LabelledTask:
    """Build the task to predict the period of a paper, one of five ranges of years, in place of MeSH's classes.

    Raises:
        TooSmallError: If there are no five periods with 50 papers each.
    """
    rows = np.flatnonzero(papers.years != NO_YEAR).astype(np.int32)
    years = papers.years[rows]
    periods = _periods(years)
    counts = Counter(periods)
    if len(counts) < PERIODS or min(counts.values()) < PAPERS_OF_VENUE:
        raise TooSmallError(
            f"years do not make {PERIODS} periods of {PAPERS_OF_VENUE} papers"
        )
    return _split(rows, periods, np.random.default_rng([seed, 1]))


def _periods(years: npt.NDArray[np.int32]) -> list[str]:
    """Return the period of each year; the middle of a year in the cumulative distribution decides its fifth."""
    each, where, counts = np.unique(years, return_inverse=True, return_counts=True)
    if not len(each):
        return []
    middle = (np.cumsum(counts) - counts / 2) / len(years)
    number = (middle * PERIODS).astype(int)
    names = [f"{each[number == n].min()}-{each[number == n].max()}" for n in number]
    return [names[i] for i in where.tolist()]


def _split(rows: Rows, labels: list[str], rng: np.random.Generator) -> LabelledTask:
    """Split each class 60/20/20 at random: its share of `PAPERS` papers, but at least `PAPERS_OF_VENUE`."""
    order = rng.permutation(len(rows))
    names, of_row = np.unique(np.array(labels, np.object_), return_inverse=True)
    share = min(1.0, PAPERS / len(rows))
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for number in range(len(names)):
        members = order[of_row[order] == number]
        sample = members[: max(round(len(members) * share), PAPERS_OF_VENUE)].tolist()
        validation, test = (int(len(sample) * share) for share in SHARES)
        parts[0].extend(sample[:validation])
        parts[1].extend(sample[validation:test])
        parts[2].extend(sample[test:])
    train, validation, test = (
        Part(rows[part], tuple(labels[i] for i in part)) for part in parts
    )
    return LabelledTask(train, validation, test)


POSITIVES = 5
NEGATIVES = 25
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
        self.papers = index.papers
        self.graph = index.graph
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
        return _with_links(self.graph)

    @cached_property
    def cited_by_test(self) -> Rows:
        """The papers that test papers cite."""
        return _of_all(self.graph.references, self.test)[0]

    @cached_property
    def authors(self) -> tuple[Graph, ...]:
        """The names of each paper, and the papers of each name, both rising."""
        return _authors(self.papers)

    @cached_property
    def _of_few(self) -> npt.NDArray[np.bool_]:
        """Which names have so few papers that they are one person, shape (names,)."""
        return self.authors[1].lengths <= PAPERS_OF_NAME

    @cached_property
    def _gold(self) -> Lists:
        return self.graph.where(gold_citations(self.graph, self.papers.years))

    def cite(self, row: int, rng: np.random.Generator) -> Related:
        """Return the references of a paper of no later year; negatives are of no later year, too."""
        year = int(self.papers.years[row])
        latest = None if year == NO_YEAR else year
        return Related(
            rng.permutation(self._gold[row]), self.graph.references(row), latest
        )

    def co_cite(self, row: int, rng: np.random.Generator) -> Related:
        """Return the papers that only test-split papers cite together with a paper, most often first."""
        citers = self.graph.cited_by(row)
        late = self._is_test[citers]
        seen, _ = _of_all(self.graph.references, citers[~late])
        new, counts = _of_all(self.graph.references, citers[late])
        fair = ~np.isin(new, seen) & (new != row)
        return Related(_most_first(new[fair], counts[fair], rng), np.union1d(seen, new))

    def coupling(self, row: int, rng: np.random.Generator) -> Related:
        """Return papers that share references with a paper, most shared first."""
        others, counts = _of_all(self.graph.cited_by, self.graph.references(row))
        fair = others != row
        return Related(_most_first(others[fair], counts[fair], rng), others)

    def co_author(self, row: int, rng: np.random.Generator) -> Related:
        """Return papers by an author of a paper, in random order."""
        names, papers_of_name = self.authors
        own_names = names.references(row)
        papers, _ = _of_all(
            papers_of_name.references, own_names[self._of_few[own_names]]
        )
        excluded, _ = _of_all(papers_of_name.references, own_names)
        return Related(rng.permutation(papers[papers != row]), excluded)


def _of_all(
    linked: Callable[[int], Rows], rows: Rows
) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Return all papers that are linked with some rows, rising, and with how many of these each is."""
    return np.unique(
        np.concatenate([NONE, *map(linked, rows.tolist())]), return_counts=True
    )


def ranked_tasks(index: IndexFolder) -> Mapping[str, Callable[[], TaskSource]]:
    """Return the source of each task, computed on demand."""
    known = Relations(index)
    return {
        "cite": lambda: (known.cite, known.test, known.cited),
        "co-cite": lambda: (known.co_cite, known.cited_by_test, known.cited),
        "coupling": lambda: (known.coupling, known.test, known.citing),
        "authors": lambda: (known.co_author, known.test, _with_links(known.authors[0])),
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
        raise TooSmallError(
            f"{len(drawn)} queries are possible; the task needs {FEWEST}"
        )
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

    few = fair(
        rng.choice(among, min(8 * NEGATIVES, len(among)), replace=len(among) > 10**5)
    )
    few = few[np.sort(np.unique(few, return_index=True)[1])]  # some may have come twice
    if len(few) < NEGATIVES < len(among):  # most are excluded: try all
        few = rng.permutation(fair(among))
    return few[:NEGATIVES]


def _most_first(
    rows: Rows, counts: npt.NDArray[np.int64], rng: np.random.Generator
) -> Rows:
    """Sort rows by falling counts, equal ones in random order."""
    mixed = rng.permutation(len(rows))
    return rows[mixed[np.argsort(-counts[mixed], kind="stable")]]


def _with_links(graph: Graph) -> Rows:
    return np.flatnonzero(graph.lengths).astype(np.int32)


def _authors(papers: Papers) -> tuple[Graph, ...]:
    from scipy.sparse import csr_array

    names, counts = papers.authors()
    distinct, which = codes(names)
    numbers: dict[str, int] = {}
    keys = [name_key(name) for name in distinct.to_pylist()]
    of_name = np.array(
        [numbers.setdefault(key, len(numbers)) for key in keys], np.int64
    )
    known = np.array([bool(key) for key in keys], np.bool_)[which]
    rows = np.repeat(np.arange(len(papers)), counts)[known]
    theirs = of_name[which][known]
    ones = np.ones(len(rows), np.int32)
    shape = (len(papers), len(numbers))
    table: Any = csr_array((ones, (rows, theirs)), shape=shape)  # adds up equal pairs
    return tuple(
        Graph(matrix.indptr, matrix.indices) for matrix in (table, table.tocsc())
    )


TASKS: Mapping[str, tuple[str, ...]] = {
    "venue": ("venue f1",),
    "period": ("period f1",),
    "coupling": ("coupling map", "coupling ndcg"),
    "authors": ("authors map", "authors ndcg"),
    "cite": ("cite map", "cite ndcg"),
    "co-cite": ("co-cite map", "co-cite ndcg"),
}
"""The tasks in the order of the published ones that they replace, and their metrics."""

READS = {EncoderForm.VENUE: "venue", EncoderForm.AUTHORS: "authors"}
"""The task whose label an encoder reads, by the form of its input."""

_LABELLED: Mapping[str, Callable[..., LabelledTask]] = {
    "venue": venue_task,
    "period": period_task,
}


@dataclass(frozen=True, slots=True, eq=False)
class IndexTasks:
    """The tasks of one index; the same for every encoder."""

    labelled: Mapping[str, LabelledTask]
    ranked: Mapping[str, Sequence[RankedQuery]]
    left_out: Mapping[str, str]  # reason by task for which the index is too small
    # reason by task that is skipped for the encoder
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def available(self) -> list[str]:
        """The tasks to run, in the order of `TASKS`."""
        return [task for task in TASKS if task in self.labelled or task in self.ranked]

    @property
    def whole(self) -> bool:
        """Whether these are all tasks that the index is large enough for."""
        return {*self.available, *self.left_out} == {*TASKS}

    def without_input_tasks(self, form: EncoderForm | None) -> "IndexTasks":
        """Leave out the task whose label is part of the encoder's input: the venue, or the authors.

        Raises:
            ConfigError: If no other task is left.
        """
        task = READS.get(form) if form else None
        if task not in self.available:
            return self
        why = f"its label is part of the encoder's input, {form}"
        if self.available == [task]:
            raise ConfigError(f"no task is left: {task}: {why}")
        return replace(
            self,
            labelled={
                name: made for name, made in self.labelled.items() if name != task
            },
            ranked={name: made for name, made in self.ranked.items() if name != task},
            skipped={task: why},
        )

    @property
    def rows(self) -> Rows:
        """The papers whose vectors are needed, rising."""
        parts = [part.rows for task in self.labelled.values() for part in task.parts]
        queries = [query for task in self.ranked.values() for query in task]
        query_rows = np.array([query.query for query in queries], np.int32)
        return np.unique(
            np.concatenate([query_rows, *parts, *(q.candidates for q in queries)])
        )


def index_tasks(
    index: IndexFolder,
    *,
    tasks: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> IndexTasks:
    """Build the tasks of an index; no vectors are needed.

    Args:
        index: The index.
        tasks: Some of `TASKS`; all by default.
        seed: Of all samples.
        progress: Receives the number of finished tasks.

    Raises:
        ConfigError: If there is no such task, or the index is too small for all.
    """
    if unknown := [task for task in tasks or () if task not in TASKS]:
        raise ConfigError(f"no task {unknown[0]!r}; choose from {', '.join(TASKS)}")
    labelled: dict[str, LabelledTask] = {}
    ranked: dict[str, Sequence[RankedQuery]] = {}
    left_out: dict[str, str] = {}
    finders = ranked_tasks(index)
    named = [task for task in TASKS if not tasks or task in tasks]
    for done, task in enumerate(named, start=1):
        try:
            if task in _LABELLED:
                labelled[task] = _LABELLED[task](index.papers, seed=seed)
            else:
                seeds = (seed, list(TASKS).index(task))
                ranked[task] = draw_task(index, *finders[task](), seed=seeds)
        except TooSmallError as error:
            left_out[task] = str(error)
        progress("building", done, len(named))
    if not labelled and not ranked:
        why = "; ".join(f"{task}: {reason}" for task, reason in left_out.items())
        raise ConfigError(f"{index.path} is too small for any task: {why}")
    return IndexTasks(labelled, ranked, left_out)


def evaluate(
    tasks: IndexTasks,
    take: Take,
    *,
    form: EncoderForm | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SuiteResult:
    """Evaluate vectors on the tasks of an index.

    Args:
        tasks: The tasks.
        take: Returns the vectors of some papers.
        form: The input form of the encoder; None if unknown.
        seed: Of the SVM.
        progress: Receives the number of finished tasks.

    Returns:
        The metrics of each task, and their mean as `average` if these are all tasks that the index is large enough for;
        means over other sets of tasks are not comparable.

    Raises:
        ConfigError: If no task is left for this encoder.
        ModelError: If no query, or no train paper, of a task has a vector.
    """
    tasks = tasks.without_input_tasks(form)
    metrics: dict[str, float] = {}
    counts: dict[str, int] = {}
    for done, task in enumerate(tasks.available, start=1):
        if task in tasks.labelled:
            train, validation, test = (
                LabelledVectors(take(part.rows), part.labels)
                for part in tasks.labelled[task].parts
            )
            metrics[f"{task} f1"] = classify(train, validation, test, seed=seed).f1
            sizes = {"classes": len({*train.labels}), "train": len(train.labels)}
            counted = {**sizes, "test": len(test.labels)}
        else:
            score = score_ranking(tasks.ranked[task], take)
            metrics |= ranking_metrics(task, score)
            counted = ranking_counts(score)
        counts |= {f"{task} {what}": count for what, count in counted.items()}
        progress("tasks", done, len(tasks.available))
    if tasks.whole:
        metrics["average"] = float(np.mean([*metrics.values()]))
    return SuiteResult(metrics, counts, {**tasks.left_out, **tasks.skipped})
