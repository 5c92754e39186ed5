"""Neighbour scores, expansion and the walk: arithmetic by hand, and dense linear algebra as the oracle."""

import numpy as np
import pytest
from support.corpora import records
from support.types import Build

from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.rank.expand import (
    MAX_LINKS,
    CandidateExpander,
    NeighbourScores,
    neighbour_scores,
    thinned,
    walk,
)
from citerec.rules.eligible import eligible
from citerec.types import CandidateSet, Hits, Query, QueryBatch

# rows 0 to 5
CORPUS = records(
    """
{"id": "near", "title": "N", "year": 2001, "citations": ["cited", "classic"]},
{"id": "next", "title": "M", "year": 2002, "citations": ["classic"]},
{"id": "cited", "title": "C", "year": 2000},
{"id": "classic", "title": "K", "year": 1990},
{"id": "survey", "title": "S", "year": 2003, "citations": ["near", "cited", "far"]},
{"id": "far", "title": "F", "year": 1995}
"""
)
TWO = (2, 0)  # neighbours and k0: weights 1 and 1/2, of 3/2 in all


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


@pytest.fixture
def graph(build: Build) -> TemporalGraph:
    return TemporalGraph(build(CORPUS), CitationScope.EARLIER)


def scores(
    graph: TemporalGraph,
    neighbours: tuple[int, ...],
    papers: tuple[int, ...],
    year: int = 2010,
) -> NeighbourScores:
    """The scores that some neighbours, closest first, give to some papers."""
    found = neighbour_scores(graph.snapshot_before(year), rows(*neighbours), *TWO)
    return found.at(rows(*papers))


def test_a_paper_has_the_weight_of_the_neighbours_that_cite_it(
    graph: TemporalGraph,
) -> None:
    at = scores(graph, (0, 1), (2, 3, 4))

    assert at.cited_by.tolist() == pytest.approx([2 / 3, 1, 0])
    assert at.cited_by_count.tolist() == [1, 2, 0]


def test_co_citation_and_coupling_are_cosines(graph: TemporalGraph) -> None:
    # The survey, the only paper that cites near, cites far, which no other cites, and cited, which two cite.
    assert scores(graph, (0,), (5, 2, 0)).co_cited.tolist() == pytest.approx(
        [2 / 3, 2 / 3 / 2**0.5, 0]
    )
    # Near cites cited and classic; next cites classic alone, the survey cited and two others.
    assert scores(graph, (0,), (1, 4, 0)).coupled.tolist() == pytest.approx(
        [2 / 3 / 2**0.5, 2 / 3 / 6**0.5, 0]
    )


def test_the_closest_neighbours_are_ten(build: Build) -> None:
    papers = [
        {
            "id": f"p{i}",
            "title": "P",
            "year": 2000,
            "citations": ["c" if i else "first"],
        }
        for i in range(12)
    ]
    index = build(
        [
            *papers,
            {"id": "c", "title": "C", "year": 1990},
            {"id": "first", "title": "F"},
        ]
    )
    graph = TemporalGraph(index, CitationScope.EARLIER)
    flat = (12, 10**6)  # all have the same weight

    found = neighbour_scores(graph.snapshot_before(2010), rows(*range(12)), *flat)

    at = found.at(rows(12, 13))
    assert at.cited_by.tolist() == pytest.approx([11 / 12, 1 / 12], abs=1e-4)
    assert at.cited_by_closest.tolist() == pytest.approx([9 / 10, 1 / 10], abs=1e-4)


def test_papers_without_known_references_are_no_neighbours(
    graph: TemporalGraph,
) -> None:
    at = scores(graph, (5, 3, 0, 1), (3,))

    assert at.cited_by_count.tolist() == [2]  # of near and next
    assert at.cited_by[0] == pytest.approx((1 / 3 + 1 / 4) / 1.5)  # by their ranks
    assert not len(scores(graph, (), ()).rows)


def test_citations_of_the_querys_year_or_later_are_unknown(
    graph: TemporalGraph,
) -> None:
    # next is of 2002
    assert scores(graph, (0, 1), (3,), 2002).cited_by_count.tolist() == [1]
    assert not scores(
        graph, (0, 1), (5,), 2002
    ).co_cited.any()  # and the survey of 2003


def expanded(
    graph: TemporalGraph, cited: tuple[int, ...] = (), excluded: tuple[int, ...] = ()
) -> CandidateSet:
    """The candidates of a query of 2010 that retrieved `next` alone."""
    query = Query(id="q", title="Q", year=2010)
    rules = eligible([query], graph.index.papers, excluded=excluded)
    hits = Hits(rows(1), np.ones(1, np.float32))
    expander = CandidateExpander(graph, neighbours=1)
    [one] = expander.run(
        QueryBatch([query], rules, [cited]), [CandidateSet(hits, {"bm25": hits})]
    )
    return one


def test_eligible_papers_that_neighbours_cite_are_added(graph: TemporalGraph) -> None:
    assert expanded(graph).rows.tolist() == [1, 3]  # next cites classic
    assert expanded(graph).hits_by_source["expand"].rows.tolist() == [3]
    assert expanded(graph, excluded=(3,)).rows.tolist() == [1]


def test_known_references_are_the_first_neighbours(graph: TemporalGraph) -> None:
    added = expanded(graph, cited=(0,)).hits_by_source["expand"]

    # near cites cited and classic, and is cited together with cited and far
    assert {*added.rows.tolist()} == {2, 3, 5}


def test_a_walk_agrees_with_dense_linear_algebra(build: Build) -> None:
    rng = np.random.default_rng(0)
    size = 12
    papers = [
        {"id": f"p{i:02}", "title": "P", "year": 2000 + i}
        | {
            "citations": [
                f"p{j:02}" for j in range(size) if j != i and rng.random() < 0.3
            ]
        }
        for i in range(size)
    ]
    graph = TemporalGraph(build(papers), CitationScope.EARLIER)
    snapshot = graph.snapshot_before(2009)  # the references of 9, 10 and 11 are unknown

    visited = walk(snapshot, rows(3, 1))

    cites = np.zeros((size, size))
    cites[graph.index.graph.citing, graph.index.graph.indices] = 1
    cites[9:] = 0
    steps = (cites + cites.T) / np.maximum(
        (cites + cites.T).sum(axis=1, keepdims=True), 1
    )
    start = np.zeros(size)
    start[[3, 1]] = np.array([1 / 61, 1 / 62]) / (1 / 61 + 1 / 62)
    expected = 0.15 * 0.85 * (start @ steps + 0.85 * start @ steps @ steps)
    assert visited.at(rows(*range(size))) == pytest.approx(expected)


def test_of_many_linked_papers_an_even_sample_is_read() -> None:
    links = rows(*range(250))

    owners, even = thinned(links, np.array([0, 250, 0]), links != 7)  # 249 links

    assert owners.tolist() == [1] * MAX_LINKS
    assert 7 not in even
    gaps = np.diff(even)
    # every 2.49th, and once 7 between two of them
    assert (gaps.min(), gaps.max()) == (
        2,
        4,
    )
