"""The reranker of an index: which one applies, how it is opened, and what it makes of a list."""

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from support.types import Build

from citerec.config import RerankConfig
from citerec.errors import ConfigError, ModelError
from citerec.files.arrays import Rows, Scores
from citerec.index.folder import IndexFolder
from citerec.rerank.pair import read_reranker_spec, write_reranker_spec
from citerec.rerank.reranker import (
    OpenReranker,
    choose_reranker,
    open_reranker,
    reordered,
)
from citerec.types import Hits, Progress, Query

QUERIES = [Query(id="a", title="A"), Query(id="b", title="B")]
ID_RANK = np.arange(10, dtype=np.int32)  # the docid of row 0 is the first of all


def floats(*values: float) -> Scores:
    return np.array(values, np.float32)


def hits(rows: Sequence[int], *scores: float) -> Hits:
    return Hits(np.array(rows, np.int32), floats(*(scores or range(len(rows), 0, -1))))


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


def reranker(
    index: IndexFolder, judge: Judge, depth: int, **changed: float
) -> OpenReranker:
    settings = {"device": "cpu", "weights": "f00"}
    opened = OpenReranker(
        index=index,
        name="judge",
        scorer=judge,
        depth=depth,
        weight=1,
        settings=settings,
    )
    return replace(opened, **changed)  # type: ignore[arg-type]


def test_a_score_is_the_weighted_sum_of_two_standardised_ones_or_the_raw_one(
    sample_index: IndexFolder,
) -> None:
    # standardised: -1 and 1; 1 and -1
    judge, first = (
        Judge(floats(-3, 1)),
        hits([0, 1], 9, 5),
    )

    [mixed] = reranker(sample_index, judge, 2, weight=0.75).rerank(QUERIES[:1], [first])
    [alone] = reranker(sample_index, judge, 2).rerank(QUERIES[:1], [first])

    assert mixed.hits.rows.tolist() == [1, 0]
    assert mixed.hits.scores.tolist() == pytest.approx([0.75 - 0.25, 0.25 - 0.75])
    assert alone.hits.scores.tolist() == pytest.approx([1, -3])


def test_papers_that_were_not_scored_keep_their_order_below() -> None:
    found = reordered(hits([7, 3, 5, 1], 9, 8, 7, 6), floats(-4, -3), ID_RANK)

    assert found.rows.tolist() == [3, 7, 5, 1]
    assert found.scores.tolist() == [-3, -4, -5, -6]  # 5 and 1: one less each


def test_equal_scores_are_ordered_by_docid() -> None:
    assert reordered(hits([4, 2, 3]), floats(1, 1, 1), ID_RANK).rows.tolist() == [
        2,
        3,
        4,
    ]


def test_scores_fall_strictly_however_long_the_list() -> None:
    rows = np.arange(300_000, dtype=np.int32)

    found = reordered(Hits(rows, np.zeros(len(rows), np.float32)), floats(0.123), rows)

    assert np.all(np.diff(found.scores) < 0)


def test_all_queries_are_scored_together_and_only_to_the_depth(
    sample_index: IndexFolder,
) -> None:
    judge = Judge(floats(0.1, 0.2, 0.3, 0.4))

    a, b = reranker(sample_index, judge, 2).rerank(
        QUERIES, [hits([0, 1, 2, 3]), hits([3, 2])]
    )

    [nothing] = reranker(sample_index, judge, 2).rerank(QUERIES[:1], [hits([])])

    assert (len(nothing.hits), len(nothing.scored)) == (0, 0)
    assert judge.asked[0] == [[0, 1], [3, 2]]
    assert a.hits.rows.tolist() == [1, 0, 2, 3]
    assert b.hits.rows.tolist() == [3, 2]
    assert a.scored.rows.tolist() == [1, 0]
    assert a.scored.scores.tolist() == pytest.approx([0.2, 0.1])


def test_a_calibrated_reranker_that_decides_alone_gives_probabilities(
    sample_index: IndexFolder,
) -> None:
    alone = reranker(sample_index, Judge(floats(-1, 0, 1)), 2, calibrated=True)

    [reranked] = alone.rerank(QUERIES[:1], [hits([0, 1, 2])])
    probable = alone.probabilities(reranked)

    assert probable is not None
    assert probable.rows.tolist() == [1, 0]  # paper 2 was not scored
    assert probable.scores.tolist() == pytest.approx([0.5, 1 / (1 + math.e)])
    assert replace(alone, calibrated=False).probabilities(reranked) is None
    assert replace(alone, weight=0.5).probabilities(reranked) is None


def test_auto_is_the_reranker_of_the_index_else_none(
    build: Build, tiny_reranker_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}])
    assert choose_reranker("auto", index) is None
    with pytest.raises(ModelError, match="train-reranker"):
        open_reranker(index, RerankConfig())
    with pytest.raises(ConfigError, match="no effect"):
        choose_reranker(RerankConfig(depth=5), index)

    own = shutil.copytree(tiny_reranker_model, index.models / "reranker")
    assert choose_reranker("auto", index) == RerankConfig(model=str(own))
    assert "by models/reranker: 32+32 tokens, torch " in str(
        open_reranker(index, RerankConfig())
    )
    assert choose_reranker("none", index) is None


def test_the_weight_is_the_given_one_else_of_the_model_else_1(
    build: Build, tiny_reranker_model: str
) -> None:
    index = build([{"id": "a", "title": "A paper"}])
    folder = Path(shutil.copytree(tiny_reranker_model, index.models / "reranker"))
    config = RerankConfig(model=str(folder), depth=6)
    assert open_reranker(index, config).weight == 1

    (folder / "checksums.json").unlink(missing_ok=True)
    write_reranker_spec(folder, read_reranker_spec(folder).replace(weight=0.3))

    assert open_reranker(index, config).weight == 0.3
    assert open_reranker(index, config.replace(weight=0.9)).weight == 0.9
    assert open_reranker(index, config.replace(weight=0)).weight == 0
