"""Rerankers one behind the other: what each reads, when reading stops, how they are opened."""

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tiny import tiny_reranker

from citerec.config import CrossEncoderConfig, FuseConfig, RecommendConfig, RerankConfig
from citerec.corpus.splits import splits_sha256
from citerec.errors import BadInputError, ConfigError, ModelError
from citerec.folder import IndexFolder
from citerec.manifest import seal_model
from citerec.recommend import BatchRecommender
from citerec.rerank.auto import own_reranker, requested_reranking
from citerec.rerank.cascade import Cascade, CascadeReranker
from citerec.rerank.opening import open_cascade
from citerec.rerank.spec import read_reranker_spec, write_reranker_spec
from citerec.rules.held_out import trained_on_other_data
from citerec.rules.known import Rows, Scores
from citerec.tuned import RerankWeight, kept_rerank_weight, read_rerank_weight, write_tuned
from citerec.types import Hits, Progress, Query

Build = Callable[..., IndexFolder]
QUERIES = [Query(id="a", title="A"), Query(id="b", title="B")]
HOW = {"query_tokens": 32, "candidate_tokens": 16, "backend": "torch", "precision": "float32"}


@dataclass
class Judge:
    """Knows a score for each row, and what it was asked for."""

    scores: Scores  # by row
    asked: list[list[list[int]]] = field(default_factory=list[list[list[int]]])

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress | None = None,
    ) -> list[Scores]:
        self.asked.append([mine.tolist() for mine in rows])
        return [self.scores[mine] for mine in rows]

    def to_unit_interval(self, scores: Scores) -> Scores:
        return (1 / (1 + np.exp(-scores.astype(np.float64)))).astype(np.float32)


def judge(*scores: float) -> Judge:
    return Judge(np.array(scores, np.float32))


def stage(scorer: Judge, depth: int, weight: float = 1, name: str = "rerank") -> CascadeReranker:
    how = {"device": "cpu", "weights": "f00", **HOW}
    return CascadeReranker(
        name=name, shown="judge", scorer=scorer, depth=depth, weight=weight, settings=how
    )


def found(rows: Sequence[int], scores: Sequence[float] | None = None) -> Hits:
    falling = range(len(rows), 0, -1) if scores is None else scores
    return Hits(np.array(rows, np.int32), np.array(falling, np.float32))


# --- what is read


def test_all_queries_are_read_together_and_only_as_deep_as_said(sample_index: IndexFolder) -> None:
    reader = judge(0.1, 0.2, 0.3, 0.4)
    cascade = Cascade(sample_index, (stage(reader, depth=2),))

    [a, b] = cascade.rerank(QUERIES, [found([0, 1, 2, 3]), found([3, 2])], k=4)

    assert reader.asked == [[[0, 1], [3, 2]]]
    assert a.hits.rows.tolist() == [1, 0, 2, 3]
    assert b.hits.rows.tolist() == [3, 2]
    assert a.scored["rerank"].rows.tolist() == [1, 0]
    assert a.scored["rerank"].scores.tolist() == pytest.approx([0.2, 0.1])


def test_the_second_reads_what_the_first_put_on_top(sample_index: IndexFolder) -> None:
    first, second = judge(0, 1, 2, 3, 4), judge(9, 9, 9, 1, 0)
    stages = (stage(first, depth=4, name="rerank-1"), stage(second, depth=2))

    [a] = Cascade(sample_index, stages).rerank(QUERIES[:1], [found([0, 1, 2, 3, 4])], k=5)

    # The first puts 3 2 1 0 above 4, which it did not read; the second reads 3 and 2 in the order they came in.
    assert second.asked == [[[2, 3]]]
    assert a.hits.rows.tolist() == [2, 3, 1, 0, 4]
    assert np.all(np.diff(a.hits.scores) < 0)
    assert {name: hits.rows.tolist() for name, hits in a.scored.items()} == {
        "rerank-1": [3, 2, 1, 0],
        "rerank": [2, 3],
    }


def test_a_query_with_no_candidates_is_left_alone(sample_index: IndexFolder) -> None:
    reader = judge(1)

    [a, b] = Cascade(sample_index, (stage(reader, 5),)).rerank(QUERIES, [found([]), found([0])], 3)

    assert reader.asked == [[[0]]]
    assert (len(a.hits), len(a.scored["rerank"])) == (0, 0)
    assert b.hits.rows.tolist() == [0]


