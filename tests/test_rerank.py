"""From scores to lists: what was read stands on top, what was not keeps its order beneath."""

from itertools import pairwise

import numpy as np
import pytest

from citerec.rerank.rerank import RerankState, interpolate_scores, reordered
from citerec.rules.known import Scores
from citerec.types import Hits

ID_RANK = np.arange(10, dtype=np.int32)  # the docid of row 0 is the first of all


def floats(*values: float) -> Scores:
    return np.array(values, np.float32)


def hits(rows: list[int], *scores: float) -> Hits:
    return Hits(np.array(rows, np.int32), floats(*scores))


def half(scores: Scores) -> Scores:
    """A calibration whose probabilities are easily read: half of the score."""
    return scores / 2


def test_a_merit_is_the_weighted_sum_of_probability_and_first_score() -> None:
    found = interpolate_scores(floats(-9, 9), floats(0.2, 0.6), np.array([1.0, 0.0]), weight=0.75)

    assert found == pytest.approx([0.75 * 0.2 + 0.25, 0.75 * 0.6])


def test_the_reranker_alone_orders_by_its_raw_scores_which_never_meet_at_1() -> None:
    found = interpolate_scores(floats(30, 40), floats(1, 1), np.array([1.0, 0.0]), weight=1)

    assert found.tolist() == [30, 40]


def test_what_was_not_read_keeps_its_order_beneath_what_was() -> None:
    found = reordered(hits([7, 5, 3, 1], 9, 8, 7, 6), np.array([0, 2]), floats(-4, -3), ID_RANK)

    assert found.rows.tolist() == [3, 7, 5, 1]
    assert found.scores.tolist() == [-3, -4, -5, -6]  # 5 and 1: one less each


def test_equal_merits_stand_by_docid() -> None:
    found = reordered(hits([4, 2, 3], 3, 2, 1), np.array([0, 1, 2]), floats(1, 1, 1), ID_RANK)

    assert found.rows.tolist() == [2, 3, 4]


def test_scores_fall_strictly_beneath_however_long_the_list() -> None:
    rows = np.arange(300_000, dtype=np.int32)
    long = Hits(rows, np.zeros(len(rows), np.float32))

    found = reordered(long, np.array([0]), floats(0.123), rows)

    assert np.all(np.diff(found.scores) < 0)


@pytest.mark.parametrize("last", [2.0**24 - 2, 2e7, -2e7, 1.7e9, -1e30, 1e38])
def test_scores_fall_strictly_beneath_a_score_of_any_size(last: float) -> None:
    rows = np.arange(50, dtype=np.int32)
    before = Hits(rows, np.zeros(len(rows), np.float32))

    found = reordered(before, np.array([0]), floats(last), rows)

    assert found.rows.tolist() == rows.tolist()
    assert found.scores[0] == np.float32(last)
    assert np.all(np.diff(found.scores) < 0)


def test_where_float32_ends_scores_stay_finite() -> None:
    least = float(np.finfo(np.float32).min)

    found = reordered(hits([1, 2, 3], 9, 8, 7), np.array([0]), floats(least), ID_RANK)

    assert found.scores.tolist() == [least] * 3


def test_of_nothing_read_the_list_stays() -> None:
    before = hits([4, 2], 3, 2)

    assert reordered(before, np.zeros(0, np.int64), floats(), ID_RANK) is before


def test_hits_of_a_stage_stand_by_its_scores() -> None:
    found = Hits.ordered(np.array([9, 8, 7], np.int32), floats(0.1, 0.3, 0.3), ID_RANK)

    assert found.rows.tolist() == [7, 8, 9]
    assert found.scores.tolist() == pytest.approx([0.3, 0.3, 0.1])


def test_a_query_is_settled_when_no_paper_left_can_come_among_the_best() -> None:
    # First scores 10, 5, 0 stretched: 1, 0.5, 0. Weight 0.5: what is left has at most (1 + f) / 2.
    reading = RerankState(hits([1, 2, 3], 10, 5, 0), floats(10, 5, 0), 0.5, half)

    assert reading.next_rows(1).tolist() == [1]
    reading.add_scores(floats(0.9))  # p 0.45, merit 0.725: below (1 + 0.5) / 2
    assert not reading.is_settled(1)
    reading.add_scores(floats(0.1))  # bound 0.5 now, and the best has 0.725
    assert reading.is_settled(1)
    assert not reading.is_settled(2)
    assert reading.reranked(ID_RANK).rows.tolist() == [1, 2, 3]
    assert reading.by_reranker(ID_RANK).rows.tolist() == [1, 2]


def test_nothing_is_settled_by_the_reranker_alone_before_all_is_read() -> None:
    reading = RerankState(hits([1, 2], 10, 5), floats(10, 5), 1, half)

    reading.add_scores(floats(99))
    assert not reading.is_settled(1)
    reading.add_scores(floats(-99))

    assert reading.is_settled(1)


def test_papers_are_read_in_the_order_of_the_first_stages_whatever_the_list_says() -> None:
    reading = RerankState(hits([1, 2, 3, 4], 9, 8, 7, 6), floats(0.1, 0.3, 0.2), 0.5, half)

    assert reading.next_rows(9).tolist() == [2, 3, 1]  # 4 is too deep


def test_scores_of_a_list_never_rise() -> None:
    rng = np.random.default_rng(0)
    rows = rng.permutation(10).astype(np.int32)
    scores = -np.sort(-rng.random(10)).astype(np.float32)
    reading = RerankState(Hits(rows, scores), scores[:6], 0.3, half)

    reading.add_scores(rng.random(6).astype(np.float32))

    found = reading.reranked(ID_RANK)
    assert all(a >= b for a, b in pairwise(found.scores.tolist()))
    assert sorted(found.rows.tolist()) == list(range(10))
