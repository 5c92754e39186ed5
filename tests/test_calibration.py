"""How often what stands at a score or a rank is cited, and figures by the year of the query."""

import numpy as np
import pytest

from citerec.evaluate.bins import Year, by_year, years_of
from citerec.evaluate.calibration import Band, CalibrationBands, calibrate, normalised
from citerec.run import Run
from citerec.types import Query, Ranking


def test_scores_are_put_between_the_last_and_the_best_of_their_list() -> None:
    assert normalised([9.0, 7.0, 5.0]).tolist() == [1.0, 0.5, 0.0]
    assert normalised([-1.0, -3.0, -5.0]).tolist() == [1.0, 0.5, 0.0]
    assert normalised([4.0]).tolist() == normalised([0.0]).tolist() == [1.0]
    assert normalised([2.0, 2.0]).tolist() == [1.0, 1.0]


def test_the_papers_of_all_queries_at_a_score_are_counted_together() -> None:
    qrels = {"q": frozenset("ac"), "r": frozenset("x")}
    first = Ranking(("a", "b", "c", "d"), (10.0, 9.5, 2.0, 0.0))  # 1, .95, .2, 0
    other = Ranking(("y", "x"), (8.0, 4.0))  # 1, 0

    scores = calibrate(Run("s", {"q": first, "r": other}), qrels).scores

    # At the top stand a, b and y, of which a is cited; c alone at .2; at 0 d and x, of which x is.
    assert [(band.label, band.papers, band.cited) for band in scores] == [
        ("0.0-0.1", 2, 1),
        ("0.2-0.3", 1, 1),
        ("0.9-1.0", 3, 1),
    ]
    assert [band.at for band in scores] == pytest.approx([0, 0.2, (1 + 0.95 + 1) / 3])
    assert [band.share for band in scores] == pytest.approx([1 / 2, 1, 1 / 3])


def test_ranks_are_counted_in_bands_that_widen() -> None:
    ids = tuple(f"p{n:04}" for n in range(1, 1201))
    ranking = Ranking(ids, tuple(float(-n) for n in range(1200)))
    gold = frozenset({"p0001", "p0003", "p0012", "p0013", "p1000", "p1001"})  # the last is too deep

    ranks = calibrate(Run("s", {"q": ranking}), {"q": gold}).ranks

    assert [(band.label, band.papers, band.cited) for band in ranks] == [
        ("1", 1, 1),
        ("2-3", 2, 1),
        ("4-5", 2, 0),
        ("6-10", 5, 0),
        ("11-20", 10, 2),
        ("21-50", 30, 0),
        ("51-100", 50, 0),
        ("101-200", 100, 0),
        ("201-500", 300, 0),
        ("501-1000", 500, 1),
    ]
    assert ranks[4] == Band("11-20", 10, 2, at=15.5)


def test_queries_without_a_list_or_without_judgements_count_nowhere() -> None:
    run = Run(
        "s", {"q": Ranking(("a",), (3.0,)), "none": Ranking((), ()), "gone": Ranking("b", (1.0,))}
    )

    found = calibrate(run, {"q": frozenset("a"), "none": frozenset("a"), "missing": frozenset("a")})

    assert found.scores == (Band("0.9-1.0", 1, 1, at=1.0),)
    assert found.ranks == (Band("1", 1, 1, at=1.0),)
    assert calibrate(Run("s", {}), {"q": frozenset("a")}) == CalibrationBands()


def test_bins_hold_every_paper_once() -> None:
    rng = np.random.default_rng(0)
    ids = [f"d{n}" for n in range(300)]
    lists = {
        f"q{n}": Ranking.from_scores(dict(zip(ids, rng.normal(size=300).tolist(), strict=True)))
        for n in range(20)
    }
    qrels = {qid: frozenset(rng.choice(ids, 5, replace=False).tolist()) for qid in lists}

    found = calibrate(Run("s", lists), qrels)

    for bands in (found.scores, found.ranks):
        assert sum(band.papers for band in bands) == 20 * 300
        assert sum(band.cited for band in bands) == 20 * 5


def test_a_metric_is_averaged_over_the_queries_of_each_year() -> None:
    scores, qids = [0.2, 0.4, 0.9, 0.5], ["a", "b", "c", "d"]

    found = by_year(scores, qids, {"a": 2021, "b": 2021, "c": 2019})  # d has no year

    assert found == (Year(2019, 1, 0.9), Year(2021, 2, pytest.approx(0.3)))
    assert by_year(scores, qids, {}) == ()
    with pytest.raises(ValueError, match="4 scores but 3 queries"):
        by_year(scores, qids[:3], {})


def test_queries_without_a_year_have_none() -> None:
    queries = [Query(id="a", title="A", year=2020), Query(id="b", title="B")]

    assert years_of(queries) == {"a": 2020}
