"""The suite on an index: tasks of the same kinds, built from its papers, citations and authors.

The tasks in the order of the published ones that they replace:

    venue f1       the venue of a paper                             for MAG's topics
    period f1      five periods of years                            for MeSH's classes
    coupling       papers that share references with a query        for co-view
    authors        papers of a common author                        for co-read
    cite           references of a query                            for cite
    co-cite        papers that test papers cite with a query        for co-cite

An index has no user activity (co-views, co-reads, clicks): coupling and authors are other kinds of relatedness, and
there is no recommendation task. The scores compare encoders on one index; they are not comparable with published
ones. Queries of cite and coupling are test-split papers, and co-cited pairs are cited together by test papers only, so
that an encoder trained on the train split has not seen them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from citerec.errors import ConfigError
from citerec.folder import IndexFolder
from citerec.lab.scidocs.classify import LabelledVectors, classify
from citerec.lab.scidocs.labelled import LabelledTask, TooSmallError, period_task, venue_task
from citerec.lab.scidocs.ranking import RankedQuery, Rows, Take, score_ranking
from citerec.lab.scidocs.related import draw_task, ranked_tasks
from citerec.lab.scidocs.suite import SuiteResult, ranking_counts, ranking_metrics
from citerec.text import EncoderForm
from citerec.types import Progress, no_progress

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

_LABELLED: Mapping[str, Callable[..., LabelledTask]] = {"venue": venue_task, "period": period_task}


@dataclass(frozen=True, slots=True, eq=False)
class IndexTasks:
    """The tasks of one index; the same for every encoder."""

    labelled: Mapping[str, LabelledTask]
    ranked: Mapping[str, Sequence[RankedQuery]]
    left_out: Mapping[str, str]  # reason by task for which the index is too small
    skipped: Mapping[str, str] = field(
        default_factory=dict[str, str]
    )  # reason by task that is skipped for the encoder

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
            labelled={name: one for name, one in self.labelled.items() if name != task},
            ranked={name: one for name, one in self.ranked.items() if name != task},
            skipped={task: why},
        )

    @property
    def rows(self) -> Rows:
        """The papers whose vectors are needed, rising."""
        parts = [part.rows for task in self.labelled.values() for part in task.parts]
        queries = [query for task in self.ranked.values() for query in task]
        query_rows = np.array([query.query for query in queries], np.int32)
        return np.unique(np.concatenate([query_rows, *parts, *(q.candidates for q in queries)]))


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
                LabelledVectors(take(part.rows), part.labels) for part in tasks.labelled[task].parts
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


def run_on_index(
    index: IndexFolder,
    vectors: npt.NDArray[np.float32],
    *,
    form: EncoderForm | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SuiteResult:
    """Evaluate the vectors of all papers of an index on the tasks built from it.

    Args:
        index: The index.
        vectors: One row per paper, shape (papers, dim).
        form: The input form of the encoder; None if unknown.
        seed: Of the tasks and of the SVM.
        progress: Receives the number of finished tasks.

    Raises:
        ConfigError: If the index is too small for all tasks, or the number of vectors is not that of the papers.
        ModelError: If no query, or no train paper, of a task has a vector.
    """
    if vectors.ndim != 2 or len(vectors) != len(index.papers):
        raise ConfigError(
            f"vectors of shape {vectors.shape} for {len(index.papers)} papers of {index.path}"
        )
    tasks = index_tasks(index, seed=seed, progress=progress)
    return evaluate(tasks, lambda rows: vectors[rows], form=form, seed=seed, progress=progress)
