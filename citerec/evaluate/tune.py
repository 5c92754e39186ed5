"""Finds how BM25 and dense retrieval are best put together, on the dev split."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from citerec.config import FuseConfig, FuseMethod
from citerec.evaluate.metrics import METRICS, mean_metrics, per_query
from citerec.evaluate.protocol import Setting, Task
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.types import Progress, untold

STEPS = 20  # of the dense weight between 0 and 1
K0S = (10, 20, 60, 100)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to fuse, and what it gave."""

    fuse: FuseConfig
    metrics: dict[str, float]  # by `METRICS`, means over the queries


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that was tried, and the best of it."""

    metric: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial of the highest metric; of equal ones the first, so plain RRF before all others."""
        return max(self.trials, key=lambda trial: trial.metrics[self.metric])


def tune(
    index: IndexFolder,
    task: Task,
    setting: Setting,
    metric: str,
    progress: Progress = untold,
) -> Tuning:
    """Try ways to fuse on the queries of a task; each stage searches once.

    Args:
        index: What is searched; it needs vectors.
        task: The queries; those of the dev split, lest the test split be tuned on.
        setting: How the stages search.
        metric: What counts, one of `METRICS`.
        progress: Is told how many ways were tried.

    Raises:
        ConfigError: If the index has no vectors.
        ValueError: If there is no such metric.
    """
    if metric not in METRICS:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(METRICS)}")
    systems = Systems(index, task, setting)
    stages = systems.stages()
    ways = [*_ways(setting.depth)]
    trials: list[Trial] = []
    for tried, way in enumerate(ways, start=1):
        hits = [fuse(found, index.id_rank, way, k=setting.depth) for found in stages]
        run = systems.as_run("trial", hits)
        trials.append(Trial(way, mean_metrics(per_query(run, task.qrels))))
        progress("tuning", tried, len(ways))
    return Tuning(metric, tuple(trials))


def _ways(depth: int) -> Iterator[FuseConfig]:
    yield FuseConfig(depth=depth)
    yield from (FuseConfig(k0=k0, depth=depth) for k0 in K0S if k0 != FuseConfig().k0)
    for weight in np.linspace(0, 1, STEPS + 1).round(4).tolist():
        yield FuseConfig(
            method=FuseMethod.WEIGHTED,
            bm25_weight=round(1 - weight, 4),
            dense_weight=weight,
            depth=depth,
        )
