"""A ranker that reads a reranker: which queries it may score, what is recorded, and use with another reranker."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny import tiny_reranker
from support.tiny_ranker import tiny_ranker

from citerec.build import BuildConfig, build_index
from citerec.config import RecommendConfig, RerankConfig
from citerec.errors import ConfigError
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder, open_index
from citerec.manifest import seal_model
from citerec.pipeline import Pipeline, rank_stages
from citerec.rank.features import NAMES
from citerec.rank.ltr import RankedCandidates, open_ranker
from citerec.recommend import BatchRecommender
from citerec.rerank.choose import open_reranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.rules.held_out import may_know_queries
from citerec.rules.known import CitationScope, TemporalGraph
from citerec.train.data import load_training_data
from citerec.train.ranker.config import RankerTraining
from citerec.train.ranker.examples import RankerExamples
from citerec.train.ranker.gather import Gatherer
from citerec.train.ranker.models import IndexModels, rerankable, weights_of
from citerec.train.ranker.queries import dev_queries
from citerec.train.ranker.train import train_ranker, was_trained_so
from citerec.types import Query, no_progress

Build = Callable[..., IndexFolder]
DRAFT = Query(id="draft", title="Dense passage retrieval for question answering", year=2021)


def config(**given: Any) -> RankerTraining:
    few = {"threads": 1, "trees": 3, "least_rows": 5, "queries": 20, "dev_queries": 6}
    return RankerTraining.of(few | {"rerank_depth": 10} | given)


def trained_on(model: Path, *indexes: IndexFolder) -> Path:
    """Let a model record the indexes that it was trained on; none is another corpus."""
    data = [
        {"corpus_sha256": index.manifest.lineage, "splits_sha256": "of its splits"}
        for index in indexes
    ]
    record = {"indexes": data or [{"corpus_sha256": "of another corpus", "splits_sha256": "s"}]}
    (model / "training.json").write_text(json.dumps(record))
    seal_model(model)
    return model


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated reranker that was trained on another corpus."""
    folder = tmp_path_factory.mktemp("rerankers") / "elsewhere"
    return trained_on(tiny_reranker(folder, scale=0.5, offset=1.0))


def shared(index: IndexFolder, reranker: Path, **given: Any) -> RankerExamples:
    settings = config(reranker=str(reranker), **given)
    models = IndexModels.of_train_queries(index, str(reranker))
    gatherer = Gatherer(index, settings, print, models=models)
    return gatherer.train(load_training_data(index), lambda *_: None)


def reranked_queries(examples: RankerExamples) -> int:
    probability = examples.matrix[:, NAMES.index("rerank")]
    return len(np.unique(examples.segment_ids[np.isfinite(probability)]))


# --- which queries a reranker scores


def test_a_reranker_of_another_corpus_scores_train_queries(
    sample_index: IndexFolder, elsewhere: Path
) -> None:
    assert reranked_queries(shared(sample_index, elsewhere)) == 20
    assert reranked_queries(shared(sample_index, elsewhere, rerank_queries=5)) == 5


