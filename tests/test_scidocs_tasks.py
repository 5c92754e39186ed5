"""The kinds of SciDocs tasks: classification, ranking, recommendation, the map of topics."""

import sys
from math import log, log2
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.svm import LinearSVC

from citerec.errors import MissingExtraError
from citerec.lab.scidocs.classify import CS, LabelledVectors, classify, macro_f1
from citerec.lab.scidocs.layout import Click, PaperMetadata
from citerec.lab.scidocs.ranking import ranked_query, score_ranking
from citerec.lab.scidocs.recommendation import (
    FEATURES,
    Clicks,
    RankerConfig,
    pair_features,
    recommend,
    score_clicks,
)
from citerec.lab.scidocs.topics import TopicMap, draw_topics, topic_map
from citerec.types import Paper


def clusters(
    per_class: int, *, noise: float = 0.1, dim: int = 8
) -> tuple[np.ndarray, list[str]]:
    """Vectors about three corners, and which."""
    rng = np.random.default_rng(1)
    labels = [name for name in "abc" for _ in range(per_class)]
    corners = np.repeat(np.eye(3, dim), per_class, axis=0)
    return (corners + noise * rng.standard_normal(corners.shape)).astype(
        np.float32
    ), labels


# Classification


def test_c_is_that_of_the_best_validation_f1_and_the_f1_that_of_scikit_learn() -> None:
    vectors, labels = clusters(40, noise=0.9)
    train, validation, test = (
        LabelledVectors(vectors[i::3], tuple(labels[i::3])) for i in range(3)
    )

    found = classify(train, validation, test)

    by_hand = {
        c: LinearSVC(C=c, dual=False).fit(train.vectors.astype(float), train.labels)
        for c in CS
    }
    f1 = {
        c: macro_f1(validation.labels, by_hand[c].predict(validation.vectors))
        for c in CS
    }
    assert found.validation == pytest.approx(f1)
    assert found.c == max(CS, key=lambda c: (f1[c], -c))
    assert found.f1 == macro_f1(test.labels, by_hand[found.c].predict(test.vectors))
    assert classify(train, validation, test) == found


def test_macro_f1_is_the_mean_over_classes_however_few_papers_each_has() -> None:
    # a: precision 3/4, recall 1, so 6/7; b: nothing told, so 0
    assert macro_f1(["a", "a", "a", "b"], ["a"] * 4) == pytest.approx((6 / 7 + 0) / 2)


# Ranking


def test_the_measures_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((310, 5)).astype(np.float32)
    queries, maps, ndcgs = [], [], []
    for q in range(10):
        rows = list(range(10 + 30 * q, 40 + 30 * q))
        gains = [1] * 5 + [0] * 25
        docids = [f"d{row:03}" for row in rows]
        queries.append(ranked_query(q, docids, rows, gains))
        near = -np.linalg.norm(vectors[rows] - vectors[q], axis=1)
        maps.append(average_precision_score(gains, near))
        ndcgs.append(ndcg_score([gains], [near]))

    found = score_ranking(queries, lambda rows: vectors[rows])

    assert (found.queries, found.skipped, found.without_vector) == (10, 0, 0)
    assert found.map == pytest.approx(np.mean(maps))
    assert found.ndcg == pytest.approx(np.mean(ndcgs))


def test_of_candidates_equally_far_the_later_docid_stands_first() -> None:
    vectors = np.array([[0.0], [1.0], [-1.0]], np.float32)

    early = ranked_query(0, ["x", "y"], [1, 2], [1, 0])
    late = ranked_query(0, ["x", "y"], [1, 2], [0, 1])

    assert score_ranking([early], lambda rows: vectors[rows]).map == 1 / 2
    assert score_ranking([late], lambda rows: vectors[rows]).map == 1


def record(paper: str, title: str, year: int | None, **more: set[str]) -> PaperMetadata:
    made = Paper(id=paper, title=title, year=year)
    names = ("authors", "references", "cited_by")
    return PaperMetadata(made, *(frozenset(more.get(name, set())) for name in names))


