"""Which papers a query may be given, and which citations may be known for it."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.corpora import records
from support.types import Build

from citerec.graph.temporal import CitationScope, GraphSnapshot, TemporalGraph
from citerec.rank.expand import CandidateExpander
from citerec.rank.features import NAMES, Features
from citerec.rules.eligible import eligible, mask, query_rows
from citerec.types import CandidateSet, Hits, Query, QueryBatch

Paper = dict[str, Any]

CORPUS: list[Paper] = records(
    """
{"id": "a", "title": "A", "year": 2000},
{"id": "b", "title": "B", "year": 2001, "citations": ["a"]},
{"id": "c", "title": "C", "year": 2005, "citations": ["a", "b"]},
{"id": "d", "title": "D", "year": 2006, "citations": ["a"]},
{"id": "undated", "title": "U", "citations": ["a"]}
"""
)
ALL = np.arange(5, dtype=np.int32)


@pytest.fixture
def known(build: Build) -> TemporalGraph:
    return TemporalGraph(build(CORPUS), CitationScope.EARLIER)


def draft(year: int | None = None, docid: str = "draft", **more: Any) -> Query:
    return Query(id=docid, title="T", year=year, **more)


# --- eligible papers


@pytest.mark.parametrize(
    ("query", "rule", "expected"),
    [
        (draft(2005), {}, ["a", "b", "c", "undated"]),
        (draft(), {}, ["a", "b", "c", "d", "undated"]),
        (draft(2005, "c"), {}, ["a", "b", "undated"]),
        # a generated id
        (
            draft(2005, "c", named=False),
            {},
            ["a", "b", "c", "undated"],
        ),
        (draft(2005, named=False, corpus_ids=("undated", "c")), {}, ["a", "b"]),
        (draft(2006), {"year_max": 2004}, ["a", "b", "undated"]),
        (draft(2001), {"year_max": 2005}, ["a", "b", "c", "undated"]),
        (draft(2005), {"year_min": 2005}, ["c", "undated"]),
        (draft(2005, "c"), {"excluded": [0, 4]}, ["b"]),
    ],
)
def test_eligible_is_a_paper_that_is_not_the_query_not_later_and_not_excluded(
    known: TemporalGraph, query: Query, rule: Any, expected: list[str]
) -> None:
    papers = known.index.papers

    [one] = eligible([query], papers, **rule)

    assert papers.ids_at(np.flatnonzero(mask(one, papers.years))) == expected


def test_each_query_of_a_batch_has_its_own_rows(known: TemporalGraph) -> None:
    queries = [draft(), draft(docid="b"), draft(corpus_ids=("d", "a"))]

    assert query_rows(queries, known.index.papers) == [(), (1,), (0, 3)]


# --- known citations


def snapshots(
    graph: TemporalGraph, queries: Sequence[Query], year_max: int | None = None
) -> list[GraphSnapshot]:
    return graph.snapshots(
        queries, eligible(queries, graph.index.papers, year_max=year_max)
    )


def counts(snapshot: GraphSnapshot) -> list[int]:
    return snapshot.citations(ALL).tolist()


def test_the_own_citations_of_a_query_are_unknown(known: TemporalGraph) -> None:
    own, recognised, generated, both = snapshots(
        known,
        [
            draft(docid="c"),
            draft(named=False, corpus_ids=("c",)),
            draft(docid="c", named=False),
            draft(2006, corpus_ids=("b", "c")),
        ],
    )

    assert counts(own) == counts(recognised)
    assert counts(own) == [3, 0, 0, 0, 0]  # of b, d and the undated one
    assert own.year == 2007
    assert counts(generated) == [4, 1, 0, 0, 0]
    assert both.is_empty


def knows(
    query: Query, paper: Paper, scope: CitationScope, year_max: int | None
) -> bool:
    """Whether a query knows what a paper cites, by the rules as DESIGN states them."""
    recommends, made = scope is CitationScope.PUBLISHED, paper.get("year")
    in_corpus = query.id in {other["id"] for other in CORPUS}
    if paper["id"] == query.id:
        return False
    newest = 2006
    beyond = year_max is not None and year_max > max(newest, query.year or 0)
    # nothing is later than year_max; a draft after all papers keeps its time
    if beyond:
        year_max = query.year if query.year and query.year > newest else None
    # published by the year of the draft, or by year_max
    if recommends and not in_corpus:
        last = query.year if year_max is None and not beyond else year_max
        return last is None or (made is not None and made <= last)
    if query.year is not None and (made is None or made >= query.year):
        return False
    return not recommends or year_max is None or (made is not None and made <= year_max)


def test_snapshots_are_those_of_going_through_all_papers(known: TemporalGraph) -> None:
    train = (known.index.splits / "train.ids").read_text().split()
    ids = [paper["id"] for paper in CORPUS]

    for scope in CitationScope:
        graph = TemporalGraph(known.index, scope)
        for docid, year, year_max in product(
            ("draft", "a", "c", "d", "undated"),
            (None, 1999, 2001, 2004, 2005, 2006, 2030),
            (None, 2000, 2005, 2006, 2040),
        ):
            query = draft(year, docid)
            [snapshot] = snapshots(graph, [query], year_max)

            citing = [paper for paper in CORPUS if knows(query, paper, scope, year_max)]
            if scope is CitationScope.TRAIN:
                citing = [paper for paper in citing if paper["id"] in train]
            is_draft = scope is CitationScope.PUBLISHED and docid == "draft"
            # the first year whose citations are unknown
            unknown = snapshot.year + is_draft
            recent = [p for p in citing if p.get("year") and p["year"] >= unknown - 3]
            found = snapshot.citations(ALL), snapshot.recent_citations(ALL)
            for counted, papers in zip(found, (citing, recent), strict=True):
                cited = [
                    docid for paper in papers for docid in paper.get("citations", [])
                ]
                assert counted.tolist() == [cited.count(docid) for docid in ids]
            assert snapshot.is_empty is not any(
                paper.get("citations") for paper in citing
            )
            assert not any(
                snapshot.is_citing(ALL) & (known.index.papers.years >= unknown)
            )


def test_no_age_is_negative_and_the_last_three_years_are_three(build: Build) -> None:
    citing = [
        {
            "id": f"p{year}",
            "title": "Drawing graphs",
            "year": year,
            "citations": ["cited"],
        }
        for year in range(2015, 2020)
    ]
    graph = TemporalGraph(
        build([{"id": "cited", "title": "Graphs", "year": 2015}, *citing]),
        CitationScope.PUBLISHED,
    )
    everything = Hits(np.arange(6, dtype=np.int32), np.zeros(6, np.float32))

    def ages_and_recent(
        year: int, year_max: int | None = None
    ) -> tuple[list[float], float]:
        query = Query(id="new", title="Drawing graphs", year=year)
        batch = QueryBatch(
            [query], eligible([query], graph.index.papers, year_max=year_max)
        )
        [candidates] = CandidateExpander(graph).run(
            batch, [CandidateSet(everything, {})]
        )
        matrix = Features(graph, ("age", "citations_3y")).matrix(query, candidates)
        ages, recent = (
            matrix[:, NAMES.index(name)] for name in ("age", "citations_3y")
        )
        at_cited = candidates.rows.tolist().index(0)
        return ages.tolist(), float(np.expm1(recent[at_cited]).round())

    ages, recent = ages_and_recent(2018)
    later_ages, later_recent = ages_and_recent(2010, year_max=2019)

    assert (max(ages), min(ages)) == (3, 0)  # of `cited` and of the draft's own year
    assert recent == 3  # by p2016, p2017 and p2018
    assert later_recent == 3  # by p2017, p2018 and p2019
    assert min(later_ages) >= 0
