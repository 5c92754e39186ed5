"""One rule for papers and queries, whoever makes them: a reader, the command line or a program."""

from typing import Any

import numpy as np
import pytest

from citerec import CiterecError, RecommendConfig
from citerec.errors import ConfigError, InvalidValueError
from citerec.folder import IndexFolder
from citerec.recommend import Recommender
from citerec.types import Paper, Query

QUERY: dict[str, Any] = {"id": "q", "title": "Graph drawing"}

BAD_QUERIES: dict[str, tuple[dict[str, Any], str]] = {
    "an empty title": ({"title": ""}, "query 'q': it has no title, and a query needs one"),
    "a title of white space": ({"title": " \n\t"}, "query 'q': it has no title"),
    "no title": ({"title": None}, "query 'q': its title must be a string, found None"),
    "an empty id": ({"id": ""}, "a query: its id is empty"),
    "a blank id": ({"id": "  "}, "a query: its id is empty"),
    "an id of two lines": ({"id": "a\nb"}, "holds a line break or control character"),
    "a number for an id": ({"id": 7}, "a query: its id must be a string, found 7"),
    "a year that is NaN": ({"year": float("nan")}, "a year such as 2019, or null; found nan"),
    "half a year": ({"year": 2019.5}, "a year such as 2019, or null; found 2019.5"),
    "the year 0": ({"year": 0}, "found 0"),
    "a year of five digits": ({"year": 20190}, "found 20190"),
    "a year in words": ({"year": "2019"}, "found '2019'"),
    "true for a year": ({"year": True}, "found True"),
    "an abstract that is no text": ({"abstract": None}, "query 'q': its abstract must"),
    "a venue that is no text": ({"venue": float("nan")}, "query 'q': its venue must"),
    "one string for the authors": ({"authors": "Ada Lovelace"}, "must be a list of strings"),
    "an author that is no name": ({"authors": [None]}, "must be strings, found None"),
}


@pytest.mark.parametrize("case", BAD_QUERIES)
def test_a_query_that_cannot_be_is_not_made(case: str) -> None:
    fields, message = BAD_QUERIES[case]

    with pytest.raises(InvalidValueError) as refused:
        Query(**QUERY | fields)

    assert message in str(refused.value)
    assert isinstance(refused.value, CiterecError)


@pytest.mark.parametrize(
    "case", sorted(BAD_QUERIES.keys() - {"an empty title", "a title of white space"})
)
def test_a_paper_that_cannot_be_is_not_made(case: str) -> None:
    fields, _ = BAD_QUERIES[case]

    with pytest.raises(InvalidValueError):
        Paper(**QUERY | fields)


def test_numbers_of_numpy_and_lists_are_taken() -> None:
    query = Query(id="q", title="T", year=np.int64(2019), authors=["Ada"])  # type: ignore[arg-type]

    assert query == Query(id="q", title="T", year=2019, authors=("Ada",))
    assert type(query.year) is int
    assert Query(id="q", title="T", year=2019.0).year == 2019  # type: ignore[arg-type]


def test_a_paper_without_a_title_asks_with_its_abstract_and_without_any_text_with_its_id() -> None:
    titled = Paper(id="p", title="T", abstract="A")
    untitled = Paper(id="p", title="", abstract="A")
    empty = Paper(id="p", title="")

    assert [(q.title, q.abstract) for q in map(Query.of, (titled, untitled, empty))] == [
        ("T", "A"),
        ("A", ""),
        ("p", ""),
    ]


@pytest.mark.parametrize("k", [0, -1, float("nan"), 2.5])
def test_k_is_a_whole_number_of_at_least_1(k: Any) -> None:
    with pytest.raises(ConfigError, match="k must be"):
        RecommendConfig(k=k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"year_max": 0}, "year_max must be a year"),
        ({"year_max": float("nan")}, "year_max must be a year"),
    ],
)
def test_a_recommender_refuses_years_and_rows_that_are_none(
    sample_index: IndexFolder, options: dict[str, Any], message: str
) -> None:
    recommender = Recommender(sample_index, RecommendConfig(encoder="none"))

    with pytest.raises(ConfigError, match=message):
        recommender.recommend([Query(**QUERY)], **options)