# --- probability


def test_a_calibrated_cross_encoder_that_decides_alone_says_how_probable_its_papers_are(
    sample_index: IndexFolder,
) -> None:
    last = replace(stage(judge(-1, 0, 1), depth=2), calibrated=True)
    cascade = Cascade(sample_index, (last,))

    [reranked] = cascade.rerank(QUERIES[:1], [found([0, 1, 2])], k=3)
    probable = cascade.probabilities(reranked)

    assert probable is not None
    assert probable.rows.tolist() == [1, 0]  # paper 2 was not read
    assert probable.scores.tolist() == pytest.approx([0.5, 1 / (1 + math.e)])


@pytest.mark.parametrize("changed", [{"calibrated": False}, {"weight": 0.5}])
def test_no_probability_is_shown_that_was_not_fitted_or_does_not_follow_the_order(
    sample_index: IndexFolder, changed: dict[str, float]
) -> None:
    last = replace(stage(judge(-1, 0, 1), depth=2), **({"calibrated": True} | changed))
    cascade = Cascade(sample_index, (last,))

    [reranked] = cascade.rerank(QUERIES[:1], [found([0, 1, 2])], k=3)

    assert cascade.probabilities(reranked) is None


# --- early stop


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    scores=st.lists(st.integers(-40, 40), min_size=1, max_size=60),
    first=st.lists(st.integers(0, 30), min_size=60, max_size=60),
    weight=st.sampled_from([0.0, 0.05, 0.3, 0.5, 0.9]),
    k=st.integers(1, 25),
)
def test_stopping_early_gives_the_same_best(
    sample_index: IndexFolder, scores: list[int], first: list[int], weight: float, k: int
) -> None:
    rows = np.random.default_rng(len(scores)).permutation(len(scores)).tolist()
    lists = [found(rows, sorted(first[: len(rows)], reverse=True))]
    reader = judge(*(score / 8 for score in scores))
    whole = Cascade(sample_index, (stage(reader, depth=50, weight=weight),))
    early = replace(whole, early_stop=True)

    [all_of_it] = whole.rerank(QUERIES[:1], lists, k)
    [best] = early.rerank(QUERIES[:1], lists, k)

    assert best.hits.rows[:k].tolist() == all_of_it.hits.rows[:k].tolist()
    assert best.hits.scores[:k].tolist() == all_of_it.hits.scores[:k].tolist()
    assert sorted(best.hits.rows.tolist()) == sorted(rows)


def test_stopping_early_spares_pairs(sample_index: IndexFolder) -> None:
    # 40 candidates whose first scores fall from 40 to 1; the best by them is the best by the judge, too.
    reader = judge(*range(40, 0, -1))
    cascade = Cascade(sample_index, (stage(reader, depth=40, weight=0.1),), early_stop=True)

    cascade.rerank(QUERIES[:1], [found(range(40))], k=1)

    assert [len(rows[0]) for rows in reader.asked] == [16]


def test_stopping_early_in_the_first_of_two_leaves_all_k_as_they_were(
    sample_index: IndexFolder,
) -> None:
    # The second reads 2, but 20 come back: what the first makes of the others counts, too.
    first = judge(*range(-20, 20))
    stages = (stage(first, 40, 0.1, "rerank-1"), stage(judge(*range(40)), 2))
    whole = Cascade(sample_index, stages)

    [all_of_it] = whole.rerank(QUERIES[:1], [found(range(40))], k=20)
    [best] = replace(whole, early_stop=True).rerank(QUERIES[:1], [found(range(40))], k=20)

    assert best.hits.rows[:20].tolist() == all_of_it.hits.rows[:20].tolist()


def test_stopping_early_changes_no_diversified_list(sample_index: IndexFolder) -> None:
    abstract = "neural language models for ranking documents and learning representations of words"
    draft = Query(id="d", title="Retrieval of papers", abstract=abstract, year=2022)
    scores = np.random.default_rng(1).normal(0, 3, len(sample_index.papers))
    reranker = stage(judge(*scores), depth=200, weight=0.3)
    recommender = BatchRecommender(sample_index, RecommendConfig(ranker="none", diversity=0.8))

    def recommended(early_stop: bool) -> list[str]:
        recommender.cascade = Cascade(sample_index, (reranker,), early_stop)
        [items] = recommender.with_k(5).recommend([draft])
        return [item.paper.id for item in items]

    assert recommended(early_stop=True) == recommended(early_stop=False)


