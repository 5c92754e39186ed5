"""Facts of the citation graph that reasons state: checked against brute force over the graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from citerec.config import ExpandConfig
from citerec.folder import IndexFolder
from citerec.rank.expand import neighbour_scores
from citerec.rank.reasons import CitedBy, Facts, SharedReferences
from citerec.rules.known import CitationScope, TemporalGraph

PAPERS, YEAR = 60, 2012
NEIGHBOURS = [f"T{i}" for i in range(3, 43, 4)]  # of the query, closest first

References = dict[str, set[str]]  # by title


def records() -> list[dict[str, Any]]:
    """Sixty papers of 2000 to 2014, each of which cites up to eight others at random, whatever their years."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(PAPERS, rng.integers(9), replace=False) for _ in range(PAPERS)]
    return [
        {"id": f"p{i:02}", "title": f"T{i}", "year": 2000 + i // 4}
        | {"citations": [f"p{j:02}" for j in cited if j != i]}
        for i, cited in enumerate(drawn)
    ]


@pytest.fixture
def references() -> References:
    """The known references of each paper for a query of 2012."""
    return {
        record["title"]: {f"T{int(docid[1:])}" for docid in record["citations"]}
        for record in records()
        if record["year"] < YEAR
    }


@pytest.fixture
def facts(build: Callable[..., IndexFolder]) -> Facts:
    graph = TemporalGraph(build(records()), CitationScope.EARLIER)
    rows = np.array([int(title[1:]) for title in NEIGHBOURS], np.int32)
    snapshot = graph.snapshot_before(YEAR)
    scores = neighbour_scores(graph, snapshot, rows, ExpandConfig(neighbours=10))
    return Facts(graph, snapshot, scores, cited=[1, 2, 3, 4, 5])


def citing(references: References, title: str) -> set[str]:
    return {other for other, cited in references.items() if title in cited}


def test_neighbours_that_cite_a_paper_are_counted(facts: Facts, references: References) -> None:
    able = [title for title in NEIGHBOURS if references.get(title)]
    for row in range(PAPERS):
        found = [title for title in able if title in citing(references, f"T{row}")]

        expected = CitedBy(len(found), len(able), found[0]) if found else None
        assert facts.cited_by_similar(row) == expected


def closest_with_most(common: dict[str, set[str]]) -> tuple[str, set[str]]:
    most = max(map(len, common.values()))
    first = next(title for title, both in common.items() if len(both) == most)
    return first, common[first]


def test_the_neighbour_with_the_most_co_citations_is_named(
    facts: Facts, references: References
) -> None:
    stated = 0
    for row in range(PAPERS):
        own = citing(references, f"T{row}")
        common = {t: own & citing(references, t) for t in NEIGHBOURS if t != f"T{row}"}
        partner, both = closest_with_most(common)

        found = facts.co_citation(row)

        assert (found is None) == (not both)
        if found:
            stated += 1
            assert (found.partner, found.others) == (partner, len(both) - 1)
            assert found.citing in both
            assert int(found.citing[1:]) // 4 == max(int(title[1:]) // 4 for title in both)
    assert stated > 20


def test_the_neighbour_that_shares_most_references_is_named(
    facts: Facts, references: References
) -> None:
    stated = 0
    for row in range(PAPERS):
        own = references.get(f"T{row}", set())
        common = {t: own & references.get(t, set()) for t in NEIGHBOURS if t != f"T{row}"}
        first, both = closest_with_most(common)

        expected = SharedReferences(len(both), first) if both else None
        assert facts.shared_references(row) == expected
        stated += bool(both)
    assert stated > 20


def test_known_references_of_the_query_that_a_paper_cites_are_counted(
    facts: Facts, references: References
) -> None:
    for row in range(PAPERS):
        shared = references.get(f"T{row}", set()) & {"T1", "T2", "T3", "T4", "T5"}

        expected = SharedReferences(len(shared), min(shared)) if shared else None
        assert facts.own_references(row) == expected
