"""Tunes the fusion of BM25 and dense retrieval on the dev split.

The best of many settings looks better on the queries that selected it than on others. Therefore each query is measured
with the setting that is best on the other folds, and the default is compared with these values by Fisher's
randomisation test: a tuned setting is used only if it is significantly better. The folds share the queries that they
select by, so the test is approximate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from citerec.config import FuseConfig, FuseMethod
from citerec.errors import ConfigError
from citerec.evaluate.metrics import PER_QUERY, mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.evaluate.significance import ALPHA, Floats, randomisation_test
from citerec.evaluate.systems import EXPANDED, Systems
from citerec.folder import IndexFolder
from citerec.retrieve.fuse import fuse
from citerec.types import Log, Progress, no_log, no_progress

WEIGHTS: tuple[float, ...] = tuple(np.linspace(0, 1, 21).round(4).tolist())
K0S = (60, 10, 20, 100)  # the default is first
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
    """One fusion and its metrics."""

    fusion: FuseConfig
    metrics: Mapping[str, float]  # by `METRICS`, means over the queries
    scores: Floats  # the tuned metric of each query


@dataclass(frozen=True, slots=True, eq=False)
class Tuning:
    """All trials, and whether the best of them is better than the default."""

    trials: tuple[Trial, ...]  # the default is first
    best: Trial  # the one with the highest metric; the default if it is among the best
    check: CrossValidation

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> "Tuning":
        """Compare the first trial, the default, with tuning over the same queries."""
        table = np.stack([trial.scores for trial in trials])
        return cls(tuple(trials), trials[best_of(table)], cross_validate(table))

    @property
    def used(self) -> FuseConfig | None:
        """The best fusion if it is significantly better than the default, else None."""
        is_better = self.check.is_better and self.best is not self.trials[0]
        return self.best.fusion if is_better else None


def tune(
    index: IndexFolder,
    eval_set: EvalSet,
    config: EvalConfig,
    metric: str,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> Tuning:
    """Try fusions on the queries of an evaluation set; each retriever searches once.

    `eval_set` should be the dev split, so that the test split stays unseen; `metric` is one of `PER_QUERY`; further
    retrievers of `config` are fused by ranks alone. `progress` receives the number of finished trials. ConfigError if
    there is no such metric, or the index has no vectors and there is no further retriever.
    """
    if metric not in PER_QUERY:
        raise ConfigError(f"no metric {metric!r}; choose from {', '.join(PER_QUERY)}")
    systems = Systems(index, eval_set, config, log)
    fusions = [FuseConfig(k0=k0) for k0 in K0S]
    if not config.retrievers:
        systems.check(["dense"])
        for dense in WEIGHTS:
            weighted = FuseConfig(method=FuseMethod.WEIGHTED, dense_weight=dense)
            fusions.append(weighted.replace(bm25_weight=round(1 - dense, 4)))
    # an earlier tuning is ignored, even if it cannot be read
    candidates = systems.candidates("rrf" if index.is_embedded else EXPANDED)
    trials: list[Trial] = []
    for fusion in fusions:
        hits = [
            fuse(candidate_set.hits_by_source, index.id_rank, fusion, k=config.depth)
            for candidate_set in candidates
        ]
        scores = per_query(systems.as_run("trial", hits), eval_set.qrels)
        trials.append(Trial(fusion, mean_metrics(scores), scores[metric]))
        progress("tuning", len(trials), len(fusions))
    return Tuning.of(trials)


def best_of(table: Floats) -> int:
    """Return the setting with the highest mean: the default if none is higher, otherwise the first of equal ones.

    `table` holds the metric of each query, shape (settings, queries); its first row is that of the default.
    """
    means = table.mean(1) if table.shape[1] else np.zeros(len(table))
    return 0 if means[0] >= means.max() - _EQUAL else int(np.argmax(means))


def cross_validate(table: Floats) -> CrossValidation:
    """Compare the default with tuning, each query measured with settings selected on other queries.

    `table` is as for `best_of`, with at least one query.
    """
    queries = table.shape[1]
    folds = min(FOLDS, queries)
    rng = np.random.default_rng([0, 12])
    fold = rng.permutation(np.arange(queries) % folds)
    tuned = np.empty(queries)
    for k in range(folds):
        held_out = fold == k
        tuned[held_out] = table[best_of(table[:, ~held_out]), held_out]
    [p] = randomisation_test(tuned[:, None], table[0][:, None], lambda means: means, rng=rng)
    return CrossValidation(
        default=float(table[0].mean()),
        cross_validated=float(tuned.mean()),
        p=float(p),
        queries=queries,
        folds=folds,
    )
