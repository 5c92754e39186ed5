"""The systems of an evaluation: their names, baselines, rerankers and rankers, and what they share."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.retrievers import Shelf
from support.tiny_ranker import tiny_ranker

from citerec import Recommender, evaluate
from citerec.config import (
    Bm25Config,
    FuseConfig,
    FuseMethod,
    RecommendConfig,
    RerankConfig,
)
from citerec.errors import ConfigError, ModelError
from citerec.evaluation.metrics import evaluate_run
from citerec.evaluation.protocol import EvalConfig, load_eval_set
from citerec.evaluation.systems import (
    RERANKED,
    SYSTEMS,
    CachedScorer,
    Systems,
    default_systems,
    fuse_of,
    oracle_run,
    read_by,
)
from citerec.graph.temporal import PROTOCOL, CitationScope
from citerec.index.folder import IndexFolder
from citerec.rerank.reranker import open_reranker
from citerec.types import Query


@pytest.fixture
def rerank(tiny_reranker_model: str) -> RerankConfig:
    return RerankConfig(
        model=tiny_reranker_model, depth=5, precision="float32", threads=1
    )


def test_a_weight_of_0_leaves_the_order_and_alone_the_reranker_orders_by_its_own_scores(
    dense_sample: IndexFolder, rerank: RerankConfig
) -> None:
    eval_set = load_eval_set(dense_sample, "dev")
    weighed = Systems(
        dense_sample, eval_set, EvalConfig(rerank=rerank.replace(weight=0))
    )
    plain = Systems(dense_sample, eval_set, EvalConfig(rerank=rerank))

    same = [*zip(weighed.hits("bm25"), weighed.hits("bm25+rerank"), strict=True)]
    same += zip(weighed.hits("rerank-alone"), plain.hits("rerank"), strict=True)

    assert all(one.rows.tolist() == other.rows.tolist() for one, other in same)
    assert [weighed.reranker_of(n).weight for n in RERANKED] == [0, 0, 1]


def test_the_depth_of_a_measurement_does_not_depend_on_the_machine(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    setting = EvalConfig(rerank=RerankConfig(model=tiny_reranker_model))

    reranker = Systems(
        sample_index, load_eval_set(sample_index, "dev"), setting
    ).open_reranker

    assert reranker.depth == 100  # `recommend` would score 1000


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (
            "rerank",
            "no reranker; name a model, or train one: citerec train-reranker --index",
        ),
        ("ranker", "ranker needs a ranker; train one: citerec train-ranker"),
    ],
)
def test_without_a_model_it_is_said_how_to_get_one(
    sample_index: IndexFolder, name: str, how: str
) -> None:
    systems = Systems(
        sample_index, load_eval_set(sample_index, "dev"), EvalConfig(ranker="none")
    )

    with pytest.raises((ConfigError, ModelError), match=how):
        systems.run(name)


def test_no_pair_is_scored_twice_and_what_that_spared_is_counted(
    sample_index: IndexFolder, rerank: RerankConfig
) -> None:
    cached = CachedScorer(open_reranker(sample_index, rerank).scorer)
    queries = [Query(id="a", title="A model"), Query(id="b", title="B search")]
    rows = [np.array([0, 1, 2], np.int32), np.array([1], np.int32)]
    scored: list[int] = []

    first = cached.score(sample_index, queries, rows)
    again = cached.score(
        sample_index,
        queries,
        [rows[0][::-1], np.array([1, 9], np.int32)],
        lambda what, done, total: scored.append(total),
    )

    assert first[0].tolist() == again[0][::-1].tolist()
    assert first[1][0] == again[1][0]
    # of 5 pairs one was new; 300 papers are cut into tokens
    assert set(scored) <= {
        1,
        300,
    }
    assert cached.saved > 0


# --- what close papers cite, and the final ranker


def test_a_ranker_orders_the_whole_pool(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    eval_set = load_eval_set(sample_index, "test")
    ranker = tiny_ranker(tmp_path / "ranker", {"bm25": 1.0})
    systems = Systems(sample_index, eval_set, EvalConfig(ranker=str(ranker)))

    pool, ranked = systems.hits("expanded"), systems.hits("ranker")
    bm25 = systems.hits("bm25")

    for before, after, words in zip(pool, ranked, bm25, strict=True):
        assert set(before.rows) == set(after.rows)
        assert words.rows[0] in after.rows[:20]  # whose score is the best
    assert systems.run("ranker")[1] > systems.run("bm25")[1]  # type: ignore[operator]


def test_a_ranker_reads_what_the_reranker_thinks(
    sample_index: IndexFolder, rerank: RerankConfig, tmp_path: Path
) -> None:
    eval_set = load_eval_set(sample_index, "test")
    ranker = tiny_ranker(tmp_path / "ranker", {"rerank": 1.0, "bm25": 0.1})
    plain = Systems(sample_index, eval_set, EvalConfig(ranker=str(ranker)))
    read = Systems(
        sample_index, eval_set, EvalConfig(ranker=str(ranker), rerank=rerank)
    )

    lists = zip(plain.hits("ranker"), read.hits("ranker"), strict=True)

    assert any(a.rows[:5].tolist() != b.rows[:5].tolist() for a, b in lists)


# --- names, baselines and the ceiling


def test_the_systems_that_are_compared_by_default(
    sample_index: IndexFolder, dense_sample: IndexFolder
) -> None:
    last = ["most-cited", "random", "oracle"]

    assert default_systems(sample_index, EvalConfig()) == [
        "bm25",
        "expanded",
        "ranker",
        *last,
    ]
    assert default_systems(sample_index, EvalConfig(ranker="none")) == [
        "bm25",
        "expanded",
        *last,
    ]
    first = ["bm25", "dense", "rrf", "bm25+rerank", "rerank", "rerank-alone"]
    assert default_systems(dense_sample, EvalConfig(), rerank=True) == [
        *first,
        "expanded",
        "ranker",
        *last,
    ]


def test_the_candidates_are_those_of_recommend_unless_the_settings_name_others(
    sample_index: IndexFolder, dense_sample: IndexFolder
) -> None:
    dense = EvalConfig(candidates="dense")

    assert read_by("rerank", sample_index, EvalConfig()) == "bm25"
    assert read_by("rerank", dense_sample, EvalConfig()) == "rrf"
    assert [
        read_by(n, dense_sample, dense) for n in ("rerank", "bm25+rerank", "weighted")
    ] == [
        "dense",
        "bm25",
        "weighted",
    ]
    weighted = EvalConfig(fuse=FuseConfig(method=FuseMethod.WEIGHTED))
    assert [name for name in SYSTEMS if fuse_of(name, weighted)] == ["rrf", "weighted"]


def test_random_depends_on_the_seed_and_the_query_alone(
    sample_index: IndexFolder,
) -> None:
    eval_set = load_eval_set(sample_index, "test")

    def drawn(seed: int) -> list[list[int]]:
        systems = Systems(sample_index, eval_set, EvalConfig(seed=seed, depth=5))
        return [hits.rows.tolist() for hits in systems.hits("random")]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len({tuple(rows) for rows in drawn(1)}) == len(eval_set.queries)


@pytest.mark.parametrize("scope", PROTOCOL)
def test_most_cited_counts_what_is_known_and_puts_equal_counts_by_id(
    sample_index: IndexFolder, scope: CitationScope
) -> None:
    eval_set = load_eval_set(sample_index, "test")
    years, graph = sample_index.papers.years, sample_index.graph
    train = {*(sample_index.splits / "train.ids").read_text().split()}
    systems = Systems(sample_index, eval_set, EvalConfig(known_graph=scope))

    [query, hits] = eval_set.queries[0], systems.hits("most-cited")[0]

    every = sample_index.papers.ids_at(range(len(years)))
    counts = dict.fromkeys(range(len(years)), 0)
    for citing, cited in zip(
        graph.citing.tolist(), graph.indices.tolist(), strict=True
    ):
        known = scope is CitationScope.EARLIER or every[citing] in train
        counts[cited] += (
            known and years[citing] < query.year and years[cited] <= query.year
        )
    order = sorted(
        (row for row in counts if counts[row]), key=lambda r: (-counts[r], every[r])
    )
    assert hits.rows.tolist() == order[:1000]
    assert hits.scores.tolist() == [counts[row] for row in order[:1000]]


def test_the_oracle_is_perfect_but_for_the_cut_at_20() -> None:
    qrels = {
        "five": {f"p{n}": 1 + n // 4 for n in range(5)},
        "twenty": {f"p{n}": 1 for n in range(20)},
    }

    result = evaluate_run(oracle_run(qrels), qrels, rng=np.random.default_rng(0))

    # Five of five in 20 places: P = 1/4, R = 1, F1 = 2/5.
    assert result.per_query["f1@20"].tolist() == pytest.approx([0.4, 1.0])
    assert [
        result.metrics[m] for m in ("mrr", "recall@100", "ndcg@20", "map")
    ] == pytest.approx([1] * 4)


# --- systems as objects


def test_objects_are_measured_beside_systems_by_name(dense_sample: IndexFolder) -> None:
    config = RecommendConfig(encoder="none", ranker="none", reranker="none")
    recommender = Recommender(dense_sample, config)
    same = EvalConfig(bm25=config.bm25)

    found = evaluate(
        ["bm25", Shelf(dense_sample), recommender], dense_sample, config=same
    )

    by_name = {system.name: system.metrics["f1@20"] for system in found.systems}
    assert [*by_name] == ["bm25", "shelf", "Recommender"]
    assert by_name["Recommender"] == by_name["bm25"] > by_name["shelf"]
    shown = str(found)
    assert "shelf" in shown
    assert "f1@20: shelf - bm25 = -" in shown


def test_a_recommender_with_a_ranker_knows_what_the_protocol_knows(
    dense_sample: IndexFolder,
) -> None:
    named = evaluate(["ranker"], dense_sample, config=EvalConfig(bm25=Bm25Config()))

    own = evaluate(
        [Recommender(dense_sample, RecommendConfig(reranker="none"))], dense_sample
    )

    assert own.systems[0].metrics == named.systems[0].metrics


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ([object()], "object is no system"),
        (["bm26"], "no system 'bm26'"),
        ([Recommender, Recommender], "two systems are named 'type'"),
    ],
)
def test_what_is_no_system_is_named(
    sample_index: IndexFolder, systems: list[Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(systems, sample_index)
