"""What flows through the pipeline: wrong values cannot be built, whoever makes them."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from citerec import CiterecError
from citerec.errors import InvalidValueError
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
def test_a_query_or_a_paper_with_a_wrong_value_is_not_made(
    name: str, value: Any
) -> None:
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


@given(st.dictionaries(st.text(max_size=3), FINITE))
@example({"c": 1.0, "a": 1.0, "b": 2.0})
def test_any_finite_scores_make_a_ranking(scores: dict[str, float]) -> None:
    ranking = Ranking.from_scores(scores)

    assert dict(zip(ranking.ids, ranking.scores, strict=True)) == scores
    assert [*ranking.ids] == sorted(scores, key=lambda docid: (-scores[docid], docid))
    assert len(ranking) == len(scores)


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
