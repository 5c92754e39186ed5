"""`Recommender.corpus`: search by keywords, papers by id or DOI, references and cited_by."""

from typing import Any

import pytest
from support.corpora import records
from support.types import Build

from citerec.errors import ConfigError, PaperNotFoundError
from citerec.search import Corpus, SearchFilter

PAPERS: list[dict[str, Any]] = records(
    """
{"id": "a", "title": "Maps of large trees", "year": 2001, "authors": ["Ada Müller"], "venue": "VIS"},
{"id": "b", "title": "Trees, trees and more trees", "year": 2010, "authors": ["Bo Root"],
 "venue": "Journal of Trees", "doi": "https://doi.org/10.1234/ROOTS", "citations": ["a"]},
{"id": "c", "title": "Leaves of trees", "authors": ["Cy Leaf"], "citations": ["a", "b"]},
{"id": "10.1234/soil", "title": "Soil", "year": 2020, "citations": ["a", "c"]}
"""
)


@pytest.fixture
def corpus(build: Build) -> Corpus:
    return Corpus(build(PAPERS))


def test_keywords_find_papers_best_first_and_pages_continue_the_list(
    corpus: Corpus,
) -> None:
    every = corpus.search("trees")
    second = corpus.search("trees", k=1, offset=1)

    assert every.ids[0] == "b"
    assert {*every.ids} == {"a", "b", "c"}
    assert [item.score for item in every] == sorted(
        (i.score for i in every), reverse=True
    )
    assert (second.ids, second[0].rank) == (every.ids[1:2], 2)
    assert "@" in every.export("bibtex")


@pytest.mark.parametrize(
    ("filter", "ids"),
    [
        (SearchFilter(year_min=2005), {"b"}),
        (SearchFilter(year_max=2005), {"a"}),
        (SearchFilter(year_min=2001, year_max=2010), {"a", "b"}),
        (SearchFilter(author="MULLER"), {"a"}),
        (SearchFilter(venue="trees journal"), {"b"}),
        (SearchFilter(venue="tree"), set()),
    ],
)
def test_filters_leave_papers_out(
    corpus: Corpus, filter: SearchFilter, ids: set[str]
) -> None:
    assert {*corpus.search("trees", filter=filter).ids} == ids


def test_nothing_found_says_why(corpus: Corpus) -> None:
    assert corpus.search("penguins").empty_reason == "no paper has these words"
    filtered = corpus.search("trees", filter=SearchFilter(author="Nobody"))
    assert filtered.empty_reason == "no paper has these words and passes the filters"


def test_wrong_arguments_name_themselves(corpus: Corpus) -> None:
    with pytest.raises(ConfigError, match="no keywords"):
        corpus.search("  ")
    with pytest.raises(ConfigError, match="k must be at least 1"):
        corpus.search("trees", k=0)
    with pytest.raises(
        ConfigError, match="no year fits: papers from the year 2010 up to the year 2001"
    ):
        SearchFilter(year_min=2010, year_max=2001)


def test_an_unknown_paper_is_an_error_that_says_what_to_do(corpus: Corpus) -> None:
    with pytest.raises(
        PaperNotFoundError, match="no paper with the id or DOI 'x'; find its id"
    ):
        corpus.paper("x")


def test_references_and_cited_by_are_pages_most_cited_first(corpus: Corpus) -> None:
    references = corpus.references("10.1234/soil")
    citing = corpus.cited_by("a", k=2, offset=1)

    # cited three times, once
    assert [paper.id for paper in references.papers] == [
        "a",
        "c",
    ]
    assert ([paper.id for paper in citing.papers], citing.total) == (
        ["c", "10.1234/soil"],
        3,
    )


def test_papers_are_connected_by_links_prior_and_derivative_works(
    corpus: Corpus,
) -> None:
    later = corpus.connections(["b", "c", "unknown"])  # both cite a; soil cites c alone
    earlier = corpus.connections(["a", "c"])  # soil cites both; b cites a alone

    assert later.links == (("c", "b"),)
    assert [(paper.id, links) for paper, links in later.prior] == [("a", 2)]
    assert later.derivative == ()
    assert earlier.links == (("c", "a"),)
    assert [(paper.id, links) for paper, links in earlier.derivative] == [
        ("10.1234/soil", 2)
    ]
