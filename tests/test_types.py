"""What flows through the pipeline: wrong values cannot be built, whoever makes them."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from citerec import CiterecError, RecommendConfig
from citerec.errors import ConfigError, InvalidValueError
from citerec.folder import IndexFolder
from citerec.recommend import Recommender
from citerec.types import Paper, Query, Ranking

FINITE = st.floats(allow_nan=False, allow_infinity=False)
QUERY: dict[str, Any] = {"id": "q", "title": "Graph drawing"}
NO_TITLES = ("", " \n\t")
BAD: dict[str, tuple[Any, ...]] = {
    "title": (None, *NO_TITLES),
    "id": ("", "  ", "a\nb", 7),
    "year": (float("nan"), 2019.5, 0, 20190, "2019", True),
    "abstract": (None,),
    "venue": (float("nan"),),
    "authors": ("Ada Lovelace", [None]),
}
CASES = [(name, value) for name, values in BAD.items() for value in values]


@pytest.mark.parametrize(("name", "value"), CASES)
def test_a_query_or_a_paper_with_a_wrong_value_is_not_made(name: str, value: Any) -> None:
    with pytest.raises(InvalidValueError, match=rf"its {name}|no title") as refused:
        Query(**QUERY | {name: value})

    assert isinstance(refused.value, CiterecError)
    if value in NO_TITLES and name == "title":
        assert Paper(**QUERY | {name: value}).title == value
    else:
        with pytest.raises(InvalidValueError, match=f"its {name}"):
            Paper(**QUERY | {name: value})


def test_numbers_of_numpy_and_lists_are_taken() -> None:
    query = Query(id="q", title="T", year=np.int64(2019), authors=["Ada"])  # type: ignore[arg-type]

    assert query == Query(id="q", title="T", year=2019, authors=("Ada",))
    assert type(query.year) is int
    assert Query(id="q", title="T", year=2019.0).year == 2019  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paper", "title", "abstract"),
    [
        (Paper(id="p", title="T", abstract="A", citations=("gold",)), "T", "A"),
        (Paper(id="p", title="", abstract="A"), "A", ""),
        (Paper(id="p", title=""), "p", ""),
    ],
)
def test_the_query_of_a_paper_has_a_text_and_no_references(
    paper: Paper, title: str, abstract: str
) -> None:
    assert Query.of(paper) == Query(id="p", title=title, abstract=abstract)
    assert "citations" not in {field.name for field in fields(Query)}


@pytest.mark.parametrize("k", [0, -1, float("nan"), 2.5])
def test_k_is_a_whole_number_of_at_least_1(k: Any) -> None:
    with pytest.raises(ConfigError, match="k must be"):
        RecommendConfig(k=k)


@pytest.mark.parametrize("year", [0, float("nan")])
def test_a_recommender_refuses_years_that_are_none(sample_index: IndexFolder, year: Any) -> None:
    recommender = Recommender(sample_index, RecommendConfig(encoder="none"))

    with pytest.raises(ConfigError, match="year_max must be a year"):
        recommender.recommend(Query(**QUERY), year_max=year)


@given(st.dictionaries(st.text(max_size=3), FINITE))
def test_any_finite_scores_make_a_ranking(scores: dict[str, float]) -> None:
    ranking = Ranking.from_scores(scores)

    assert dict(zip(ranking.ids, ranking.scores, strict=True)) == scores
    assert list(ranking.scores) == sorted(scores.values(), reverse=True)
    assert len(ranking) == len(scores)


def test_equal_scores_stand_by_rising_id() -> None:
    ranking = Ranking.from_scores({"c": 1.0, "a": 1.0, "b": 2.0})

    assert ranking == Ranking(("b", "a", "c"), (2.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("ids", "scores"),
    [
        (("a",), (1.0, 0.5)),
        (("a", "a"), (1.0, 0.5)),
        (("a", "b"), (0.5, 1.0)),
        (("b", "a"), (1.0, 1.0)),
        (("a",), (float("nan"),)),
        (("a",), (float("inf"),)),
    ],
)
def test_a_ranking_that_is_none_cannot_be_built(
    ids: tuple[str, ...], scores: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"scores|ranked before"):
        Ranking(ids, scores)
