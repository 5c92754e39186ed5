"""Pools and features: what is known of each candidate, as of the query's year."""

from collections.abc import Callable
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.tiny_ranker import column

from citerec.config import ExpandConfig
from citerec.corpus.graph import Graph
from citerec.folder import IndexFolder
from citerec.rank.expand import CandidateExpander, ExpandedCandidates
from citerec.rank.features import FEATURES, NAMES, Features, Matrix
from citerec.rules.known import CitationScope, TemporalGraph, eligible
from citerec.types import CandidateSet, Eligibility, Hits, Query, QueryBatch

Build = Callable[..., IndexFolder]

CORPUS = [  # rows 0 to 6
    {
        "id": "near",
        "title": "Drawing graphs",
        "year": 2008,
        "authors": ["Ann Bee"],
        "citations": ["cited", "old"],
    },
    {
        "id": "next",
        "title": "Trees",
        "year": 2009,
        "authors": ["C. Dee"],
        "citations": ["old"],
        "abstract": "Tall.",
    },
    {"id": "cited", "title": "Drawing", "year": 2000, "authors": ["Bee, A."], "venue": "VIS 1"},
    {"id": "old", "title": "Graphs", "year": 1970, "venue": "Elsewhere"},
    {"id": "same year", "title": "S", "year": 2010, "citations": ["cited", "near"]},
    {"id": "later", "title": "L", "year": 2012, "citations": ["near", "next", "old"]},
    {"id": "undated", "title": "U", "citations": ["cited"]},
]
QUERY = Query(id="q", title="Drawing trees", year=2010, authors=("A. Bee", "X. Y."), venue="VIS 2")


def hits(*rows: int, best: float = 4.0) -> Hits:
    return Hits(np.array(rows, np.int32), np.linspace(best, 1, len(rows), dtype=np.float32))


FOUND = CandidateSet(hits(0, 1), {"bm25": hits(0, 1), "dense": hits(1, 0)})


def expand(
    expander: CandidateExpander,
    queries: list[Query],
    rules: list[Eligibility],
    found: list[CandidateSet],
    cited: list[list[int]] | None = None,
) -> list[ExpandedCandidates]:
    return expander.run(QueryBatch(queries, rules, cited or ()), found)


@pytest.fixture
def index(build: Build) -> IndexFolder:
    return build(CORPUS)


def seen(
    index: IndexFolder, query: Query = QUERY, found: CandidateSet = FOUND
) -> tuple[ExpandedCandidates, Matrix]:
    expander = CandidateExpander(
        TemporalGraph(index, CitationScope.EARLIER), ExpandConfig(neighbours=2)
    )
    [pool] = expand(expander, [query], eligible([query], index.papers), [found])
    return pool, Features(index, expander.graph).matrix(query, pool)


def test_what_close_papers_cite_joins_the_candidates(index: IndexFolder) -> None:
    pool, _ = seen(index)

    assert pool.rows.tolist() == [0, 1, 3, 2]  # found, then what they cite: old by both of them
    assert pool.hits_by_source["expand"].rows.tolist() == [3, 2]
    assert pool.neighbour_scores.counts.tolist() == [0, 0, 2, 1]
    assert len(pool.neighbour_scores.neighbours) == 2


def test_who_may_not_be_recommended_does_not_join(index: IndexFolder) -> None:
    expander = CandidateExpander(TemporalGraph(index, CitationScope.EARLIER))
    rules = eligible([QUERY], index.papers, excluded=[3])

    [pool] = expand(expander, [QUERY], rules, [FOUND])

    assert pool.rows.tolist() == [0, 1, 2]


def test_each_feature_is_what_its_name_says(index: IndexFolder) -> None:
    _, matrix = seen(index)  # near, next, old, cited

    def of(name: str) -> list[float]:
        return column(matrix, name)

    assert of("bm25") == [1, 0.25, 0, 0]
    assert of("bm25_rank") == pytest.approx([1 / 61, 1 / 62, 0, 0])
    assert of("dense") == [0, 1, 0, 0]
    assert of("rrf") == pytest.approx([(1 / 61 + 1 / 62) / 2] * 2 + [0, 0])
    assert np.isnan(of("rerank")).all()
    assert of("cited_by_similar") == pytest.approx([0, 0, 1, (1 / 61) / (1 / 61 + 1 / 62)])
    assert of("cited_by_closest") == of("cited_by_similar")  # two neighbours are all the closest
    assert of("cited_by_similar_count") == [0, 0, 2, 1]
    near, next_ = (1 / 61 / (1 / 61 + 1 / 62) / 2**0.5), (1 / 62 / (1 / 61 + 1 / 62) / 2**0.5)
    assert of("coupled") == pytest.approx([next_, near, 0, 0])  # both cite old: 1 / sqrt(2 * 1)
    assert of("citations") == pytest.approx([0, 0, log(3), log(2)])
    assert of("citations_3y") == of("citations")
    assert of("age") == [2, 1, 30, 10]
    assert of("author_overlap") == pytest.approx([1 / 2, 0, np.nan, 1 / 2], nan_ok=True)
    assert of("self_cited") == pytest.approx([0, 0, log(2), log(2)])  # near, by Bee, cites both
    assert of("venue_match") == pytest.approx([np.nan, np.nan, 0, 1], nan_ok=True)
    assert of("title_overlap") == pytest.approx([1 / 3, 1 / 2, 0, 1 / 2])
    assert of("no_abstract") == [1, 0, 1, 1]
    assert of("abstracts") == [1 / 4] * 4
    assert matrix.shape == (4, len(FEATURES))


