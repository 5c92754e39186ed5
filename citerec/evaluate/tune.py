"""Tunes the fusion of BM25 and dense retrieval, and the rerank weight, on the dev split.

The best of many settings looks better on the queries that selected it than on others. Therefore each query is measured
with the setting that is best on the other folds, and the default is compared with these values by Fisher's
randomisation test: a tuned setting is used only if it is significantly better. The folds share the queries that they
select by, so the test is approximate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from citerec.config import FuseConfig, FuseMethod
from citerec.errors import ConfigError
from citerec.evaluate.metrics import PER_QUERY, mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.evaluate.significance import ALPHA, Floats, randomisation_test
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.fuse import fuse
from citerec.tuned import RerankWeight
from citerec.types import Hits, Log, Progress, no_log, no_progress

WEIGHTS: tuple[float, ...] = tuple(np.linspace(0, 1, 21).round(4).tolist())
K0S = (10, 20, 60, 100)
FOLDS = 10  # fewer where there are fewer queries
_EQUAL = 1e-12  # means closer than this are equal but for rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossValidation:
    """The default against tuning, by a metric in [0, 1]."""

    default: float  # mean over the queries
    cross_validated: float  # mean over the queries, each with the best setting of the other folds
    p: float  # two-sided, in (0, 1]
    queries: int
    folds: int

    @property
    def is_better(self) -> bool:
        """Whether tuning is significantly better than the default."""
        return self.cross_validated > self.default and self.p < ALPHA


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One setting and its metrics."""

    setting: Any  # a `FuseConfig`, or a rerank weight
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # the tuned metric of each query


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """All trials of one setting, and whether the best of them is better than the default."""

    trials: tuple[Trial, ...]
    default: int  # the place of the default among the trials
    check: CrossValidation

    @classmethod
    def of(cls, trials: Sequence[Trial], default: Any) -> "Choice":
        """Compare the default with tuning over the same queries."""
        place = [trial.setting for trial in trials].index(default)
        table = np.stack([trial.scores for trial in trials])
        return cls(tuple(trials), place, cross_validate(table, place))

    @property
    def best(self) -> Trial:
        """The trial with the highest metric; the default if it is among the best."""
        return self.trials[best_of(np.stack([trial.scores for trial in self.trials]), self.default)]

    @property
    def used(self) -> Any:
        """The best setting if it is significantly better than the default, else None."""
        best = self.best
        return best.setting if self.check.is_better and best != self.trials[self.default] else None


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """What was tuned by a metric."""

    metric: str
    fusion: Choice | None = None  # None without vectors
    weight: Choice | None = None  # None without a reranker; 1: the reranker alone
    reranker: OpenReranker | None = None

    @property
    def rerank(self) -> RerankWeight | None:
        """The best rerank weight if it is significantly better than the reranker's default, else None."""
        weight = self.weight.used if self.weight else None
        if weight is None or self.reranker is None:
            return None
        of = self.reranker.settings
        tokens = of.get("query_tokens", 0), of.get("candidate_tokens", 0)  # 0: a user's object
        return RerankWeight(weight, of["weights"], self.reranker.depth, *tokens)


def tune(
    index: IndexFolder,
    eval_set: EvalSet,
    config: EvalConfig,
    metric: str,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> Tuning:
    """Try fusion settings on the queries of an evaluation set, then rerank weights over the chosen fusion.

    Each retriever searches once, and the reranker scores a pair once.

    `eval_set` should be the dev split, so that the test split stays unseen; `metric` is one of `PER_QUERY`; further
    retrievers of `config` are fused by ranks alone. `progress` receives the number of finished trials. ConfigError if
    there is no such metric, or the index has no vectors and there is no reranker; ModelError if the reranker cannot be
    opened.
    """
    if metric not in PER_QUERY:
        raise ConfigError(f"no metric {metric!r}; choose from {', '.join(PER_QUERY)}")
    if config.rerank:  # an earlier tuned weight is ignored, even if it cannot be read
        config = config.replace(rerank=config.rerank.replace(weight=1.0))
    systems = Systems(index, eval_set, config, log, progress)
    opened = systems.open_reranker if config.rerank else None  # first, since it may fail
    further, fusion = bool(config.retrievers), None
    if not index.is_embedded and not further and opened:
        hits = systems.hits("bm25")
    else:
        if not further:
            systems.check(["dense"])
        lists = systems.retrieved()

        def fused(setting: FuseConfig) -> list[Hits]:
            return [fuse(one, index.id_rank, setting, k=config.depth) for one in lists]

        depth = config.depth
        ways = [FuseConfig(depth=depth)]  # the default, plain RRF, is first
        ways += [FuseConfig(k0=k0, depth=depth) for k0 in K0S if k0 != FuseConfig().k0]
        for dense in () if further else WEIGHTS:
            weighted = FuseConfig(method=FuseMethod.WEIGHTED, depth=depth)
            ways.append(weighted.replace(bm25_weight=round(1 - dense, 4), dense_weight=dense))
        trials: list[Trial] = []
        for way in ways:
            trials.append(_trial(way, fused(way), systems, eval_set, metric))
            progress("tuning", len(trials), len(ways))
        fusion = Choice.of(trials, ways[0])
        hits = fused(fusion.used or FuseConfig())
    if opened is None:
        return Tuning(metric, fusion)
    default = opened.default_weight
    weights: list[Trial] = []
    for weight in sorted({*WEIGHTS, default}):
        done = opened.with_weight(weight).rerank(eval_set.queries, hits, progress)
        weights.append(_trial(weight, [one.hits for one in done], systems, eval_set, metric))
    return Tuning(metric, fusion, Choice.of(weights, default), opened)


def best_of(table: Floats, default: int) -> int:
    """Return the setting with the highest mean: the default if none is higher, otherwise the first of equal ones.

    `table` holds the metric of each query, shape (settings, queries); `default` is the row of the default.
    """
    means = table.mean(1) if table.shape[1] else np.zeros(len(table))
    return default if means[default] >= means.max() - _EQUAL else int(np.argmax(means))


def cross_validate(table: Floats, default: int) -> CrossValidation:
    """Compare the default with tuning, each query measured with settings selected on other queries.

    `table` and `default` are as for `best_of`, with at least one query.
    """
    queries = table.shape[1]
    folds = min(FOLDS, queries)
    rng = np.random.default_rng([0, 12])
    fold = rng.permutation(np.arange(queries) % folds)
    tuned = np.empty(queries)
    for k in range(folds):
        held_out = fold == k
        tuned[held_out] = table[best_of(table[:, ~held_out], default), held_out]
    [p] = randomisation_test(tuned[:, None], table[default][:, None], lambda means: means, rng=rng)
    means = {"default": float(table[default].mean()), "cross_validated": float(tuned.mean())}
    return CrossValidation(**means, p=float(p), queries=queries, folds=folds)


def _trial(
    setting: Any, hits: list[Hits], systems: Systems, eval_set: EvalSet, metric: str
) -> Trial:
    scores = per_query(systems.as_run("trial", hits), eval_set.qrels)
    return Trial(setting, mean_metrics(scores), scores[metric])
