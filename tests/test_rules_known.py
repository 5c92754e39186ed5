"""Which citations a query may know of."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from citerec.folder import IndexFolder
from citerec.rank.features import NAMES
from citerec.rank.ltr import RankedCandidates
from citerec.recommend import Recommender
from citerec.rules.eligible import eligible
from citerec.rules.known import PROTOCOL, CitationScope, GraphSnapshot, TemporalGraph
from citerec.types import Query, QueryBatch

Build = Callable[..., IndexFolder]
Paper = dict[str, Any]

CORPUS: list[Paper] = [
    {"id": "a", "title": "A", "year": 2000},
    {"id": "b", "title": "B", "year": 2001, "citations": ["a"]},
    {"id": "c", "title": "C", "year": 2005, "citations": ["a", "b"]},
    {"id": "d", "title": "D", "year": 2006, "citations": ["a"]},
    {"id": "undated", "title": "U", "citations": ["a"]},
]


@pytest.fixture
def known(build: Build) -> TemporalGraph:
    return TemporalGraph(build(CORPUS), CitationScope.EARLIER)


@pytest.fixture
def published(known: TemporalGraph) -> TemporalGraph:
    """What `recommend` knows."""
    return TemporalGraph(known.index, CitationScope.PUBLISHED)


def known_to(
    known: TemporalGraph, queries: Sequence[Query], year_max: int | None = None
) -> list[GraphSnapshot]:
    return known.snapshots(queries, eligible(queries, known.index.papers, year_max=year_max))


def test_a_query_knows_the_citations_of_earlier_papers_only(known: TemporalGraph) -> None:
    assert known.snapshot_before(2001).counts.tolist() == [0, 0, 0, 0, 0]
    assert known.snapshot_before(2001).is_empty
    assert known.snapshot_before(2005).counts.tolist() == [
        1,
        0,
        0,
        0,
        0,
    ]  # of b; of its own year c is unknown
    assert known.snapshot_before(2006).counts.tolist() == [2, 1, 0, 0, 0]  # of b and c


def test_the_last_years_are_counted_apart(known: TemporalGraph) -> None:
    assert known.snapshot_before(2007).counts.tolist() == [3, 1, 0, 0, 0]
    assert known.snapshot_before(2007).recent.tolist() == [
        2,
        1,
        0,
        0,
        0,
    ]  # of 2004 to 2006: c and d


def test_without_a_year_all_is_known_but_what_the_query_itself_cites(known: TemporalGraph) -> None:
    [snapshot] = known_to(known, [Query(id="c", title="C")])

    assert snapshot.counts.tolist() == [3, 0, 0, 0, 0]  # of b, d and the undated one
    assert snapshot.year == 2007


def test_an_id_that_we_made_up_is_no_paper_of_the_corpus(known: TemporalGraph) -> None:
    [snapshot] = known_to(known, [Query(id="c", title="C", named=False)])

    assert snapshot.counts.tolist() == [4, 1, 0, 0, 0]


def test_a_draft_that_was_recognised_in_the_corpus_does_not_know_its_own_citations(
    known: TemporalGraph,
) -> None:
    by_id = Query(id="c", title="C", year=2006)
    recognised = Query(id="query", title="C", year=2006, named=False, corpus_ids=("c",))
    twice = Query(id="my-key", title="C", year=2006, corpus_ids=("b", "c"))

    own, same, none = known_to(known, [by_id, recognised, twice])

    assert own is same
    assert own.counts.tolist() == [1, 0, 0, 0, 0]  # of b
    assert none.is_empty


def test_queries_of_one_year_share_what_they_know(known: TemporalGraph) -> None:
    first, second, other = known_to(
        known,
        [
            Query(id="x", title="X", year=2006),
            Query(id="d", title="D", year=2006),
            Query(id="y", title="Y", year=2005),
        ],
    )

    assert first is second
    assert first is not other


def test_only_train_papers_speak_where_that_is_asked(build: Build) -> None:
    papers = [
        {"id": f"p{n}", "title": "P", "year": 1990 + n, "citations": ["p0"]} for n in range(10)
    ]
    index = build(papers)  # the latest two are dev and test queries

    counted = {
        graph: int(TemporalGraph(index, graph).snapshot_before(2000).counts[0])
        for graph in PROTOCOL
    }

    assert counted == {CitationScope.TRAIN: 7, CitationScope.EARLIER: 9}


def test_the_graph_and_its_transpose_are_one(known: TemporalGraph) -> None:
    graph, papers = known.index.graph, range(len(known.index.papers))

    for cited in papers:
        citing = [paper for paper in papers if cited in graph.references(paper)]
        assert known.citers.citers(cited).tolist() == citing
    assert graph.references(2).tolist() == [0, 1]


# --- drafts of today: what `recommend` knows


def test_a_draft_knows_the_citations_of_its_own_year_and_a_paper_of_the_corpus_does_not(
    known: TemporalGraph, published: TemporalGraph
) -> None:
    draft, paper = Query(id="new", title="N", year=2005), Query(id="c", title="C", year=2005)
    recognised = Query(id="query", title="C", year=2005, named=False, corpus_ids=("c",))

    [of_draft, of_paper, of_recognised] = known_to(published, [draft, paper, recognised])

    assert of_recognised is of_paper

    assert of_draft.counts.tolist() == [2, 1, 0, 0, 0]  # of b and, of its own year, c
    assert of_paper.counts.tolist() == [1, 0, 0, 0, 0]  # of b
    [strict] = known_to(known, [draft])
    assert strict.counts.tolist() == [1, 0, 0, 0, 0]  # evaluation stays strict for drafts, too


def test_a_draft_without_a_year_knows_what_a_draft_of_the_latest_year_knows(
    published: TemporalGraph,
) -> None:
    undated, latest = known_to(
        published, [Query(id="x", title="X"), Query(id="y", title="Y", year=2006)]
    )

    assert undated.counts.tolist() == [4, 1, 0, 0, 0]  # the citations of the undated paper, too
    assert latest.counts.tolist() == [3, 1, 0, 0, 0]
    assert undated.year == latest.year == 2006  # ages count to its own year
    assert undated.recent.tolist() == latest.recent.tolist() == [2, 1, 0, 0, 0]  # 2004 to 2006


@pytest.mark.parametrize("year", [None, 2003, 2006, 2030])
@pytest.mark.parametrize("docid", ["draft", "c"])
def test_a_bound_beyond_the_query_and_all_papers_is_no_bound(
    published: TemporalGraph, docid: str, year: int | None
) -> None:
    free = year if docid == "c" or year == 2030 else None  # the bound replaces the year of a draft
    [bound] = known_to(published, [Query(id=docid, title="X", year=year)], 2100)

    [unbound] = known_to(published, [Query(id=docid, title="X", year=free)])

    assert bound is unbound


def knows(query: Query, paper: Paper, graph: CitationScope, year_max: int | None) -> bool:
    """Whether a query knows what a paper cites, by the rules as DESIGN tells them."""
    recommends, made = graph is CitationScope.PUBLISHED, paper.get("year")
    in_corpus = query.id in {other["id"] for other in CORPUS}
    if paper["id"] == query.id:
        return False
    newest = 2006
    beyond = year_max is not None and year_max > max(newest, query.year or 0)
    if beyond:  # nothing is later than year_max; a draft after all papers keeps its time
        year_max = query.year if query.year and query.year > newest else None
    if recommends and not in_corpus:  # published by the year of the draft, or by year_max
        last = query.year if year_max is None and not beyond else year_max
        return last is None or (made is not None and made <= last)
    if query.year is not None and (made is None or made >= query.year):
        return False
    return not recommends or year_max is None or (made is not None and made <= year_max)


def test_what_is_known_is_what_going_through_all_papers_finds(known: TemporalGraph) -> None:
    train = (known.index.splits / "train.ids").read_text().split()
    ids = [paper["id"] for paper in CORPUS]

    for graph in CitationScope:
        graph_known = TemporalGraph(known.index, graph)
        for docid, year, year_max in product(
            ("draft", "a", "c", "d", "undated"),
            (None, 1999, 2001, 2004, 2005, 2006, 2030),
            (None, 2000, 2005, 2006, 2040),
        ):
            query = Query(id=docid, title="T", year=year)
            [snapshot] = known_to(graph_known, [query], year_max)

            citing = [paper for paper in CORPUS if knows(query, paper, graph, year_max)]
            if graph is CitationScope.TRAIN:
                citing = [paper for paper in citing if paper["id"] in train]
            is_draft = graph is CitationScope.PUBLISHED and docid == "draft"
            unknown = snapshot.year + is_draft  # the first year whose citations are unknown
            recent = [p for p in citing if p.get("year") and p["year"] >= unknown - 3]
            for counts, papers in ((snapshot.counts, citing), (snapshot.recent, recent)):
                cited = [docid for paper in papers for docid in paper.get("citations", [])]
                assert counts.tolist() == [cited.count(docid) for docid in ids]
            assert not any(snapshot.citing & (known.index.papers.years >= unknown))


def test_a_draft_is_recommended_papers_by_citations_of_its_own_year(build: Build) -> None:
    corpus = [
        {"id": "old", "title": "Planarity", "year": 1974},
        {"id": "same", "title": "Drawing graphs", "year": 2015, "citations": ["old"]},
        *({"id": f"x{n}", "title": "Filler", "year": 2000 + n} for n in range(8)),
    ]
    recommender = Recommender(build(corpus))
    title = "Drawing graphs"

    def found(query: Query, year_max: int | None = None) -> set[str]:
        [items] = recommender.recommend([query], year_max=year_max)
        return {item.paper.id for item in items}

    assert found(Query(id="new", title=title, year=2015)) == {"old", "same"}
    assert found(Query(id="new", title=title)) == {"old", "same"}
    assert found(Query(id="new", title=title, year=2019), year_max=2015) == {"old", "same"}
    assert found(Query(id="x0", title=title, year=2015)) == {
        "same"
    }  # strict: a paper of the corpus
    assert found(Query(id="same", title=title, year=2016)) == set()  # its own list stays hidden


def test_no_age_is_negative_and_the_last_three_years_are_three(build: Build) -> None:
    corpus = [
        {"id": "cited", "title": "Graphs", "year": 2015},
        *(
            {"id": f"p{year}", "title": "Drawing graphs", "year": year, "citations": ["cited"]}
            for year in range(2015, 2020)
        ),
    ]
    recommender = Recommender(build(corpus))
    index = recommender.index

    def features(query: Query, year_max: int | None = None) -> dict[str, tuple[float, float]]:
        rules = eligible([query], index.papers, year_max=year_max)
        [one] = recommender.pipeline.all(QueryBatch([query], rules))
        assert isinstance(one, RankedCandidates)
        ages, recent = (one.matrix[:, NAMES.index(name)] for name in ("age", "citations_3y"))
        counts = np.expm1(recent).round()
        ids = index.papers.ids_at(one.matrix_rows.tolist())
        return {i: (a, c) for i, a, c in zip(ids, ages, counts, strict=True)}

    of_draft = features(Query(id="new", title="Drawing graphs", year=2018))
    beyond = features(Query(id="new", title="Drawing graphs", year=2010), year_max=2019)

    assert of_draft["cited"][1] == 3  # by p2016, p2017 and p2018
    assert of_draft["p2018"][0] == 0  # of the draft's own year
    assert of_draft["cited"][0] == 3
    assert beyond["cited"][1] == 3  # by p2017, p2018 and p2019
    assert min(age for age, _ in beyond.values()) >= 0
