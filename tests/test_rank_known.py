"""Which citations a query may know of."""

from collections.abc import Callable

import numpy as np
import pytest

from citerec.folder import IndexFolder
from citerec.rank.known import KnownCitations, KnownGraph
from citerec.types import Query

Build = Callable[..., IndexFolder]

CORPUS = [
    {"id": "a", "title": "A", "year": 2000},
    {"id": "b", "title": "B", "year": 2001, "citations": ["a"]},
    {"id": "c", "title": "C", "year": 2005, "citations": ["a", "b"]},
    {"id": "d", "title": "D", "year": 2006, "citations": ["a"]},
    {"id": "undated", "title": "U", "citations": ["a"]},
]


@pytest.fixture
def known(build: Build) -> KnownCitations:
    return KnownCitations(build(CORPUS), KnownGraph.EARLIER)


def test_a_query_knows_the_citations_of_earlier_papers_only(known: KnownCitations) -> None:
    assert known.at(2001).counts.tolist() == [0, 0, 0, 0, 0]
    assert known.at(2001).is_empty
    assert known.at(2005).counts.tolist() == [1, 0, 0, 0, 0]  # of b; of its own year c is unknown
    assert known.at(2006).counts.tolist() == [2, 1, 0, 0, 0]  # of b and c


def test_the_last_years_are_counted_apart(known: KnownCitations) -> None:
    assert known.at(2007).counts.tolist() == [3, 1, 0, 0, 0]
    assert known.at(2007).recent.tolist() == [2, 1, 0, 0, 0]  # of 2004 to 2006: c and d


def test_without_a_year_all_is_known_but_what_the_query_itself_cites(known: KnownCitations) -> None:
    [as_of] = known.of([Query(id="c", title="C")])

    assert as_of.counts.tolist() == [3, 0, 0, 0, 0]  # of b, d and the undated one
    assert as_of.year == 2007


def test_an_id_that_we_made_up_is_no_paper_of_the_corpus(known: KnownCitations) -> None:
    [as_of] = known.of([Query(id="c", title="C", named=False)])

    assert as_of.counts.tolist() == [4, 1, 0, 0, 0]


def test_a_draft_that_was_recognised_in_the_corpus_does_not_know_its_own_citations(
    known: KnownCitations,
) -> None:
    by_id = Query(id="c", title="C", year=2006)
    recognised = Query(id="query", title="C", year=2006, named=False, corpus_ids=("c",))
    twice = Query(id="my-key", title="C", year=2006, corpus_ids=("b", "c"))

    own, same, none = known.of([by_id, recognised, twice])

    assert own is same
    assert own.counts.tolist() == [1, 0, 0, 0, 0]  # of b
    assert none.is_empty


def test_queries_of_one_year_share_what_they_know(known: KnownCitations) -> None:
    first, second, other = known.of(
        [
            Query(id="x", title="X", year=2006),
            Query(id="d", title="D", year=2006),
            Query(id="y", title="Y", year=2005),
        ]
    )

    assert first is second
    assert first is not other


def test_only_train_papers_speak_where_that_is_asked(build: Build) -> None:
    papers = [
        {"id": f"p{n}", "title": "P", "year": 1990 + n, "citations": ["p0"]} for n in range(10)
    ]
    index = build(papers)  # the latest two are dev and test queries

    counted = {graph: int(KnownCitations(index, graph).at(2000).counts[0]) for graph in KnownGraph}

    assert counted == {KnownGraph.TRAIN: 7, KnownGraph.EARLIER: 9}


def test_the_graph_and_its_transpose_are_one(known: KnownCitations) -> None:
    assert np.array_equal(known.cites.toarray().T, known.cited_by.toarray())
    assert known.cites.toarray()[2].tolist() == [1, 1, 0, 0, 0]
