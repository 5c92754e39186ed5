"""Tuning: each setting is tried; the best is used only if it is better on queries that did not select it."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from citerec.config import FuseConfig, FuseMethod, RerankConfig
from citerec.evaluate.metrics import mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, load_eval_set
from citerec.evaluate.systems import Systems
from citerec.evaluate.tune import Choice, Trial, best_of, cross_validate, tune
from citerec.folder import IndexFolder
from citerec.io import seal_model
from citerec.rerank.pair import read_reranker_spec, write_reranker_spec

SETTING = EvalConfig()
WEIGHTS = [step / 20 for step in range(21)]  # 0, 0.05, ... 1


def test_each_fusion_is_tried_and_plain_rrf_is_the_default(dense_sample: IndexFolder) -> None:
    eval_set = load_eval_set(dense_sample, "dev")

    fusion = tune(dense_sample, eval_set, SETTING, "mrr").fusion

    assert fusion
    first, best = fusion.trials[0], fusion.best
    systems = Systems(dense_sample, eval_set, SETTING)
    assert first.setting == FuseConfig()
    assert first.metrics == mean_metrics(per_query(systems.run("rrf")[0], eval_set.qrels))
    assert best.metrics["mrr"] == max(trial.metrics["mrr"] for trial in fusion.trials)
    assert fusion.check.queries == len(eval_set.queries)
    by_weight = {
        trial.setting.dense_weight: trial.metrics
        for trial in fusion.trials
        if trial.setting.method is FuseMethod.WEIGHTED
    }
    assert [*by_weight] == WEIGHTS
    alone = mean_metrics(per_query(systems.run("dense")[0], eval_set.qrels))
    assert by_weight[1.0]["f1@20"] == pytest.approx(alone["f1@20"])


def test_a_setting_is_used_only_if_it_is_significantly_better() -> None:
    default = np.linspace(0.1, 0.5, 20)
    better = Trial(0.7, {}, default + 0.1)
    trials = [Trial(0.3, {}, default), better]

    assert Choice.of(trials, 0.3).used == 0.7
    assert Choice.of(trials, 0.7).used is None  # the default is the best
    by_chance = [trials[0], replace(better, scores=default + np.eye(20)[0])]
    assert Choice.of(by_chance, 0.3).best.setting == 0.7
    assert Choice.of(by_chance, 0.3).used is None


@pytest.fixture
def with_reranker(tiny_reranker_model: str) -> EvalConfig:
    model = RerankConfig(model=tiny_reranker_model, depth=10, precision="float32", threads=1)
    return EvalConfig(rerank=model)


def test_each_weight_is_tried_over_the_chosen_fusion(
    dense_sample: IndexFolder, with_reranker: EvalConfig
) -> None:
    eval_set = load_eval_set(dense_sample, "dev")

    tuning = tune(dense_sample, eval_set, with_reranker, "mrr")

    assert tuning.weight and tuning.fusion
    by_weight = {trial.setting: trial.metrics["mrr"] for trial in tuning.weight.trials}
    assert [*by_weight] == WEIGHTS
    fused = tuning.fusion.best if tuning.fusion.used else tuning.fusion.trials[0]
    assert by_weight[0] == pytest.approx(fused.metrics["mrr"])
    assert tuning.weight.best.metrics["mrr"] == max(by_weight.values())
    assert tuning.weight.check.default == pytest.approx(by_weight[1])
    check = replace(tuning.weight.check, cross_validated=1.0, p=0.001)
    proved = replace(tuning, weight=replace(tuning.weight, check=check)).rerank
    assert proved is not None
    assert proved.weight == tuning.weight.best.setting < 1
    assert len(proved.reranker) == 64  # a sha256
    assert proved.settings == (10, 32, 32)  # depth, tokens of query and candidate


def test_without_vectors_the_reranker_is_weighed_against_bm25(
    sample_index: IndexFolder, with_reranker: EvalConfig
) -> None:
    eval_set = load_eval_set(sample_index, "dev")

    tuning = tune(sample_index, eval_set, with_reranker, "f1@20")

    assert tuning.fusion is None
    assert tuning.weight and with_reranker.rerank
    alone = with_reranker.replace(rerank=with_reranker.rerank.replace(weight=1))
    run, _ = Systems(sample_index, eval_set, alone).run("rerank")
    last = tuning.weight.trials[-1]
    assert (last.setting, last.metrics) == (1, mean_metrics(per_query(run, eval_set.qrels)))


def test_the_weight_in_the_models_record_is_the_default(
    sample_index: IndexFolder, tiny_reranker_model: str, tmp_path: Path
) -> None:
    model = tmp_path / "weighted"
    shutil.copytree(tiny_reranker_model, model)
    write_reranker_spec(model, read_reranker_spec(model).replace(weight=0.42))
    seal_model(model)
    config = EvalConfig(rerank=RerankConfig(model=str(model), depth=10, precision="float32"))

    tuning = tune(sample_index, load_eval_set(sample_index, "dev"), config, "mrr")

    assert tuning.weight
    assert [trial.setting for trial in tuning.weight.trials] == sorted({*WEIGHTS, 0.42})
    assert tuning.weight.trials[tuning.weight.default].setting == 0.42


# --- cross-validation


def test_of_equal_settings_the_default_is_best_then_the_first() -> None:
    table = np.array([[0.2, 0.4], [0.4, 0.4], [0.4, 0.4], [0.6, 0.2]])

    assert best_of(table, 0) == 1  # .3, .4, .4, .4
    assert best_of(table, 2) == 2
    assert best_of(table[:, :0], 3) == 3  # no query


def test_the_best_of_many_by_chance_is_not_better() -> None:
    rng = np.random.default_rng(1)
    table = rng.random((25, 29))  # 25 settings that differ by chance alone, 29 queries

    checked = cross_validate(table, 0)

    assert table.mean(1).max() > checked.default + 0.05  # it looks better
    assert not checked.is_better
    assert (checked.queries, checked.folds) == (29, 10)


def test_a_query_is_measured_with_the_setting_that_the_others_select() -> None:
    # Each setting is best on one query alone: 1 there and 0 elsewhere, against .1 everywhere.
    table = np.concatenate([np.full((1, 5), 0.1), np.eye(5)])

    assert (
        cross_validate(table, 0).cross_validated == 0.0
    )  # what four queries select is 0 on the fifth
