"""Fusion: arithmetic in sight, and ranx as the oracle."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.config import FuseConfig, FuseMethod
from citerec.retrieve.fuse import fuse, ranks_and_scores, rrf, weighted_sum
from citerec.types import Hits

IDS = np.arange(100, dtype=np.int32)[::-1].copy()  # row 99 has the smallest docid


def hits(scores: dict[int, float]) -> Hits:
    rows = sorted(scores, key=lambda row: (-np.float32(scores[row]), IDS[row]))
    return Hits(
        np.array(rows, np.int32), np.array([scores[row] for row in rows], np.float32)
    )


some_hits = st.dictionaries(
    st.integers(0, 99),
    st.sampled_from([-3.5, -1.0, 0.0, 0.5, 0.5000001, 2.0, 41.25]),
    max_size=30,
).map(hits)


# --- reciprocal ranks


def test_rrf_rewards_agreement_over_one_high_rank() -> None:
    bm25, dense = hits({1: 9.0, 2: 5.0}), hits({3: 0.9, 2: 0.8})

    fused = rrf([bm25, dense], IDS, k0=60)

    # Row 2 is second twice; 3 and 1 are first once, and 3 has the smaller docid.
    assert fused.rows.tolist() == [2, 3, 1]
    assert fused.scores == pytest.approx([2 / 62, 1 / 61, 1 / 61])


# --- weighted scores


def test_each_ranking_is_stretched_to_0_and_1_before_it_is_weighted() -> None:
    bm25, dense = hits({1: 30.0, 2: 20.0, 3: 10.0}), hits({2: 0.9, 4: 0.7})

    fused = weighted_sum([bm25, dense], [0.6, 0.4], IDS)

    # 2: .6 * 1/2 + .4 * 1; 1: .6 * 1; 4 and 3 are last of their rankings, 4 has the smaller docid.
    assert fused.rows.tolist() == [2, 1, 4, 3]
    assert fused.scores == pytest.approx([0.7, 0.6, 0, 0])


# --- what holds for both


@pytest.mark.parametrize("found", [[], [hits({})], [hits({}), hits({})]])
def test_of_nothing_comes_nothing(found: list[Hits]) -> None:
    for fused in (rrf(found, IDS), weighted_sum(found, [1.0] * len(found), IDS)):
        assert (len(fused), fused.rows.dtype, fused.scores.dtype) == (
            0,
            np.int32,
            np.float32,
        )


def test_scores_that_differ_beyond_float32_stand_by_id() -> None:
    """1 / 10^9 and 1 / (10^9 + 1) are one number in float32."""
    fused = rrf([hits({1: 2.0, 2: 1.0})], IDS, k0=10**9)

    assert fused.scores[0] == fused.scores[1]
    assert fused.rows.tolist() == [2, 1]


# --- ranx


def to_ranx(found: Sequence[Hits], name: str) -> Any:
    from ranx import Run

    runs = {
        f"q{i}": {f"d{row}": float(s) for row, s in zip(h.rows, h.scores, strict=True)}
        for i, h in enumerate(found)
    }
    return Run(runs, name=name)


def random_hits(rng: np.random.Generator, n: int, scale: float) -> Hits:
    rows = rng.choice(100, n, replace=False)
    return hits(dict(zip(rows.tolist(), (scale * rng.random(n)).tolist(), strict=True)))


def check_by_ranx(
    theirs: Any, mine: Callable[[list[Hits]], Hits], pairs: list[list[Hits]]
) -> None:
    for i, found in enumerate(pairs):
        expected = {
            int(docid[1:]): score for docid, score in theirs.run[f"q{i}"].items()
        }
        fused = mine(found)
        assert sorted(fused.rows.tolist()) == sorted(expected)
        assert fused.scores == pytest.approx(
            [expected[row] for row in fused.rows.tolist()], abs=1e-6
        )


@pytest.fixture(scope="module")
def pairs() -> list[list[Hits]]:
    rng = np.random.default_rng(5)
    drawn = [
        [random_hits(rng, n, 40), random_hits(rng, 60, 1)] for n in (1, 2, 30, 100)
    ]
    return [*drawn, [hits({3: 2.0, 4: 2.0}), random_hits(rng, 5, 1)]]


@pytest.mark.slow  # numba compiles it, the first time
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaWarning")
def test_ranx_fuses_ranks_and_min_max_scores_as_we_do(pairs: list[list[Hits]]) -> None:
    from ranx import fuse as ranx_fuse

    runs = [to_ranx([pair[side] for pair in pairs], name=f"{side}") for side in (0, 1)]

    by_rank = ranx_fuse(runs=runs, method="rrf", params={"k": 60})
    summed = ranx_fuse(
        runs=runs, norm="min-max", method="wsum", params={"weights": (0.3, 0.7)}
    )

    check_by_ranx(by_rank, lambda found: rrf(found, IDS), pairs)
    check_by_ranx(summed, lambda found: weighted_sum(found, [0.3, 0.7], IDS), pairs)


# --- what a config says


def test_a_config_chooses_the_method_and_its_parameters() -> None:
    found = {
        "bm25": hits({1: 9.0, 2: 5.0, 3: 1.0}),
        "dense": hits({4: 0.9, 5: 0.8, 6: 0.1}),
    }

    by_rank = fuse(found, IDS, FuseConfig(k0=9), k=3)
    by_score = fuse(
        found,
        IDS,
        FuseConfig(method=FuseMethod.WEIGHTED, bm25_weight=1, dense_weight=0.25),
    )

    # Both first ranks give 1/10, both second ranks 1/11.
    assert by_rank.rows.tolist() == [4, 1, 5]
    assert by_rank.scores == pytest.approx([1 / 10, 1 / 10, 1 / 11])
    # bm25: 1, 1/2, 0. Dense: 1, 7/8, 0, a quarter of it.
    assert by_score.rows.tolist() == [1, 2, 4, 5, 6, 3]
    assert by_score.scores == pytest.approx([1, 0.5, 0.25, 0.21875, 0, 0])


# --- where a stage put a paper


@given(some_hits, st.lists(st.integers(0, 120), max_size=20))
def test_every_paper_of_a_stage_is_found_where_it_stands(
    stage: Hits, rows: list[int]
) -> None:
    ranks, scores = ranks_and_scores(stage, np.array(rows, np.int32))

    there = stage.rows.tolist()
    assert ranks.tolist() == [
        there.index(row) + 1 if row in there else 0 for row in rows
    ]
    assert [s for s in scores if not np.isnan(s)] == [
        stage.scores[there.index(row)] for row in rows if row in there
    ]
