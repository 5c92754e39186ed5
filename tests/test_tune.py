"""Tuning: each fusion is tried; the best is used only if it is better on queries that did not select it."""

import numpy as np
import pytest

from citerec.cli.evaluate import verdict_on
from citerec.config import FuseConfig, FuseMethod
from citerec.errors import ConfigError
from citerec.evaluate.metrics import mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, load_eval_set
from citerec.evaluate.systems import Systems
from citerec.evaluate.tune import Trial, Tuning, best_of, cross_validate, tune
from citerec.folder import IndexFolder

SETTING = EvalConfig()
WEIGHTS = [step / 20 for step in range(21)]  # 0, 0.05, ... 1


def test_each_fusion_is_tried_and_plain_rrf_is_the_default(dense_sample: IndexFolder) -> None:
    eval_set = load_eval_set(dense_sample, "dev")

    tuning = tune(dense_sample, eval_set, SETTING, "mrr")

    first, best = tuning.trials[0], tuning.best
    systems = Systems(dense_sample, eval_set, SETTING)
    assert first.fusion == FuseConfig()
    assert first.metrics == mean_metrics(per_query(systems.run("rrf")[0], eval_set.qrels))
    assert best.metrics["mrr"] == max(trial.metrics["mrr"] for trial in tuning.trials)
    assert tuning.check.queries == len(eval_set.queries)
    by_weight = {
        trial.fusion.dense_weight: trial.metrics
        for trial in tuning.trials
        if trial.fusion.method is FuseMethod.WEIGHTED
    }
    assert [*by_weight] == WEIGHTS
    dampings = [trial.fusion.k0 for trial in tuning.trials if trial.fusion.method is FuseMethod.RRF]
    assert dampings == [60, 10, 20, 100]
    alone = mean_metrics(per_query(systems.run("dense")[0], eval_set.qrels))
    assert by_weight[1.0]["f1@20"] == pytest.approx(alone["f1@20"])


def test_a_fusion_is_used_only_if_it_is_significantly_better() -> None:
    scores = np.linspace(0.1, 0.5, 20)  # .3 in the mean
    default = Trial(FuseConfig(), {"mrr": 0.3}, scores)
    better = Trial(FuseConfig(k0=10), {"mrr": 0.4}, scores + 0.1)
    on_one = Trial(FuseConfig(k0=10), {"mrr": 0.35}, scores + np.eye(20)[0])  # 1 more in 20

    proved, best_already = Tuning.of([default, better]), Tuning.of([better, default])
    by_chance = Tuning.of([default, on_one])

    assert proved.used == FuseConfig(k0=10)
    assert verdict_on(proved, "mrr", "dev").endswith(": used")
    assert best_already.used is None
    assert verdict_on(best_already, "mrr", "dev") == (
        "rrf, k 10, the default, is best on 20 dev queries (mrr 0.4000)"
    )
    assert by_chance.best is on_one
    assert by_chance.used is None
    verdict = verdict_on(by_chance, "mrr", "dev")
    assert "is best on 20 dev queries (mrr 0.3500, the default rrf, k 60 0.3000)" in verdict
    assert verdict.endswith("not significantly better (p < 0.05); rrf, k 60 is used")


def test_without_vectors_there_is_nothing_to_fuse(sample_index: IndexFolder) -> None:
    eval_set = load_eval_set(sample_index, "dev")

    with pytest.raises(ConfigError, match="has no vectors; embed its papers: citerec encode"):
        tune(sample_index, eval_set, SETTING, "mrr")


# --- cross-validation


def test_of_equal_settings_the_default_is_best_then_the_first() -> None:
    table = np.array([[0.2, 0.4], [0.4, 0.4], [0.4, 0.4], [0.6, 0.2]])

    assert best_of(table) == 1  # .3, .4, .4, .4
    assert best_of(table[1:]) == 0
    assert best_of(table[:, :0]) == 0  # no query


def test_the_best_of_many_by_chance_is_not_better() -> None:
    rng = np.random.default_rng(1)
    table = rng.random((25, 29))  # 25 settings that differ by chance alone, 29 queries

    checked = cross_validate(table)

    assert table.mean(1).max() > checked.default + 0.05  # it looks better
    assert not checked.is_better
    assert (checked.queries, checked.folds) == (29, 10)


def test_a_query_is_measured_with_the_setting_that_the_others_select() -> None:
    # Each setting is best on one query alone: 1 there and 0 elsewhere, against .1 everywhere.
    table = np.concatenate([np.full((1, 5), 0.1), np.eye(5)])

    # what four queries select is 0 on the fifth
    assert cross_validate(table).cross_validated == 0
