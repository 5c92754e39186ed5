"""Finds how BM25 and dense retrieval are best put together, and how much a reranker counts, on the dev split."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from citerec.config import FuseConfig, FuseMethod
from citerec.evaluate.metrics import METRICS, mean_metrics, per_query
from citerec.evaluate.protocol import Setting, Task
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.rerank.cascade import Stage
from citerec.tuned import RerankWeight
from citerec.types import Hits, Note, Progress, untold

STEPS = 20  # of a weight between 0 and 1
K0S = (10, 20, 60, 100)


@dataclass(frozen=True, slots=True)
class Trial:
    """One way to fuse, and what it gave."""

    fuse: FuseConfig
    metrics: dict[str, float]  # by `METRICS`, means over the queries


@dataclass(frozen=True, slots=True)
class WeightTrial:
    """One weight of the reranker, and what it gave."""

    weight: float  # 0: the first stages alone; 1: the reranker alone
    metrics: dict[str, float]  # by `METRICS`, means over the queries


@dataclass(frozen=True, slots=True)
class Tuning:
    """All that was tried, and the best of it."""

    metric: str
    trials: tuple[Trial, ...]  # none without vectors
    weights: tuple[WeightTrial, ...] = ()  # none without a reranker
    reranker: Stage | None = None  # the one that was weighed
    reranking: str = ""  # which reranker, and how, in words

    @property
    def best(self) -> Trial:
        """The trial of the highest metric; of equal ones the first, so plain RRF before all others.

        Raises:
            ValueError: If there is none.
        """
        return max(self.trials, key=lambda trial: trial.metrics[self.metric])

    @property
    def fuse(self) -> FuseConfig:
        """The best way to fuse; plain RRF where there was nothing to fuse."""
        return self.best.fuse if self.trials else FuseConfig()

    @property
    def best_weight(self) -> WeightTrial | None:
        """The reranker's weight of the highest metric, of equal ones the lowest; None without a reranker."""
        return max(self.weights, key=lambda trial: trial.metrics[self.metric], default=None)

    @property
    def rerank(self) -> RerankWeight | None:
        """What is to be kept of it."""
        best, stage = self.best_weight, self.reranker
        if best is None or stage is None:
            return None
        how = stage.how
        return RerankWeight(
            best.weight, how["weights"], stage.depth, how["query_tokens"], how["candidate_tokens"]
        )


def tune(
    index: IndexFolder,
    task: Task,
    setting: Setting,
    metric: str,
    progress: Progress = untold,
    note: Note | None = None,
) -> Tuning:
    """Try ways to fuse on the queries of a task, then weights of the reranker over the best of them.

    Each stage searches once, and the reranker scores a pair once.

    Args:
        index: What is searched; it needs vectors, or a reranker.
        task: The queries; those of the dev split, lest the test split be tuned on.
        setting: How the stages search; whether and how a reranker reads.
        metric: What counts, one of `METRICS`.
        progress: Is told how many ways were tried.
        note: Is told what is fetched from the hub, before.

    Raises:
        ConfigError: If the index has no vectors, and there is no reranker.
        ModelError: If the reranker is none.
        ValueError: If there is no such metric.
    """
    if metric not in METRICS:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(METRICS)}")
    if setting.rerank:  # whatever weight there was before does not count, nor if it cannot be read
        setting = replace(setting, rerank=replace(setting.rerank, weight=1.0, early_stop=False))
    systems = Systems(index, task, setting, note, progress)
    reranker = systems.cascade if setting.rerank else None  # opened first: it may be none
    if reranker and not index.is_embedded:
        trials, found = Tuning(metric, ()), systems.hits("bm25")
    else:
        trials = Tuning(metric, tuple(_fusions(index, task, setting, systems, progress)))
        found = _fused(index, systems, trials.fuse, setting.depth) if reranker else []
    if reranker is None:
        return trials
    return Tuning(
        metric,
        trials.trials,
        tuple(_weights(task, systems, found)),
        reranker.stages[-1],
        str(reranker),
    )


def _fusions(
    index: IndexFolder, task: Task, setting: Setting, systems: Systems, progress: Progress
) -> Iterator[Trial]:
    ways = [*_ways(setting.depth)]
    for tried, way in enumerate(ways, start=1):
        hits = _fused(index, systems, way, setting.depth)
        yield Trial(way, _measured(hits, systems, task))
        progress("tuning", tried, len(ways))


def _fused(index: IndexFolder, systems: Systems, way: FuseConfig, depth: int) -> list[Hits]:
    return [fuse(found, index.id_rank, way, k=depth) for found in systems.stages()]


def _measured(hits: list[Hits], systems: Systems, task: Task) -> dict[str, float]:
    return mean_metrics(per_query(systems.as_run("trial", hits), task.qrels))


def _weights(task: Task, systems: Systems, found: list[Hits]) -> Iterator[WeightTrial]:
    for weight in _steps():
        hits = systems.reranked(found, systems.cascade.weighing(weight))
        yield WeightTrial(weight, _measured(hits, systems, task))


def _steps() -> list[float]:
    return np.linspace(0, 1, STEPS + 1).round(4).tolist()


def _ways(depth: int) -> Iterator[FuseConfig]:
    yield FuseConfig(depth=depth)
    yield from (FuseConfig(k0=k0, depth=depth) for k0 in K0S if k0 != FuseConfig().k0)
    for weight in _steps():
        yield FuseConfig(
            method=FuseMethod.WEIGHTED,
            bm25_weight=round(1 - weight, 4),
            dense_weight=weight,
            depth=depth,
        )