def test_a_reranker_that_was_trained_on_the_index_scores_no_train_query(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    own = trained_on(Path(shutil.copytree(elsewhere, tmp_path / "own")), sample_index)
    unknown = tiny_reranker(tmp_path / "unknown")  # it records nothing

    assert reranked_queries(shared(sample_index, own)) == 0
    assert reranked_queries(shared(sample_index, unknown)) == 0
    assert may_know_queries(own, sample_index) and may_know_queries(unknown, sample_index)
    assert not may_know_queries(elsewhere, sample_index)


def test_the_vectors_of_an_encoder_of_another_corpus_are_searched(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    model = Path(shutil.copytree(elsewhere, tmp_path / "encoder"))
    settings = {"encoder": {"source": str(model)}}
    index = replace(sample_index, manifest=replace(sample_index.manifest, settings=settings))

    assert IndexModels.of_train_queries(index, None).encoder  # trained on another corpus
    trained_on(model, index)
    assert not IndexModels.of_train_queries(index, None).encoder
    (model / "training.json").unlink()
    assert IndexModels.of_train_queries(index, None).encoder  # not trained by citerec


def test_queries_that_a_reranker_saw_in_another_index_are_not_reranked(
    build: Build, elsewhere: Path, tmp_path: Path
) -> None:
    papers = [
        {"id": f"p{n}", "title": f"Paper {n}", "year": 2000 + n, "citations": [f"p{n - 1}"]}
        for n in range(10)
    ]
    whole = build(papers)
    (tmp_path / "young.jsonl").write_text("".join(json.dumps(p) + "\n" for p in papers[4:]))
    build_index(tmp_path / "young.jsonl", tmp_path / "young", BuildConfig())
    young = open_index(
        tmp_path / "young"
    )  # its train queries are p5, p6, p7: p4 cites nothing in it
    reranker = trained_on(Path(shutil.copytree(elsewhere, tmp_path / "of-young")), young)
    data = load_training_data(whole)

    unseen = rerankable(whole, data, str(reranker), [young])

    ids = whole.papers.ids_at(data.queries[unseen].tolist())
    assert ids == ["p1", "p2", "p3", "p4"]
    assert rerankable(whole, data, str(elsewhere), [young]).all()
    assert rerankable(whole, data, None, [young]).all()


# --- training


@pytest.fixture(scope="module")
def trained(
    sample_index: IndexFolder, elsewhere: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("rankers") / "reads"
    train_ranker([sample_index], folder, config(reranker=[str(elsewhere)]))
    return folder


def test_a_cross_fitted_ranker_records_its_reranker_and_is_known_again(
    sample_index: IndexFolder, elsewhere: Path, trained: Path, tmp_path: Path
) -> None:
    record = json.loads((trained / "training.json").read_bytes())
    ranker = open_ranker(trained)

    assert ranker.cross_fitted
    assert ranker.rerankers == (weights_of(str(elsewhere), sample_index),)
    assert "Train queries of sample were reranked" in (trained / "README.md").read_text()
    [facts] = record["indexes"]
    assert (facts["train_queries_reranked"], facts["dev_queries_teach"]) == (True, False)
    assert record["provenance"]["settings"]["reranker"] == ["elsewhere"]  # no local path
    assert was_trained_so(trained, [sample_index], config(reranker=[str(elsewhere)]))
    other = tiny_reranker(tmp_path / "elsewhere", seed=7, scale=0.5)  # the name alone is the same
    assert not was_trained_so(trained, [sample_index], config(reranker=[str(other)]))
    assert not was_trained_so(trained, [sample_index], config(reranker=[str(tmp_path / "no")]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["none", "none"], "reranker names 2 models, expected one per index, 1;"),
        (["none", " "], "reranker is empty"),
    ],
)
def test_rerankers_must_fit_the_indexes(
    sample_index: IndexFolder, tmp_path: Path, given: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        train_ranker([sample_index], tmp_path / "m", config(reranker=given))


def test_several_rerankers_must_be_calibrated(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    raw = tiny_reranker(tmp_path / "raw")

    with pytest.raises(ConfigError, match=r"raw is not calibrated: .* must be comparable"):
        train_ranker(
            [sample_index, sample_index],
            tmp_path / "m",
            config(reranker=[str(elsewhere), str(raw)]),
        )


def test_settings_of_earlier_versions_are_those_of_now() -> None:
    assert "rerank_queries" not in RankerTraining().to_json()
    assert config().to_json()["rerank_depth"] == 10


# --- use


def by_reranker(folder: Path, rerankers: list[str], *, cross_fitted: bool = False) -> Path:
    """Write a ranker that orders by the reranker's probability, and records its rerankers."""
    tiny_ranker(folder, {"rerank": 1.0, "bm25": 0.1})
    spec = json.loads((folder / "ranker.json").read_bytes())
    spec["provenance"] |= {"rerankers": rerankers, "cross_fitted": cross_fitted}
    (folder / "ranker.json").write_text(json.dumps(spec))
    seal_model(folder)
    return folder


def used(index: IndexFolder, ranker: Path, reranker: Path | None) -> tuple[Any, list[str]]:
    lines: list[str] = []
    rerank = RerankConfig(model=str(reranker), depth=10) if reranker else "none"
    recommender = BatchRecommender(
        index, RecommendConfig(k=10, ranker=str(ranker), reranker=rerank), lines.append
    )
    [items] = recommender.recommend([DRAFT], explain=True)
    return (recommender, items), lines


def test_a_probability_is_a_feature_and_a_reason(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    own = str(weights_of(str(elsewhere), sample_index))
    ranker = by_reranker(tmp_path / "r", [own])

    (recommender, items), lines = used(sample_index, ranker, elsewhere)

    assert lines == []
    assert "feature of r" in " ".join(recommender.settings_in_use)
    probabilities = [
        recommender.cascade.probability(i.stages["rerank"].score)
        for i in items
        if "rerank" in i.stages
    ]
    assert len(probabilities) >= 2
    assert max(probabilities) == pytest.approx(probabilities[0], abs=0.1)  # trees have steps
    assert "reranker: probability" in " ".join(items[0].reasons)
    assert used(sample_index, ranker, None)[1] == []  # without a reranker the feature is missing


def test_the_reranker_scores_the_best_papers_of_the_ranker_without_it_in_use_and_in_training(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    ranker = open_ranker(by_reranker(tmp_path / "r", []))
    settings = config(reranker=str(elsewhere), rerank_depth=4)
    queries = dev_queries(sample_index, settings)
    assert queries
    cascade = open_reranker(sample_index, RerankConfig(model=str(elsewhere), depth=4)).with_weight(
        1
    )
    graph = TemporalGraph(sample_index, CitationScope.TRAIN)
    retriever = open_hybrid(sample_index, RecommendConfig(), print)

    plain = Pipeline(retriever, rank_stages(graph, ranker, None)).all(queries)
    found = Pipeline(retriever, rank_stages(graph, ranker, cascade)).all(queries)
    gatherer = Gatherer(sample_index, settings, print, first_order=ranker.score)
    examples = gatherer.whole(queries, no_progress)

    for before, after in zip(plain, found, strict=True):
        assert {*after.hits_by_source["rerank"].rows.tolist()} == {*before.rows[:4].tolist()}
        assert {*after.rows.tolist()} == {*before.rows.tolist()}
    used = [one.matrix for one in found if isinstance(one, RankedCandidates)]
    np.testing.assert_array_equal(examples.matrix, np.concatenate(used))


def test_another_reranker_is_named_unless_the_ranker_was_made_for_any(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    stale = by_reranker(tmp_path / "stale", ["other weights"])
    for_any = by_reranker(tmp_path / "any", ["other weights"], cross_fitted=True)
    raw = tiny_reranker(tmp_path / "raw")

    [line] = used(sample_index, stale, elsewhere)[1]
    (recommender, items), [of_raw] = used(sample_index, for_any, raw)

    assert line.startswith(f"stale was trained with another reranker than {elsewhere}; train it")
    assert used(sample_index, for_any, elsewhere)[1] == []
    assert of_raw.startswith(f"{raw} gives no calibrated probabilities, which any reads;")
    assert recommender.cascade.weight == 0.4  # interpolated after the ranker
    assert all(item.probability is None for item in items)


def test_an_evaluation_reads_the_probability_and_names_another_reranker(
    sample_index: IndexFolder, elsewhere: Path, tmp_path: Path
) -> None:
    ranker = by_reranker(tmp_path / "stale", ["other weights"])
    task = load_task(sample_index, "test")
    few = replace(task, queries=task.queries[:3], eligible=task.eligible[:3])
    lines: list[str] = []
    settings = EvalConfig(ranker=str(ranker), rerank=RerankConfig(model=str(elsewhere), depth=5))

    with_reranker = Systems(sample_index, few, settings, lines.append).hits("ranker")
    without = Systems(sample_index, few, replace(settings, rerank=None)).hits("ranker")

    assert next(line for line in lines if "another reranker" in line).startswith(
        "stale was trained"
    )
    pairs = zip(with_reranker, without, strict=True)
    assert any(a.rows[:5].tolist() != b.rows[:5].tolist() for a, b in pairs)
