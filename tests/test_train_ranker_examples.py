"""RankerExamples of the ranker: what is shown of a query, what is missing in copies, how an order is measured."""

import numpy as np
import pytest

from citerec.rank.features import FEATURES, NAMES, Group, without_groups
from citerec.train.ranker.examples import RankerExamples, always_present, sampled, with_copies

POOL = 10


def pool(cited: set[int], papers: int = POOL, gold: int = 0) -> RankerExamples:
    """One query whose features all say the place of a paper in its pool."""
    matrix = np.repeat(np.arange(papers, dtype=np.float32)[:, None], len(FEATURES), axis=1)
    flags = np.isin(np.arange(papers), list(cited))
    return RankerExamples.one(matrix, flags, gold or len(cited))


def test_all_that_is_cited_is_shown_and_of_the_rest_the_best_and_some() -> None:
    one = pool({1, 9})

    shown = sampled(one.matrix, one.cited, 3, 4, np.random.default_rng(0))

    places = shown.matrix[:, 0].astype(int).tolist()
    assert places[:3] == [0, 1, 2]  # 0 and 2 are the best that it does not cite
    assert places[-1] == 9
    assert (shown.sizes.tolist(), shown.gold.tolist()) == ([6], [3])
    assert shown.cited.sum() == 2
    assert shown.weights.tolist()[:3] == [1, 1, 1]
    assert (shown.weights**2).sum() == pytest.approx(
        POOL
    )  # two that were drawn, for six of the rest


def test_a_short_pool_is_shown_whole() -> None:
    one = pool({1})

    assert sampled(one.matrix, one.cited, 1, 100, np.random.default_rng(0)).sizes.tolist() == [10]


def test_f1_and_mrr_are_means_over_queries_found_or_not() -> None:
    two = RankerExamples.joined([pool({0, 3}), pool(set(), gold=5)])

    measured = two.measures(-two.matrix[:, 0])

    assert measured["f1@20"] == pytest.approx((2 * 2 / (20 + 2) + 0) / 2)
    assert measured["mrr"] == pytest.approx((1 / 1 + 0) / 2)


def test_of_equal_scores_the_cited_paper_counts_as_the_last() -> None:
    one = pool({4})

    assert one.measures(np.zeros(POOL))["mrr"] == pytest.approx(1 / POOL)


def test_a_hit_below_20_counts_for_mrr_alone() -> None:
    one = pool({24}, papers=30)

    assert one.measures(-one.matrix[:, 0]) == {"f1@20": 0.0, "mrr": pytest.approx(1 / 25)}


def test_queries_that_cite_nothing_or_all_of_it_teach_nothing() -> None:
    three = RankerExamples.joined([pool(set()), pool({2}), pool(set(range(POOL)))])

    assert three.learnable().sizes.tolist() == [POOL]
    assert three.learnable().cited.sum() == 1


def test_a_missing_source_takes_all_its_features() -> None:
    changed = without_groups(pool({1}).matrix, [Group.AUTHORS])

    gone = {name for name, column in zip(NAMES, changed.T, strict=True) if np.isnan(column).all()}
    assert gone == {"author_overlap", "self_cited"}
    assert np.isnan(changed).sum() == 2 * POOL


def test_without_vectors_the_fused_rank_is_that_of_words() -> None:
    matrix = pool({1}).matrix
    matrix[:, NAMES.index("bm25_rank")] = 7

    changed = without_groups(matrix, [Group.SEMANTIC])

    assert changed[:, NAMES.index("rrf")].tolist() == [7] * POOL
    assert np.isnan(changed[:, NAMES.index("dense")]).all()


def test_without_a_graph_age_is_still_known() -> None:
    groups = [Group.GRAPH, Group.POPULARITY]

    changed = without_groups(pool({1}).matrix, groups, keep=always_present(groups))

    assert np.isnan(changed[:, NAMES.index("citations")]).all()
    assert not np.isnan(changed[:, NAMES.index("age")]).any()
    assert always_present([Group.POPULARITY]) == frozenset()


def test_copies_lack_sources_query_by_query_and_the_first_ones_lack_none() -> None:
    many = RankerExamples.joined([pool({1})] * 200)

    copied = with_copies(many, 1, np.random.default_rng(0))

    assert len(copied) == 400
    assert not np.isnan(copied.matrix[: 200 * POOL]).any()
    venue = np.isnan(copied.matrix[200 * POOL :, NAMES.index("venue_match")]).reshape(200, POOL)
    assert (venue.all(1) == venue.any(1)).all()  # of a query it is missing, or not
    assert 40 < venue.all(1).sum() < 80  # of 200, a share of 0.3


def test_nothing_joined_is_nothing() -> None:
    nothing = RankerExamples.joined([])

    assert len(nothing) == 0
    assert nothing.measures(np.zeros(0)) == {"f1@20": 0.0, "mrr": 0.0}
    assert len(nothing.learnable()) == 0