def test_a_stage_that_cannot_stop_early_reads_all_at_once(sample_index: IndexFolder) -> None:
    alone, weighed = judge(*range(40)), judge(*range(40))
    stages = (stage(alone, 40, name="rerank-1"), stage(weighed, 30, 0.1))

    Cascade(sample_index, stages, early_stop=True).rerank(QUERIES[:1], [found(range(40))], k=1)

    assert [len(rows[0]) for rows in alone.asked] == [40]
    assert [len(rows[0]) for rows in weighed.asked] == [16]


# --- opening


def test_the_index_s_own_is_meant_by_auto_if_there_is_one(
    build: Build, tiny_reranker_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}])
    assert requested_reranking("auto", index, default=True) is None
    with pytest.raises(ModelError, match="has no reranker; train one: citerec train-reranker"):
        open_cascade(index, RerankConfig())

    shutil.copytree(tiny_reranker_model, index.models / "reranker")

    assert own_reranker(index) == index.models / "reranker"
    assert requested_reranking("none", index, default=True) is None
    config = requested_reranking("auto", index, default=False)
    assert config == RerankConfig()
    cascade = open_cascade(index, config.replace(backend="torch"))
    assert cascade.name == "models/reranker"
    assert "by models/reranker: 32+32 tokens, torch " in str(cascade)


def test_settings_reach_the_model(sample_index: IndexFolder, tiny_reranker_model: str) -> None:
    asked = CrossEncoderConfig(
        model=tiny_reranker_model, depth=7, query_tokens=20, candidate_tokens=40
    )
    config = RerankConfig(
        cross_encoders=(asked,), weight=0.25, device="cpu", precision="float32", backend="torch"
    )

    [opened] = open_cascade(sample_index, config).rerankers

    told = opened.as_json()
    assert told.pop("weights")
    assert told == {
        "model": Path(tiny_reranker_model).name,  # all that a report tells of a local folder
        "depth": 7,
        "weight": 0.25,
        "query_tokens": 20,
        "candidate_tokens": 40,
        "backend": "torch",
        "precision": "float32",
        "device": "cpu",
    }
    assert str(opened).endswith(": 20+40 tokens, torch float32, weight 0.25")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"precision": "int3"}, "precision must be one of auto, float32"),
        ({"backend": "abacus"}, "backend must be one of auto, torch"),
        ({"device": "abacus"}, "abacus"),
        ({"early_stop": True}, "needs a weight below 1, and none was tuned"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    sample_index: IndexFolder, tiny_reranker_model: str, settings: dict[str, object], says: str
) -> None:
    stages = (CrossEncoderConfig(model=tiny_reranker_model, depth=5),)
    settings = {"backend": "torch", **settings}

    with pytest.raises(ConfigError, match=says):
        open_cascade(sample_index, RerankConfig(cross_encoders=stages, **settings))  # type: ignore[arg-type]


