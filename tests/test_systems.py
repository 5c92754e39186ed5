"""Systems that rerank: whose candidates they read, that no pair is scored twice, what they cost."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.tiny_ranker import tiny_ranker

from citerec.config import FuseConfig, RecommendConfig, RerankConfig
from citerec.errors import ConfigError
from citerec.evaluate.cached import CachedScorer
from citerec.evaluate.catalogue import (
    RERANKED,
)
from citerec.evaluate.protocol import EvalConfig, load_task
from citerec.evaluate.systems import Systems
from citerec.folder import IndexFolder, open_index
from citerec.rerank.choose import open_reranker
from citerec.retrieve.hybrid import open_hybrid
from citerec.tuned import RerankWeight, write_tuned
from citerec.types import Query


@pytest.fixture
def rerank(tiny_reranker_model: str) -> RerankConfig:
    return RerankConfig(
        model=tiny_reranker_model, depth=5, precision="float32", backend="torch", threads=1
    )


def test_the_best_of_the_candidates_are_reordered_and_none_is_lost(
    dense_sample: IndexFolder, rerank: RerankConfig
) -> None:
    task = load_task(dense_sample, "dev")
    systems = Systems(dense_sample, task, EvalConfig(rerank=rerank))

    fused, reranked = systems.hits("rrf"), systems.hits("rerank")
    run, seconds = systems.run("rerank")

    for before, after in zip(fused, reranked, strict=True):
        assert set(before.rows[:5].tolist()) == set(after.rows[:5].tolist())
        assert before.rows[5:].tolist() == after.rows[5:].tolist()
    assert any(b.rows.tolist() != a.rows.tolist() for b, a in zip(fused, reranked, strict=True))
    assert run.name == "rerank"
    assert seconds and seconds > systems.run("rrf")[1]  # type: ignore[operator]


def test_a_weight_of_0_leaves_the_order_of_the_first_stages(
    dense_sample: IndexFolder, rerank: RerankConfig
) -> None:
    task = load_task(dense_sample, "dev")
    systems = Systems(dense_sample, task, EvalConfig(rerank=rerank.replace(weight=0)))

    lists = zip(systems.hits("bm25"), systems.hits("bm25+rerank"), strict=True)

    assert all(before.rows.tolist() == after.rows.tolist() for before, after in lists)


def test_alone_the_reranker_orders_the_same_candidates_by_its_own_scores(
    dense_sample: IndexFolder, rerank: RerankConfig
) -> None:
    task = load_task(dense_sample, "dev")
    weighed = Systems(dense_sample, task, EvalConfig(rerank=rerank.replace(weight=0)))
    plain = Systems(dense_sample, task, EvalConfig(rerank=rerank))

    lists = zip(weighed.hits("rerank-alone"), plain.hits("rerank"), strict=True)

    assert all(alone.rows.tolist() == one.rows.tolist() for alone, one in lists)
    assert [weighed.cascade_of(n).weight for n in RERANKED] == [0, 0, 1]


def test_a_tuned_weight_is_not_for_the_candidates_of_bm25(
    dense_sample: IndexFolder, rerank: RerankConfig, tmp_path: Path
) -> None:
    index = open_index(Path(shutil.copytree(dense_sample.path, tmp_path / "copy")))
    sha = str(open_reranker(index, rerank).settings["weights"])
    write_tuned(index, FuseConfig(), {}, RerankWeight(0.3, sha, 5, 32, 32))

    systems = Systems(index, load_task(index, "dev"), EvalConfig(rerank=rerank))

    assert {name: systems.cascade_of(name).weight for name in RERANKED} == {
        "bm25+rerank": 1,
        "rerank": 0.3,
        "rerank-alone": 1,
    }


def test_the_depth_of_a_measurement_does_not_depend_on_the_machine(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    setting = EvalConfig(rerank=RerankConfig(model=tiny_reranker_model, backend="torch"))

    cascade = Systems(sample_index, load_task(sample_index, "dev"), setting).cascade

    assert cascade.depth == 100  # `recommend` would score 1000


@pytest.mark.parametrize("name", ["rerank", "bm25+rerank"])
def test_without_a_reranker_it_is_said_how_to_get_one(sample_index: IndexFolder, name: str) -> None:
    systems = Systems(sample_index, load_task(sample_index, "dev"), EvalConfig())

    with pytest.raises(ConfigError, match=r"citerec train-reranker .* or name a model: --reranker"):
        systems.run(name)


def test_no_pair_is_scored_twice_and_what_that_spared_is_counted(
    sample_index: IndexFolder, rerank: RerankConfig
) -> None:
    plain = open_reranker(sample_index, rerank).scorer
    cached = CachedScorer(plain)
    queries = [Query(id="a", title="A model"), Query(id="b", title="A search")]
    rows = [np.array([0, 1, 2], np.int32), np.array([1], np.int32)]
    asked: list[int] = []

    first = cached.score(sample_index, queries, rows)
    again = cached.score(
        sample_index,
        queries,
        [rows[0][::-1], np.array([1, 9], np.int32)],
        lambda what, done, total: asked.append(total),
    )

    assert first[0].tolist() == again[0][::-1].tolist()
    assert first[1][0] == again[1][0]
    assert set(asked) <= {1, 300}  # of 5 pairs one was new; 300 papers are cut into tokens
    assert again[1][1] == pytest.approx(
        plain.score(sample_index, queries[1:], [np.array([9], np.int32)])[0][0], abs=1e-4
    )
    assert cached.saved > 0


# --- what close papers cite, and the final ranker


def test_close_papers_add_candidates_and_lose_none(sample_index: IndexFolder) -> None:
    task = load_task(sample_index, "test")
    systems = Systems(sample_index, task, EvalConfig())

    found, expanded = systems.hits("bm25"), systems.hits("expanded")

    assert all(set(a.rows) <= set(b.rows) for a, b in zip(found, expanded, strict=True))
    assert all((np.diff(hits.scores) <= 0).all() for hits in expanded)


def test_a_ranker_orders_the_whole_pool(sample_index: IndexFolder, tmp_path: Path) -> None:
    task = load_task(sample_index, "test")
    ranker = tiny_ranker(tmp_path / "ranker", {"bm25": 1.0})
    systems = Systems(sample_index, task, EvalConfig(ranker=str(ranker)))

    pool, ranked = systems.hits("expanded"), systems.hits("ranker")
    bm25 = systems.hits("bm25")

    for before, after, words in zip(pool, ranked, bm25, strict=True):
        assert set(before.rows) == set(after.rows)
        assert words.rows[0] in after.rows[:20]  # whose score is the best
    assert systems.run("ranker")[1] > systems.run("bm25")[1]  # type: ignore[operator]


def test_each_variant_is_a_system_of_its_own(sample_index: IndexFolder, tmp_path: Path) -> None:
    task = load_task(sample_index, "test")
    ranker = tiny_ranker(tmp_path / "ranker", {"bm25": 1.0, "citations": 3.0})
    systems = Systems(sample_index, task, EvalConfig(ranker=str(ranker)))

    full, fair = systems.hits("ranker"), systems.hits("ranker-no-popularity")

    assert any(a.rows.tolist() != b.rows.tolist() for a, b in zip(full, fair, strict=True))


def test_a_ranker_reads_what_the_reranker_thinks(
    sample_index: IndexFolder, rerank: RerankConfig, tmp_path: Path
) -> None:
    task = load_task(sample_index, "test")
    ranker = tiny_ranker(tmp_path / "ranker", {"rerank": 1.0, "bm25": 0.1})
    plain = Systems(sample_index, task, EvalConfig(ranker=str(ranker)))
    read = Systems(sample_index, task, EvalConfig(ranker=str(ranker), rerank=rerank))

    lists = zip(plain.hits("ranker"), read.hits("ranker"), strict=True)

    assert any(a.rows[:5].tolist() != b.rows[:5].tolist() for a, b in lists)


def test_an_evaluation_compares_sentences_as_recommend_does(dense_sample: IndexFolder) -> None:
    task = load_task(dense_sample, "test")
    systems = Systems(dense_sample, task, EvalConfig())
    plain = open_hybrid(dense_sample, RecommendConfig(), print)

    evaluated = systems.candidates()[0].sentences
    [found] = plain.candidates(task.queries[:1], task.eligible[:1], 1000)

    assert evaluated.bm25 and evaluated.vectors and found.sentences.bm25 and found.sentences.vectors
    assert evaluated.bm25(found.rows).tolist() == found.sentences.bm25(found.rows).tolist()
    assert evaluated.vectors().tolist() == found.sentences.vectors().tolist()


def test_without_a_ranker_it_is_said_how_to_get_one(sample_index: IndexFolder) -> None:
    systems = Systems(sample_index, load_task(sample_index, "dev"), EvalConfig(ranker="none"))

    with pytest.raises(
        ConfigError, match=r"ranker needs a ranker; train one: citerec train-ranker"
    ):
        systems.run("ranker")
