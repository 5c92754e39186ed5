"""Tunes the fusion of BM25 and dense retrieval, and the rerank weight, on the dev split.

A tuned setting is used only if it is significantly better than the default, see `citerec.evaluate.crossval`.
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
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.fuse import fuse
from citerec.tuned import RerankWeight
from citerec.types import Hits, Log, Progress, no_progress

STEPS = 20  # of a weight between 0 and 1
K0S = (10, 20, 60, 100)
RRF = 0  # the place of the default fusion


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One fusion setting and its metrics."""

    fuse: FuseConfig
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # the tuned metric of each query


@dataclass(frozen=True, slots=True, eq=False)
class WeightTrial:
    """One rerank weight and its metrics."""

    weight: float  # in [0, 1]; 0: the first stage alone; 1: the reranker alone
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # the tuned metric of each query


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """All trials, the best of them, and whether it is better than the default."""

    metric: str
    trials: tuple[Trial, ...]  # the first is the default, plain RRF; none without vectors
    fusion: CrossValidation | None = None  # of `trials`
    weights: tuple[WeightTrial, ...] = ()  # rising, with the reranker's default; none without one
    weighting: CrossValidation | None = None  # of `weights`
    reranker: OpenReranker | None = None  # the reranker of `weights`
    reranking: str = ""  # description of the reranker

    @property
    def best(self) -> Trial:
        """The trial with the highest metric; the default if it is among the best.

        Raises:
            ValueError: If there is no trial.
        """
        return self.trials[best_of(_table(self.trials), RRF)]

    @property
    def fuse(self) -> FuseConfig | None:
        """The best fusion if it is significantly better than plain RRF, else None."""
        if not (self.fusion and self.fusion.is_better) or self.best is self.trials[RRF]:
            return None
        return self.best.fuse

    @property
    def best_weight(self) -> WeightTrial | None:
        """The rerank weight with the highest metric; of equal ones the default, then the lowest; None without one."""
        if self.reranker is None:
            return None
        default = _place(self.weights, self.reranker.default_weight)
        return self.weights[best_of(_table(self.weights), default)]

    @property
    def rerank(self) -> RerankWeight | None:
        """The best rerank weight if it is significantly better than the reranker's default, else None."""
        best, reranker = self.best_weight, self.reranker
        if best is None or reranker is None or not (self.weighting and self.weighting.is_better):
            return None
        if best.weight == reranker.default_weight:
            return None
        settings = reranker.settings
        return RerankWeight(
            best.weight,
            settings["weights"],
            reranker.depth,
            settings["query_tokens"],
            settings["candidate_tokens"],
        )


def tune(
    index: IndexFolder,
    task: EvalSet,
    config: EvalConfig,
    metric: str,
    progress: Progress = no_progress,
    log: Log | None = None,
) -> Tuning:
    """Try fusion settings on the queries of an evaluation set, then rerank weights over the chosen fusion.

    Each retriever searches once, and the reranker scores a pair once.

    Args:
        index: An index with vectors, or for which there is a reranker.
        task: The evaluation set; use the dev split, so that the test split stays unseen.
        config: The settings of the retrievers and the reranker.
        metric: The tuned metric, one of `PER_QUERY`.
        progress: Receives the number of finished trials.
        log: Receives what is downloaded from the hub.

    Raises:
        ConfigError: If the index has no vectors and there is no reranker.
        ModelError: If the reranker cannot be opened.
        ValueError: If there is no such metric.
    """
    if metric not in PER_QUERY:
        raise ValueError(f"no metric {metric!r}; choose from {', '.join(PER_QUERY)}")
    if config.rerank:  # an earlier tuned weight is ignored, even if it cannot be read
        config = replace(config, rerank=config.rerank.replace(weight=1.0))
    systems = Systems(index, task, config, log, progress)
    reranker = systems.cascade if config.rerank else None  # opened first, since it may fail
    if index.is_embedded or not reranker:
        systems.check(["dense"])
    if reranker and not index.is_embedded:
        tuning, rankings = Tuning(metric, ()), systems.hits("bm25")
    else:
        trials = tuple(_fusions(index, task, config, systems, metric, progress))
        tuning = Tuning(metric, trials, cross_validate(_table(trials), RRF))
        fuse_config = tuning.fuse or FuseConfig()
        rankings = _fused(index, systems, fuse_config, config.depth) if reranker else []
    if reranker is None:
        return tuning
    weights = tuple(_weights(task, systems, metric, rankings, reranker.default_weight))
    return replace(
        tuning,
        weights=weights,
        weighting=cross_validate(_table(weights), _place(weights, reranker.default_weight)),
        reranker=reranker,
        reranking=str(reranker),
    )


def _table(trials: Sequence[Trial] | Sequence[WeightTrial]) -> Floats:
    """Return the tuned metric of each query, shape (trials, queries)."""
    return np.stack([trial.scores for trial in trials])


def _fusions(
    index: IndexFolder,
    task: EvalSet,
    config: EvalConfig,
    systems: Systems,
    metric: str,
    progress: Progress,
) -> Iterator[Trial]:
    fuse_configs = [*_ways(config.depth)]
    for tried, fuse_config in enumerate(fuse_configs, start=1):
        hits = _fused(index, systems, fuse_config, config.depth)
        figures = _measured(hits, systems, task)
        yield Trial(fuse_config, mean_metrics(figures), figures[metric])
        progress("tuning", tried, len(fuse_configs))


def _fused(index: IndexFolder, systems: Systems, fuse_config: FuseConfig, depth: int) -> list[Hits]:
    return [fuse(hits, index.id_rank, fuse_config, k=depth) for hits in systems.retrieved()]


def _measured(hits: list[Hits], systems: Systems, task: EvalSet) -> dict[str, Floats]:
    return per_query(systems.as_run("trial", hits), task.qrels)


def _place(trials: Sequence[WeightTrial], weight: float) -> int:
    return [trial.weight for trial in trials].index(weight)


def _weights(
    task: EvalSet, systems: Systems, metric: str, rankings: list[Hits], default: float
) -> Iterator[WeightTrial]:
    for weight in sorted({*_steps(), default}):
        hits = systems.reranked(rankings, systems.cascade.with_weight(weight))
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
