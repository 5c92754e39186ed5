"""Random, most cited and the oracle."""

import numpy as np
import pytest

from citerec.evaluate.baselines import (
    citation_order,
    most_cited_hits,
    oracle_run,
    query_rng,
    random_hits,
)
from citerec.evaluate.metrics import mean_metrics, per_query


def test_random_draws_allowed_papers_once_each() -> None:
    allowed = np.array([True, False, True, True, False])

    hits = random_hits(allowed, 10, query_rng(1, "q"))

    assert sorted(hits.rows.tolist()) == [0, 2, 3]
    assert hits.scores.tolist() == [3.0, 2.0, 1.0]
    assert (hits.rows.dtype, hits.scores.dtype) == (np.int32, np.float32)


def test_random_depends_on_the_seed_and_the_query_only() -> None:
    allowed = np.ones(1000, dtype=np.bool_)

    def draw(seed: int, qid: str) -> list[int]:
        return random_hits(allowed, 5, query_rng(seed, qid)).rows.tolist()

    assert draw(1, "q1") == draw(1, "q1")
    assert draw(1, "q1") != draw(1, "q2")
    assert draw(1, "q1") != draw(2, "q1")


def test_random_gives_every_paper_the_same_chance() -> None:
    allowed = np.ones(10, dtype=np.bool_)

    first = [random_hits(allowed, 1, query_rng(0, f"q{n}")).rows[0] for n in range(2000)]

    assert np.bincount(first).tolist() == pytest.approx([200] * 10, abs=60)


def test_most_cited_puts_equal_counts_by_docid_and_leaves_out_the_uncited() -> None:
    counts = np.array([2, 0, 5, 2, 9])
    id_rank = np.array([4, 3, 2, 1, 0], dtype=np.int32)
    allowed = np.array([True, True, True, True, False])

    order = citation_order(counts, id_rank)
    hits = most_cited_hits(order, counts, allowed, k=3)

    assert order.tolist() == [4, 2, 3, 0]
    assert hits.rows.tolist() == [2, 3, 0]
    assert hits.scores.tolist() == [5.0, 2.0, 2.0]


def test_nothing_allowed_is_nothing_found() -> None:
    nothing = np.zeros(3, dtype=np.bool_)
    counts = np.array([1, 2, 3])
    order = citation_order(counts, np.arange(3, dtype=np.int32))

    assert len(random_hits(nothing, 5, query_rng(0, "q"))) == 0
    assert len(most_cited_hits(order, counts, nothing, 5)) == 0


def test_the_oracle_is_perfect_but_for_what_the_cut_at_20_allows() -> None:
    qrels = {
        "five": frozenset(f"p{n}" for n in range(5)),
        "twenty": frozenset(f"p{n}" for n in range(20)),
    }

    scores = per_query(oracle_run(qrels), qrels)
    metrics = mean_metrics(scores)

    # Five of five found in 20 places: P = 1/4, R = 1, F1 = 2/5.
    assert scores["f1@20"].tolist() == pytest.approx([0.4, 1.0])
    assert [metrics[m] for m in ("mrr", "recall@100", "ndcg@20", "map")] == pytest.approx([1] * 4)