def test_what_known_references_are_cited_with_joins_before_all(index: IndexFolder) -> None:
    expander = CandidateExpander(
        TemporalGraph(index, CitationScope.EARLIER), ExpandConfig(neighbours=1)
    )
    nothing = CandidateSet(hits(1), {"bm25": hits(1)})

    [alone] = expand(expander, [QUERY], eligible([QUERY], index.papers), [nothing])
    [helped] = expand(expander, [QUERY], eligible([QUERY], index.papers), [nothing], [[0]])

    assert alone.hits_by_source["expand"].rows.tolist() == [3]  # next cites old
    assert {*helped.hits_by_source["expand"].rows.tolist()} == {
        2,
        3,
    }  # near, which it cites, cites both


def test_known_references_couple_papers_that_share_them(index: IndexFolder) -> None:
    expander = CandidateExpander(TemporalGraph(index, CitationScope.EARLIER))
    [pool] = expand(expander, [QUERY], eligible([QUERY], index.papers), [FOUND])

    matrix = Features(index, expander.graph).matrix(QUERY, pool, [3])

    coupling = dict(zip(pool.rows.tolist(), column(matrix, "coupling"), strict=True))
    assert coupling == pytest.approx({0: 1 / 2**0.5, 1: 1, 3: 0, 2: 0})


def test_what_is_not_there_is_missing_and_not_zero(index: IndexFolder) -> None:
    bare = Query(id="q", title="Drawing trees", year=1960)
    _, matrix = seen(index, bare, CandidateSet(hits(6), {"bm25": hits(6)}))

    there = {name for name, value in zip(NAMES, matrix[0], strict=True) if not np.isnan(value)}
    of_text = {"title_overlap", "title_found", "no_abstract", "abstracts"}
    assert there == {"bm25", "bm25_rank", "rrf", *of_text}


def test_where_no_author_is_named_none_is_known_to_be_cited(build: Build) -> None:
    index = build([{**paper, "authors": []} for paper in CORPUS])

    _, matrix = seen(index)

    assert np.isnan(column(matrix, "author_overlap")).all()
    assert np.isnan(column(matrix, "self_cited")).all()


def test_citations_of_no_year_are_none_of_the_last_years(build: Build) -> None:
    undated = [{key: value for key, value in paper.items() if key != "year"} for paper in CORPUS]

    _, matrix = seen(build(undated), replace(QUERY, year=None))

    assert column(matrix, "citations")[:2] == pytest.approx([log(3), log(2)])  # near, next
    assert column(matrix, "citations_3y")[:2] == [0, 0]


def test_nothing_found_makes_an_empty_pool(index: IndexFolder) -> None:
    pool, matrix = seen(index, QUERY, CandidateSet(hits(), {"bm25": hits(), "dense": hits()}))

    assert not len(pool.rows)
    assert matrix.shape == (0, len(FEATURES))


def with_citations(index: IndexFolder, added: list[tuple[int, int]]) -> IndexFolder:
    graph = index.graph
    pairs = sorted({*zip(graph.citing.tolist(), graph.indices.tolist(), strict=True), *added})
    counts = np.bincount([a for a, _ in pairs], minlength=len(index.papers))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return replace(index, graph=Graph(indptr, np.array([b for _, b in pairs], np.int32)))


def test_a_future_citation_moves_no_feature_and_an_earlier_one_does(index: IndexFolder) -> None:
    def moved(citing: int, cited: int) -> bool:
        return not np.array_equal(
            seen(with_citations(index, [(citing, cited)]))[1], seen(index)[1], equal_nan=True
        )

    assert not moved(5, 2)  # of 2012
    assert not moved(4, 3)  # of the query's year
    assert not moved(6, 3)  # of no known year
    assert moved(1, 2)  # of 2009


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(added=st.lists(st.tuples(st.sampled_from([4, 5, 6]), st.integers(0, 6)), min_size=1))
def test_no_citation_of_the_querys_year_or_later_moves_anything(
    index: IndexFolder, added: list[tuple[int, int]]
) -> None:
    pool, matrix = seen(index)

    other, moved = seen(with_citations(index, added))

    assert other.rows.tolist() == pool.rows.tolist()
    assert other.hits.scores.tolist() == pool.hits.scores.tolist()
    assert np.array_equal(moved, matrix, equal_nan=True)
