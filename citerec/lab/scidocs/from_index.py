"""The suite from an index: the same kinds of tasks, built from its papers, citations and authors.

What stands for what, in the order of the paper's table:

    venue f1       the venue of a paper                             for MAG's topics
    period f1      five periods of years                            for MeSH's classes
    coupling       papers that share references with a query        for co-view
    authors        papers of a common author                        for co-read
    cite           what a query cites                               for cite
    co-cite        what test papers cite together with a query      for co-cite

What users did, co-views, co-reads and clicks, cannot be had from an index: coupling and authors are other ways of
being alike, and there is no recommendation task. So figures compare encoders on one index, and nothing with the
published ones. Citations and shared references are asked of test-split papers, co-citation of pairs that no other
paper cites together: an encoder trained on the train split has not seen them.
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
"""The tasks in the order of the published ones that they stand for, and their metrics."""

READS = {EncoderForm.VENUE: "venue", EncoderForm.AUTHORS: "authors"}
"""The task whose answer an encoder reads, by its form."""

_LABELLED: Mapping[str, Callable[..., LabelledTask]] = {"venue": venue_task, "period": period_task}


@dataclass(frozen=True, slots=True, eq=False)
class IndexTasks:
    """The tasks of one index: the same for every encoder."""

    labelled: Mapping[str, LabelledTask]
    ranked: Mapping[str, Sequence[RankedQuery]]
    left_out: Mapping[str, str]  # tasks that the index is too small for, and why
    unfair: Mapping[str, str] = field(default_factory=dict[str, str])  # tasks not asked, and why

    @property
    def asked(self) -> list[str]:
        """The tasks that are asked, in the order of `TASKS`."""
        return [task for task in TASKS if task in self.labelled or task in self.ranked]

    @property
    def whole(self) -> bool:
        """Whether all tasks are asked that the index is large enough for."""
        return {*self.asked, *self.left_out} == {*TASKS}

    def fair_to(self, form: EncoderForm | None) -> "IndexTasks":
        """Leave out the task whose answer an encoder of a form reads: the venue, or the authors.

        Raises:
            ConfigError: If there is no other.
        """
        task = READS.get(form) if form else None
        if task not in self.asked:
            return self
        why = f"the encoder reads {form}, and so its answer"
        if self.asked == [task]:
            raise ConfigError(f"no task is left: {task}: {why}")
        return replace(
            self,
            labelled={name: one for name, one in self.labelled.items() if name != task},
            ranked={name: one for name, one in self.ranked.items() if name != task},
            unfair={task: why},
        )

    @property
    def rows(self) -> Rows:
        """The papers whose vectors are asked for, rising."""
        parts = [part.rows for task in self.labelled.values() for part in task.parts]
        queries = [query for task in self.ranked.values() for query in task]
        asked = np.array([query.query for query in queries], np.int32)
        return np.unique(np.concatenate([asked, *parts, *(q.candidates for q in queries)]))


def index_tasks(
    index: IndexFolder,
    *,
    tasks: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> IndexTasks:
    """Build the tasks of an index; no vector is read.

    Args:
        index: The index.
        tasks: Some of `TASKS`; all by default.
        seed: Of all draws.
        progress: Receives how many tasks are built.

    Raises:
        ConfigError: If there is no such task, or the index is too small for any.
    """
    if unknown := [task for task in tasks or () if task not in TASKS]:
        raise ConfigError(f"no task {unknown[0]!r}; there are: {', '.join(TASKS)}")
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


def judge(
    tasks: IndexTasks,
    take: Take,
    *,
    form: EncoderForm | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SuiteResult:
    """Judge vectors by the tasks of an index.

    Args:
        tasks: Which.
        take: Gives the vectors of some papers.
        form: What of a paper their encoder reads; None if that is not known.
        seed: Of the SVM.
        progress: Receives how many tasks are done.

    Returns:
        The metrics of each task that was not left out, and `average`, the mean of them all, if these are all that the
        index is large enough for: a mean of other tasks could be compared with none.

    Raises:
        ConfigError: If there is no task whose answer the encoder does not read.
        ModelError: If no query, or no train paper, of a task has a vector.
    """
    tasks = tasks.fair_to(form)
    metrics: dict[str, float] = {}
    counts: dict[str, int] = {}
    for done, task in enumerate(tasks.asked, start=1):
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
        progress("tasks", done, len(tasks.asked))
    if tasks.whole:
        metrics["average"] = float(np.mean([*metrics.values()]))
    return SuiteResult(metrics, counts, {**tasks.left_out, **tasks.unfair})


def run_on_index(
    index: IndexFolder,
    vectors: npt.NDArray[np.float32],
    *,
    form: EncoderForm | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> SuiteResult:
    """Judge the vectors of all papers of an index by the tasks built from it.

    Args:
        index: The index.
        vectors: One row for each of its papers.
        form: What of a paper their encoder reads; None if that is not known.
        seed: Of the tasks and of the SVM.
        progress: Receives how many tasks are done.

    Raises:
        ConfigError: If the index is too small for any task, or there is not one vector for each paper.
        ModelError: If no query, or no train paper, of a task has a vector.
    """
    if vectors.ndim != 2 or len(vectors) != len(index.papers):
        raise ConfigError(
            f"vectors of shape {vectors.shape} for {len(index.papers)} papers of {index.path}"
        )
    tasks = index_tasks(index, seed=seed, progress=progress)
    return judge(tasks, lambda rows: vectors[rows], form=form, seed=seed, progress=progress)
