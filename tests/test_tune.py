"""Tuning: each way to fuse is tried once, the best of them on dev is kept."""

import pytest

from citerec.config import FuseConfig, FuseMethod
from citerec.evaluate.metrics import mean_metrics, per_query
from citerec.evaluate.protocol import Setting, load_task
from citerec.evaluate.systems import run_system
from citerec.evaluate.tune import tune
from citerec.folder import IndexFolder

SETTING = Setting()


def test_a_weight_of_one_gives_what_its_stage_gives_alone(dense_sample: IndexFolder) -> None:
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, SETTING, "f1@20")

    weighted = {
        trial.fuse.dense_weight: trial.metrics
        for trial in tuning.trials
        if trial.fuse.method is FuseMethod.WEIGHTED
    }
    assert len(weighted) == 21  # 0, 0.05, ... 1
    alone, _ = run_system("dense", dense_sample, task, SETTING)
    measured = mean_metrics(per_query(alone, task.qrels))
    assert weighted[1.0]["f1@20"] == pytest.approx(measured["f1@20"])


def test_plain_rrf_is_tried_first_and_the_best_is_the_highest(dense_sample: IndexFolder) -> None:
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, SETTING, "mrr")

    assert tuning.trials[0].fuse == FuseConfig()
    run, _ = run_system("rrf", dense_sample, task, SETTING)
    assert tuning.trials[0].metrics == mean_metrics(per_query(run, task.qrels))
    assert tuning.best.metrics["mrr"] == max(trial.metrics["mrr"] for trial in tuning.trials)


def test_a_metric_that_is_none_is_refused(dense_sample: IndexFolder) -> None:
    with pytest.raises(ValueError, match="no metric 'bleu'"):
        tune(dense_sample, load_task(dense_sample, "dev"), SETTING, "bleu")
