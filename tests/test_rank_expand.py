"""What close papers say by their references."""

from collections.abc import Callable

import numpy as np
import pytest

from citerec.config import ExpandConfig
from citerec.folder import IndexFolder
from citerec.rank.expand import neighbour_scores
from citerec.rules.known import CitationScope, TemporalGraph

Build = Callable[..., IndexFolder]

CORPUS = [  # rows 0 to 5
    {"id": "near", "title": "N", "year": 2001, "citations": ["cited", "classic"]},
    {"id": "next", "title": "M", "year": 2002, "citations": ["classic"]},
    {"id": "cited", "title": "C", "year": 2000},
    {"id": "classic", "title": "K", "year": 1990},
    {"id": "survey", "title": "S", "year": 2003, "citations": ["near", "cited", "far"]},
    {"id": "far", "title": "F", "year": 1995},
]
TWO = ExpandConfig(neighbours=2, k0=0)  # weights 1 and 1/2, of 3/2 in all


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


@pytest.fixture
def known(build: Build) -> TemporalGraph:
    return TemporalGraph(build(CORPUS), CitationScope.EARLIER)


def test_a_paper_weighs_what_the_close_papers_weigh_that_cite_it(known: TemporalGraph) -> None:
    [said] = neighbour_scores(known, known.snapshot_before(2010), [rows(0, 1)], TWO)

    at = said.at(rows(2, 3, 4))
    assert at.cites.tolist() == pytest.approx([2 / 3, 1, 0])
    assert at.counts.tolist() == [1, 2, 0]


def test_papers_cited_together_with_a_close_one_count_by_the_cosine(known: TemporalGraph) -> None:
    [said] = neighbour_scores(known, known.snapshot_before(2010), [rows(0)], TWO)

    # The survey, its only citer, cites near and far, which has no other; cited has two.
    at = said.at(rows(5, 2, 0))
    assert at.co.tolist() == pytest.approx([2 / 3, 2 / 3 / 2**0.5, 0])


def test_papers_that_cite_what_a_close_one_cites_count_by_the_cosine(known: TemporalGraph) -> None:
    [said] = neighbour_scores(known, known.snapshot_before(2010), [rows(0)], TWO)

    # Near cites cited and classic; next cites classic alone, the survey cited and two others.
    at = said.at(rows(1, 4, 0))
    assert at.coupled.tolist() == pytest.approx([2 / 3 / 2**0.5, 2 / 3 / 6**0.5, 0])


def test_the_closest_speak_once_more(build: Build) -> None:
    papers = [
        {"id": f"p{i}", "title": "P", "year": 2000, "citations": ["c" if i else "first"]}
        for i in range(12)
    ]
    index = build([*papers, {"id": "c", "title": "C", "year": 1990}, {"id": "first", "title": "F"}])
    graph = TemporalGraph(index, CitationScope.EARLIER)
    flat = ExpandConfig(neighbours=12, k0=10**6)  # all weigh the same

    [said] = neighbour_scores(graph, graph.snapshot_before(2010), [rows(*range(12))], flat)

    at = said.at(rows(12, 13))
    assert at.cites.tolist() == pytest.approx([11 / 12, 1 / 12], abs=1e-4)
    assert at.closest.tolist() == pytest.approx([9 / 10, 1 / 10], abs=1e-4)


def test_who_has_nothing_to_say_is_passed_over(known: TemporalGraph) -> None:
    silent_first = neighbour_scores(known, known.snapshot_before(2010), [rows(5, 3, 0, 1)], TWO)[0]

    assert silent_first.at(rows(3)).counts.tolist() == [
        2
    ]  # near and next are asked, not far, classic
    assert silent_first.at(rows(3)).cites[0] == pytest.approx(
        (1 / 3 + 1 / 4) / 1.5
    )  # by their ranks


def test_citations_of_the_querys_year_or_later_say_nothing(known: TemporalGraph) -> None:
    [said] = neighbour_scores(known, known.snapshot_before(2002), [rows(0, 1)], TWO)

    assert said.at(rows(3)).counts.tolist() == [1]  # next is of 2002
    assert not said.at(rows(5)).co.any()  # and the survey of 2003


def test_a_batch_says_of_each_query_what_it_says_alone(known: TemporalGraph) -> None:
    lists = [rows(0, 1), rows(), rows(4)]

    together = neighbour_scores(known, known.snapshot_before(2010), lists, TWO)

    for mine, said in zip(lists, together, strict=True):
        [alone] = neighbour_scores(known, known.snapshot_before(2010), [mine], TWO)
        assert said.rows.tolist() == alone.rows.tolist()
        assert said.co.tolist() == alone.co.tolist()
    assert not len(together[1].rows)
    assert together[1].at(rows(0, 3)).cites.tolist() == [0, 0]
