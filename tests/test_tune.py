"""Tuning: each way to fuse is tried once, the best of them on dev is kept."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from citerec.config import FuseConfig, FuseMethod, RerankConfig
from citerec.evaluate.metrics import mean_metrics, per_query
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.systems import Systems
from citerec.evaluate.tune import Trial, tune
from citerec.folder import IndexFolder
from citerec.manifest import seal_model
from citerec.rerank.spec import read_reranker_spec, write_reranker_spec

SETTING = EvalConfig()


def test_a_weight_of_one_gives_what_its_stage_gives_alone(dense_sample: IndexFolder) -> None:
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, SETTING, "f1@20")

    weighted = {
        trial.fuse.dense_weight: trial.metrics
        for trial in tuning.trials
        if trial.fuse.method is FuseMethod.WEIGHTED
    }
    assert len(weighted) == 21  # 0, 0.05, ... 1
    alone, _ = Systems(dense_sample, task, SETTING).run("dense")
    measured = mean_metrics(per_query(alone, task.qrels))
    assert weighted[1.0]["f1@20"] == pytest.approx(measured["f1@20"])


def test_plain_rrf_is_tried_first_and_the_best_is_the_highest(dense_sample: IndexFolder) -> None:
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, SETTING, "mrr")

    assert tuning.trials[0].fuse == FuseConfig()
    run, _ = Systems(dense_sample, task, SETTING).run("rrf")
    assert tuning.trials[0].metrics == mean_metrics(per_query(run, task.qrels))
    assert tuning.best.metrics["mrr"] == max(trial.metrics["mrr"] for trial in tuning.trials)


def test_the_best_way_is_kept_only_if_that_is_proved(dense_sample: IndexFolder) -> None:
    tuning = tune(dense_sample, load_task(dense_sample, "dev"), SETTING, "f1@20")

    assert tuning.fusion is not None
    assert tuning.fusion.queries == len(tuning.trials[0].scores)
    assert tuning.fusion.default == pytest.approx(tuning.trials[0].metrics["f1@20"])
    better = replace(tuning.fusion, tuned=tuning.fusion.default + 0.01, p=0.04)
    best = replace(tuning, trials=tuning.trials[:1] + _raised(tuning.trials[1:]), fusion=better)
    assert best.fuse == best.best.fuse != FuseConfig(depth=1000)
    assert replace(best, fusion=replace(better, p=0.06)).fuse is None
    assert replace(best, fusion=replace(better, tuned=0.0)).fuse is None


def _raised(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    return tuple(replace(trial, scores=trial.scores + 1) for trial in trials)


def test_a_metric_that_is_none_is_refused(dense_sample: IndexFolder) -> None:
    with pytest.raises(ValueError, match="no metric 'bleu'"):
        tune(dense_sample, load_task(dense_sample, "dev"), SETTING, "bleu")


# --- the reranker's weight


@pytest.fixture
def with_reranker(tiny_reranker_model: str) -> EvalConfig:
    config = RerankConfig(
        model=tiny_reranker_model, depth=10, precision="float32", backend="torch", threads=1
    )
    return EvalConfig(rerank=config)


def test_each_weight_is_tried_over_the_best_fusion(
    dense_sample: IndexFolder, with_reranker: EvalConfig
) -> None:
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, with_reranker, "mrr")

    by_weight = {trial.weight: trial.metrics["mrr"] for trial in tuning.weights}
    assert len(by_weight) == 21  # 0, 0.05, ... 1
    kept = tuning.trials[0] if tuning.fuse is None else tuning.best
    assert by_weight[0] == pytest.approx(kept.metrics["mrr"])
    assert tuning.best_weight is not None
    assert tuning.best_weight.metrics["mrr"] == max(by_weight.values())
    assert tuning.weighting is not None
    assert tuning.weighting.default == pytest.approx(by_weight[1])
    proved = replace(tuning, weighting=replace(tuning.weighting, tuned=1.0, p=0.001))
    assert proved.rerank is not None
    assert proved.rerank.weight == tuning.best_weight.weight < 1
    assert len(proved.rerank.reranker) == 64  # a sha256
    assert proved.rerank.settings == (10, 32, 32)  # depth, tokens of query and candidate
    assert replace(tuning, weighting=replace(tuning.weighting, p=0.2)).rerank is None
    assert tuning.reranking.startswith("reranking the best 10 by ")


def test_without_vectors_the_reranker_is_weighed_against_bm25(
    sample_index: IndexFolder, with_reranker: EvalConfig
) -> None:
    task = load_task(sample_index, "dev")

    tuning = tune(sample_index, task, with_reranker, "f1@20")

    assert tuning.trials == ()
    assert tuning.fuse is None
    alone = replace(with_reranker, rerank=with_reranker.rerank.replace(weight=1))
    run, _ = Systems(sample_index, task, alone).run("rerank")
    assert tuning.weights[-1].weight == 1
    assert tuning.weights[-1].metrics == mean_metrics(per_query(run, task.qrels))


def test_the_weight_that_a_model_states_is_its_default(
    dense_sample: IndexFolder, tiny_reranker_model: str, tmp_path: Path
) -> None:
    model = tmp_path / "stating"
    shutil.copytree(tiny_reranker_model, model)
    write_reranker_spec(model, replace(read_reranker_spec(model), weight=0.42))
    seal_model(model)
    config = EvalConfig(rerank=RerankConfig(model=str(model), depth=10, precision="float32"))
    task = load_task(dense_sample, "dev")

    tuning = tune(dense_sample, task, config, "mrr")

    by_weight = {trial.weight: trial for trial in tuning.weights}
    assert [*by_weight] == sorted({*(step / 20 for step in range(21)), 0.42})
    assert tuning.weighting is not None
    assert tuning.weighting.default == pytest.approx(by_weight[0.42].metrics["mrr"])
    proved = replace(tuning, weighting=replace(tuning.weighting, tuned=1.0, p=0.001))
    raised = {w: replace(by_weight[w], scores=by_weight[w].scores + 1) for w in (0.42, 1.0)}
    best_is_default = replace(proved, weights=(by_weight[0.0], raised[0.42], by_weight[1.0]))
    assert best_is_default.rerank is None
    better = replace(proved, weights=(by_weight[0.0], by_weight[0.42], raised[1.0]))
    assert better.rerank is not None
    assert better.rerank.weight == 1  # a weight as any other, where the model states another


def test_without_a_reranker_no_weight_is_found(dense_sample: IndexFolder) -> None:
    tuning = tune(dense_sample, load_task(dense_sample, "dev"), SETTING, "mrr")

    assert (tuning.weights, tuning.rerank) == ((), None)
