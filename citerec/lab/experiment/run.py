"""Runs one row of a results table of any kind, or returns why it cannot be run here."""

from collections.abc import Callable, Mapping
from pathlib import Path

from citerec.build import check_splits
from citerec.corpus.readers.source import find_source
from citerec.encode.hub import HubError
from citerec.errors import MissingExtraError
from citerec.lab.experiment.kind import ExperimentKind
from citerec.lab.experiment.missing import missing
from citerec.lab.experiment.outcome import Outcome, Verdict
from citerec.lab.experiment.recommend import recommend
from citerec.lab.experiment.row import Experiment
from citerec.lab.experiment.tasks import index_tasks, scidocs, statistics, topics
from citerec.types import Progress, no_progress

_RUNS: Mapping[ExperimentKind, Callable[[Experiment, Path, Progress], Outcome]] = {
    ExperimentKind.RECOMMEND: recommend,
    ExperimentKind.STATISTICS: statistics,
    ExperimentKind.SCIDOCS: scidocs,
    ExperimentKind.INDEX_TASKS: index_tasks,
    ExperimentKind.TOPICS: topics,
}


def run_experiment(
    experiment: Experiment, indexes: Path, progress: Progress = no_progress
) -> Outcome:
    """Run a row; a missing corpus, model or machine gives the verdict "not run here", not a failure.

    Args:
        experiment: The row.
        indexes: The folder of indexes; missing indexes are built and missing models trained.
        progress: Receives task, done and total.

    Raises:
        ConfigError: If the index is of another corpus or other splits.
        CiterecError: Any other error of indexing or searching an existing corpus.
    """
    if experiment.kind is ExperimentKind.PUBLISHED:
        return Outcome(experiment, Verdict.PUBLISHED, "published values; nothing is run")
    if why := missing(experiment):
        return Outcome(experiment, Verdict.NOT_RUN, why)
    for corpus in filter(None, experiment.corpora):  # before the first of them is indexed
        check_splits(find_source(Path(corpus)).folder)
    try:
        return _RUNS[experiment.kind](experiment, indexes, progress)
    except (HubError, MissingExtraError) as error:
        return Outcome(experiment, Verdict.NOT_RUN, str(error))