def test_the_ten_features_of_a_pair_by_hand() -> None:
    query = record(
        "q", "On Neural search", 2010, authors={"a", "b"}, references={"c", "x"}
    )
    candidate = record(
        "c",
        "Neural search .",
        2000,
        authors={"b"},
        references={"x", "y"},
        cited_by={"q", "z"},
    )
    vectors = {
        "q": np.array([1.0, 0.0], np.float32),
        "c": np.array([3.0, 4.0], np.float32),
    }

    table = pair_features(
        [("q", "c"), ("q", "unknown")], {"q": query, "c": candidate}, vectors
    )

    by_name = dict(zip(FEATURES, table[0].tolist(), strict=True))
    assert by_name == pytest.approx(
        {
            "author match": 1 / 2,
            "title match": 2 / 4,  # On, Neural, search, and a full stop
            "similarity of vectors": 3 / 5,
            "shared citing papers": 0,  # nobody cites the query
            "shared references": 1 / 3,
            "candidate cites query": 0,
            "query cites candidate": 1,
            "age": 20 / 20,
            "age against the query": 10 / 20,
            "citations": log(1 + 2) / 10,
        }
    )
    assert not table[1].any()


def test_each_click_counts_by_the_inverse_of_its_propensity() -> None:
    clicks = [Click("q", "a", ("a", "b", "c")), Click("q", "c", ("a", "b", "c"))]
    scores = [np.array([3.0, 1.0, 2.0]), np.array([3.0, 2.0, 2.0])]

    found = score_clicks(clicks, np.array([4.0, 2.0, 1.0]), scores)

    # The first is ranked first and weighs 1/4; above the second stands a, and b stands beside: 1.5; it weighs 1.
    assert found.p_at_1 == pytest.approx((1 / 4 * 1 + 1 * 0) / (5 / 4))
    assert found.ndcg == pytest.approx((1 / 4 * 1 + 1 / log2(2 + 1.5)) / (5 / 4))
    assert found.clicks == 2


def test_the_ranker_learns_that_near_papers_are_clicked() -> None:
    rng = np.random.default_rng(5)
    vectors: dict[str, np.ndarray] = {}
    clicks: list[Click] = []
    for n in range(100):
        own = rng.standard_normal(8)
        vectors[f"q{n}"] = own
        shown = [f"{n}-{i}" for i in range(5)]
        for paper in shown:
            vectors[paper] = rng.standard_normal(8)
        clicked = shown[rng.integers(5)]
        vectors[clicked] = own + 0.2 * rng.standard_normal(8)
        clicks.append(Click(f"q{n}", clicked, tuple(shown)))
    parts = Clicks(clicks[:60], clicks[60:70], clicks[70:], np.ones(5))
    config = RankerConfig(batch=8)

    found = recommend(parts, {}, vectors, config=config, seed=1)
    blind = recommend(parts, {}, {}, config=config, seed=1)

    assert found.p_at_1 > 0.9
    assert blind.p_at_1 == 0  # all scores are equal, so none is first
    assert blind.ndcg == pytest.approx(1 / log2(2 + 4 / 2))
    assert recommend(parts, {}, vectors, config=config, seed=1) == found


def test_far_clusters_are_their_topics_and_the_seed_makes_the_map() -> None:
    vectors, labels = clusters(40, noise=0.02)

    found = topic_map(vectors, labels, seed=1)
    again = topic_map(vectors, labels, seed=1)

    assert found.xy.shape == (120, 2)
    in_one = found.clusters >= 0
    told = {
        (c, t)
        for c, t in zip(found.clusters[in_one], np.array(labels)[in_one], strict=True)
    }
    assert len({c for c, _ in told}) == len(told)  # no cluster is of two topics
    assert found.homogeneity > 0.8
    assert np.array_equal(found.xy, again.xy)


def test_what_the_extra_brings_is_named_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("sklearn.metrics", "matplotlib"):
        monkeypatch.setitem(sys.modules, module, None)
    nowhere = TopicMap(np.zeros((1, 2)), 1.0, 1.0, np.zeros(1, np.int64))

    with pytest.raises(
        MissingExtraError, match=r"sklearn.* pip install 'citerec\[lab\]'"
    ):
        macro_f1(["a"], ["a"])
    with pytest.raises(
        MissingExtraError, match=r"matplotlib.* pip install 'citerec\[lab\]'"
    ):
        draw_topics(nowhere, ["a"], tmp_path / "map.svg")
