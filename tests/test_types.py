"""What flows through the pipeline: wrong values cannot be built."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec.types import Eligibility, Hits, Paper, Query, Ranking

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_a_query_made_of_a_paper_carries_no_references() -> None:
    paper = Paper(id="p", title="T", abstract="A", year=2020, venue="V", citations=("gold",))

    query = Query.of(paper)

    assert query == Query(id="p", title="T", abstract="A", year=2020, venue="V")
    assert "citations" not in {field.name for field in fields(query)}


def test_equal_scores_stand_by_rising_id() -> None:
    ranking = Ranking.from_scores({"c": 1.0, "a": 1.0, "b": 2.0})

    assert ranking == Ranking(("b", "a", "c"), (2.0, 1.0, 1.0))
    assert len(ranking) == 3


@given(st.dictionaries(st.text(max_size=3), FINITE))
def test_any_finite_scores_make_a_ranking(scores: dict[str, float]) -> None:
    ranking = Ranking.from_scores(scores)

    assert dict(zip(ranking.ids, ranking.scores, strict=True)) == scores
    assert list(ranking.scores) == sorted(scores.values(), reverse=True)


@pytest.mark.parametrize(
    ("ids", "scores", "fault"),
    [
        (("a",), (1.0, 0.5), "1 ids but 2 scores"),
        (("a", "a"), (1.0, 0.5), "twice"),
        (("a", "b"), (0.5, 1.0), "'a' is ranked before 'b'"),
        (("b", "a"), (1.0, 1.0), "'b' is ranked before 'a'"),
        (("a",), (float("nan"),), "finite"),
        (("a",), (float("inf"),), "finite"),
    ],
)
def test_a_ranking_that_is_none_cannot_be_built(
    ids: tuple[str, ...], scores: tuple[float, ...], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        Ranking(ids, scores)


@pytest.mark.parametrize("score", [float("nan"), float("-inf")])
def test_a_score_that_is_no_number_names_its_paper(score: float) -> None:
    with pytest.raises(ValueError, match="'bad' has"):
        Ranking.from_scores({"good": 1.0, "bad": score})


def test_nothing_found_is_an_empty_ranking() -> None:
    assert len(Ranking.from_scores({})) == 0


def test_hits_are_as_long_as_their_rows() -> None:
    hits = Hits(np.array([4, 2], np.int32), np.array([2.0, 1.0], np.float32))

    assert len(hits) == 2


def test_without_a_rule_every_paper_is_eligible() -> None:
    assert Eligibility() == Eligibility(year_max=None, excluded=frozenset())
