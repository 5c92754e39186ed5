"""Finds how BM25 and dense retrieval are best put together, and how much a reranker counts, on the dev split.

What is best there is kept only if it beats the default beyond chance, see `citerec.evaluate.crossval`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from citerec.config import FuseConfig, FuseMethod
from citerec.evaluate.crossval import CrossValidation, best_of, cross_validate
from citerec.evaluate.metrics import PER_QUERY, mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.evaluate.significance import Floats
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.fuse import fuse
from citerec.rerank.cascade import Stage
from citerec.tuned import RerankWeight
from citerec.types import Hits, Log, Progress, no_progress

STEPS = 20  # of a weight between 0 and 1
K0S = (10, 20, 60, 100)
RRF, ALONE = 0, -1  # the defaults: the first way to fuse, and the last weight, 1


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One way to fuse, and what it gave."""

    fuse: FuseConfig
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # of each query, by the metric that is tuned for


@dataclass(frozen=True, slots=True, eq=False)
class WeightTrial:
    """One weight of the reranker, and what it gave."""

    weight: float  # 0: the first stages alone; 1: the reranker alone
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # of each query, by the metric that is tuned for


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """All that was tried, the best of it, and whether that is better than the default."""

    metric: str
    trials: tuple[Trial, ...]  # the first is the default, plain RRF; none without vectors
    fusion: CrossValidation | None = None  # of `trials`
    weights: tuple[WeightTrial, ...] = ()  # the last is the default, 1; none without a reranker
    weighting: CrossValidation | None = None  # of `weights`
    reranker: Stage | None = None  # the one that was weighed
    reranking: str = ""  # which reranker, and how, in words

    @property
    def best(self) -> Trial:
        """The trial of the highest metric; of equal ones plain RRF before all others.

        Raises:
            ValueError: If there is none.
        """
        return self.trials[best_of(_table(self.trials), RRF)]

    @property
    def fuse(self) -> FuseConfig | None:
        """The best way to fuse, if it is better than plain RRF beyond chance; else None."""
        if not (self.fusion and self.fusion.is_better) or self.best is self.trials[RRF]:
            return None
        return self.best.fuse

    @property
    def best_weight(self) -> WeightTrial | None:
        """The reranker's weight of the highest metric, of equal ones 1, then the lowest; None without a reranker."""
        if not self.weights:
            return None
        return self.weights[best_of(_table(self.weights), ALONE)]

    @property
    def rerank(self) -> RerankWeight | None:
        """The best weight of the reranker, if it is better than 1 beyond chance; else None."""
        best, stage = self.best_weight, self.reranker
        if best is None or stage is None or not (self.weighting and self.weighting.is_better):
            return None
        if best is self.weights[ALONE]:
            return None
        how = stage.how
        return RerankWeight(
            best.weight, how["weights"], stage.depth, how["query_tokens"], how["candidate_tokens"]
        )


def tune(
    index: IndexFolder,
    task: EvalSet,
    setting: EvalConfig,
    metric: str,
    progress: Progress = no_progress,
    log: Log | None = None,
) -> Tuning:
    """Try ways to fuse on the queries of a task, then weights of the reranker over the fusion that is kept.

    Each stage searches once, and the reranker scores a pair once.

    Args:
        index: What is searched; it needs vectors, or a reranker.
        task: The queries; those of the dev split, lest the test split be tuned on.
        setting: How the stages search; whether and how a reranker reads.
        metric: What counts, one of `PER_QUERY`.
        progress: Receives how many ways were tried.
        log: Receives what is fetched from the hub, before.

    Raises:
        ConfigError: If the index has no vectors, and there is no reranker.
        ModelError: If the reranker is none.
        ValueError: If there is no such metric.
    """
    if metric not in PER_QUERY:
        raise ValueError(f"no metric {metric!r}; there are: {', '.join(PER_QUERY)}")
    if setting.rerank:  # whatever weight there was before does not count, nor if it cannot be read
        setting = replace(setting, rerank=replace(setting.rerank, weight=1.0, early_stop=False))
    systems = Systems(index, task, setting, log, progress)
    reranker = systems.cascade if setting.rerank else None  # opened first: it may be none
    if index.is_embedded or not reranker:
        systems.check(["dense"])
    if reranker and not index.is_embedded:
        tuning, found = Tuning(metric, ()), systems.hits("bm25")
    else:
        trials = tuple(_fusions(index, task, setting, systems, metric, progress))
        tuning = Tuning(metric, trials, cross_validate(_table(trials), RRF))
        way = tuning.fuse or FuseConfig()
        found = _fused(index, systems, way, setting.depth) if reranker else []
    if reranker is None:
        return tuning
    weights = tuple(_weights(task, systems, metric, found))
    return replace(
        tuning,
        weights=weights,
        weighting=cross_validate(_table(weights), ALONE),
        reranker=reranker.stages[-1],
        reranking=str(reranker),
    )


def _table(trials: Sequence[Trial] | Sequence[WeightTrial]) -> Floats:
    """Return the metric of each query, shape (trials, queries)."""
    return np.stack([trial.scores for trial in trials])


def _fusions(
    index: IndexFolder,
    task: EvalSet,
    setting: EvalConfig,
    systems: Systems,
    metric: str,
    progress: Progress,
) -> Iterator[Trial]:
    ways = [*_ways(setting.depth)]
    for tried, way in enumerate(ways, start=1):
        hits = _fused(index, systems, way, setting.depth)
        figures = _measured(hits, systems, task)
        yield Trial(way, mean_metrics(figures), figures[metric])
        progress("tuning", tried, len(ways))


def _fused(index: IndexFolder, systems: Systems, way: FuseConfig, depth: int) -> list[Hits]:
    return [fuse(found, index.id_rank, way, k=depth) for found in systems.stages()]


def _measured(hits: list[Hits], systems: Systems, task: EvalSet) -> dict[str, Floats]:
    return per_query(systems.as_run("trial", hits), task.qrels)


def _weights(
    task: EvalSet, systems: Systems, metric: str, found: list[Hits]
) -> Iterator[WeightTrial]:
    for weight in _steps():
        hits = systems.reranked(found, systems.cascade.with_weight(weight))
        figures = _measured(hits, systems, task)
        yield WeightTrial(weight, mean_metrics(figures), figures[metric])


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