def test_a_later_stage_reads_less_by_default(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    stages = (
        CrossEncoderConfig(model=tiny_reranker_model),
        CrossEncoderConfig(model=tiny_reranker_model),
    )

    cascade = open_cascade(sample_index, RerankConfig(cross_encoders=stages, backend="torch"))

    first, second = cascade.rerankers
    assert (first.name, second.name) == ("rerank-1", "rerank")
    assert (first.depth, second.depth) == (cascade.depth, first.depth // 10)
    assert ", then the best " in str(cascade)


@pytest.mark.parametrize(("first", "second"), [(1000, 100), (50, 10), (11, 10), (10, 9), (2, 1)])
def test_a_later_stage_reads_no_less_than_is_of_use(
    sample_index: IndexFolder, tiny_reranker_model: str, first: int, second: int
) -> None:
    stages = (
        CrossEncoderConfig(model=tiny_reranker_model),
        CrossEncoderConfig(model=tiny_reranker_model),
    )
    config = RerankConfig(cross_encoders=stages, backend="torch")

    cascade = open_cascade(sample_index, config, depth=first)

    assert [stage.depth for stage in cascade.rerankers] == [first, second]


def test_a_weight_is_that_of_the_last_stage(
    sample_index: IndexFolder, tiny_reranker_model: str
) -> None:
    stages = (
        CrossEncoderConfig(model=tiny_reranker_model, depth=9),
        CrossEncoderConfig(model=tiny_reranker_model, depth=3),
    )
    config = RerankConfig(cross_encoders=stages, weight=0.25, early_stop=True, backend="torch")

    assert [stage.weight for stage in open_cascade(sample_index, config).rerankers] == [1, 0.25]


# --- what a model was trained on


def test_what_nobody_gives_is_as_the_model_folder_states(
    sample_index: IndexFolder, tmp_path: Path
) -> None:
    model = tiny_reranker(tmp_path / "m")
    spec = replace(read_reranker_spec(model), weight=0.3, depth=7)
    write_reranker_spec(model, spec)

    config = RerankConfig(cross_encoders=(CrossEncoderConfig(model=str(model)),), backend="torch")
    requested = config.replace(weight=0.5)

    deep = RerankConfig(cross_encoders=(CrossEncoderConfig(model=str(model), depth=9),))

    assert open_cascade(sample_index, config).rerankers[0].weight == 0.3
    assert open_cascade(sample_index, config, depth=100).rerankers[0].depth == 7
    assert open_cascade(sample_index, deep).rerankers[0].depth == 9
    assert open_cascade(sample_index, requested).rerankers[0].weight == 0.5


def test_a_model_that_the_index_took_along_from_other_papers_is_told(
    build: Build, tiny_reranker_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}])
    model = Path(shutil.copytree(tiny_reranker_model, index.models / "reranker"))
    config = RerankConfig(cross_encoders=(CrossEncoderConfig(depth=3),), backend="torch")

    def told(content: object) -> list[str]:
        (model / "training.json").write_text(json.dumps(content))
        seal_model(model)
        notes: list[str] = []
        open_cascade(index, config, notes.append)
        return notes

    mine = {
        "corpus_sha256": index.manifest.corpus["sha256"],
        "splits_sha256": splits_sha256(index.splits),
    }
    assert told(mine) == told({}) == told([]) == []
    for other in ({**mine, "corpus_sha256": "f00"}, {**mine, "splits_sha256": "f00"}):
        [log] = told(other)
        assert "models/reranker was not trained on these papers and splits; train it anew" in log
        assert trained_on_other_data(model, index)


# --- the tuned weight


def test_a_tuned_weight_is_that_of_one_reranker(
    build: Build, tiny_reranker_model: str, tmp_path: Path
) -> None:
    index = build([{"id": "a", "title": "A paper"}])

    notes: list[str] = []

    def weight(model: str, depth: int = 3, early_stop: bool = False) -> float:
        stages = (CrossEncoderConfig(model=model, depth=depth),)
        config = RerankConfig(cross_encoders=stages, backend="torch", early_stop=early_stop)
        return open_cascade(index, config, notes.append).rerankers[0].weight

    assert weight(tiny_reranker_model) == 1
    sha = (
        open_cascade(
            index,
            RerankConfig(
                cross_encoders=(CrossEncoderConfig(model=tiny_reranker_model),), backend="torch"
            ),
        )
        .rerankers[0]
        .settings["weights"]
    )

    write_tuned(index, FuseConfig(), {}, RerankWeight(0.35, sha, 3, 32, 32))

    assert weight(tiny_reranker_model) == 0.35
    assert weight(str(tiny_reranker(tmp_path / "other", seed=5))) == 1
    assert notes == []
    assert weight(tiny_reranker_model, depth=7) == 0.35
    assert "0.35 was tuned at depth 3 with 32+32 tokens, not at depth 7 with 32+32" in notes[0]

    write_tuned(index, FuseConfig(), {}, RerankWeight(1, sha, 3, 32, 32))
    with pytest.raises(ConfigError, match="tuning found that 1 is the best"):
        weight(tiny_reranker_model, early_stop=True)


def test_a_weight_that_cannot_be_is_named(build: Build) -> None:
    index = build([{"id": "a", "title": "A paper"}])
    file = write_tuned(index, FuseConfig(), {}, RerankWeight(0.7, "f00", 100, 32, 32))
    file.write_text(file.read_text().replace("0.7", "7"))
    seal_model(file.parent)

    assert read_rerank_weight(index, "another") is None
    assert kept_rerank_weight(index) is None
    with pytest.raises(BadInputError, match="cannot be read; tune again: citerec tune"):
        read_rerank_weight(index, "f00")
