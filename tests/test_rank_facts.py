"""Facts of the citation graph that reasons state: checked against brute force over the graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from citerec.config import ExpandConfig
from citerec.folder import IndexFolder
from citerec.rank.expand import neighbour_scores
from citerec.rank.reasons import CitedBy, CoCitation, Facts, SharedReferences
from citerec.rules.known import CitationScope, TemporalGraph

Build = Callable[..., IndexFolder]

PAPERS, YEAR = 60, 2012


def records() -> list[dict[str, Any]]:
    """Sixty papers of 2000 to 2014, each of which cites up to eight others at random, whatever their years."""
    rng = np.random.default_rng(0)
    return [
        {
            "id": f"p{i:02}",
            "title": f"T{i}",
            "year": 2000 + i // 4,
            "citations": [
                f"p{j:02}" for j in rng.choice(PAPERS, rng.integers(9), replace=False) if j != i
            ],
        }
        for i in range(PAPERS)
    ]


@pytest.fixture
def index(build: Build) -> IndexFolder:
    return build(records())


@pytest.fixture
def references() -> dict[str, set[str]]:
    """What the papers that a query of 2012 may know of cite, by title."""
    return {
        record["title"]: {f"T{int(docid[1:])}" for docid in record["citations"]}
        for record in records()
        if record["year"] < YEAR
    }


@pytest.fixture
def neighbours() -> list[str]:
    """Titles of the papers that the query is like, closest first."""
    return [f"T{i}" for i in range(3, 43, 4)]


@pytest.fixture
def facts(index: IndexFolder, neighbours: list[str]) -> Facts:
    known = TemporalGraph(index, CitationScope.EARLIER)
    rows = np.array([int(title[1:]) for title in neighbours], np.int32)
    snapshot = known.snapshot_before(YEAR)
    [found] = neighbour_scores(known, snapshot, [rows], ExpandConfig(neighbours=10))
    return Facts(known, snapshot, found, cited=[1, 2, 3, 4, 5])


def citing(references: dict[str, set[str]], title: str) -> set[str]:
    return {other for other, cited in references.items() if title in cited}


def test_who_cites_a_paper_is_counted_as_brute_force_does(
    facts: Facts, references: dict[str, set[str]], neighbours: list[str]
) -> None:
    able = [title for title in neighbours if references.get(title)]
    for row in range(PAPERS):
        mine = [title for title in able if title in citing(references, f"T{row}")]

        expected = CitedBy(len(mine), len(able), mine[0]) if mine else None
        assert facts.cited_by_similar(row) == expected


def test_with_which_close_paper_it_is_cited_most_is_what_brute_force_says(
    facts: Facts, references: dict[str, set[str]], neighbours: list[str]
) -> None:
    stated = 0
    for row in range(PAPERS):
        mine = citing(references, f"T{row}")
        common = {t: mine & citing(references, t) for t in neighbours if t != f"T{row}"}
        most = max(map(len, common.values()))

        found = facts.co_citation(row)

        if not most:
            assert found is None
            continue
        stated += 1
        first = next(title for title in neighbours if len(common.get(title, ())) == most)
        newest = max(int(title[1:]) // 4 for title in common[first])
        assert isinstance(found, CoCitation)
        assert (found.partner, found.others) == (first, most - 1)
        assert found.citing in common[first]
        assert int(found.citing[1:]) // 4 == newest
    assert stated > 20


def test_with_which_close_paper_it_shares_most_references_is_what_brute_force_says(
    facts: Facts, references: dict[str, set[str]], neighbours: list[str]
) -> None:
    stated = 0
    for row in range(PAPERS):
        mine = references.get(f"T{row}", set())
        common = {t: mine & references.get(t, set()) for t in neighbours if t != f"T{row}"}
        most = max(map(len, common.values()))
        first = next((t for t in neighbours if len(common.get(t, ())) == most), "")

        assert facts.shared_references(row) == (SharedReferences(most, first) if most else None)
        stated += most > 0
    assert stated > 20


def test_which_of_the_drafts_own_references_it_cites_is_counted(
    facts: Facts, references: dict[str, set[str]]
) -> None:
    for row in range(PAPERS):
        mine = references.get(f"T{row}", set()) & {"T1", "T2", "T3", "T4", "T5"}

        expected = SharedReferences(len(mine), min(mine)) if mine else None
        assert facts.own_references(row) == expected
