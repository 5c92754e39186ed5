"""Facts of the citation graph that reasons state: checked against brute force over the graph."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.types import Build

from citerec.graph.temporal import CitationScope, TemporalGraph
from citerec.rank.expand import neighbour_scores
from citerec.rank.reasons import Facts

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


OWN = ["T1", "T2", "T3", "T4", "T5"]  # references of the query


@pytest.fixture
def facts_of(build: Build) -> Callable[[list[int]], Facts]:
    graph = TemporalGraph(build(records()), CitationScope.EARLIER)
    rows = np.array([int(title[1:]) for title in NEIGHBOURS], np.int32)
    snapshot = graph.snapshot_before(YEAR)
    scores = neighbour_scores(snapshot, rows, 10)
    return lambda cited: Facts(snapshot, scores, cited)


@pytest.fixture
def facts(facts_of: Callable[[list[int]], Facts]) -> Facts:
    return facts_of([])


def citing(references: References, title: str) -> set[str]:
    return {other for other, cited in references.items() if title in cited}


def test_neighbours_that_cite_a_paper_are_counted(
    facts: Facts, references: References
) -> None:
    able = [title for title in NEIGHBOURS if references.get(title)]
    for row in range(PAPERS):
        found = [title for title in able if title in citing(references, f"T{row}")]

        such_as = "," if len(found) == 1 else ", such as"
        text = (
            f"cited by {len(found)} of the {len(able)} papers most like yours{such_as} "
        )
        assert facts.cited_by_similar(row) == (f'{text}"{found[0]}"' if found else "")


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

        text = facts.co_cited(row)

        assert bool(text) == bool(both)
        if text:
            stated += 1
            named, newest = re.findall(r'"(\w+)"', text)
            assert (named, newest in both) == (partner, True)
            assert int(newest[1:]) // 4 == max(int(title[1:]) // 4 for title in both)
            assert re.findall(r" and (\d+)", text) == [
                str(n) for n in [len(both) - 1] if n
            ]
    assert stated > 20


def test_shared_references_are_counted(facts: Facts, references: References) -> None:
    stated = 0
    for row in range(PAPERS):
        own = references.get(f"T{row}", set())
        common = {
            t: own & references.get(t, set()) for t in NEIGHBOURS if t != f"T{row}"
        }
        first, both = closest_with_most(common)

        what = "the same paper" if len(both) == 1 else f"the same {len(both)} papers"
        assert facts.coupled(row) == (f'cites {what} as "{first}"' if both else "")
        stated += bool(both)
    assert stated > 20


def test_references_of_the_query_are_named_first(
    facts_of: Callable[[list[int]], Facts], references: References
) -> None:
    stated, facts = 0, facts_of([1, 2, 3, 4, 5])
    for row in {*range(PAPERS)} - {1, 2, 3, 4, 5}:
        own, cited_by = references.get(f"T{row}", set()), citing(references, f"T{row}")
        known = own & {*OWN}
        what = (
            "1 paper that you cite,"
            if len(known) == 1
            else f"{len(known)} papers that you cite,"
        )
        text = facts.coupling(row)
        assert text.startswith(f"cites {what}") if known else not text
        assert text.endswith(f'"{min(known)}"') if known else True

        first, both = closest_with_most(
            {t: cited_by & citing(references, t) for t in OWN}
        )
        said = f'cited together with your reference "{first}" by '
        assert (
            facts.co_cited(row).startswith(said)
            if both
            else said not in facts.co_cited(row)
        )

        first, shared = closest_with_most(
            {t: own & references.get(t, set()) for t in OWN}
        )
        said = f' as your reference "{first}"'
        assert (
            facts.coupled(row).endswith(said)
            if shared
            else said not in facts.coupled(row)
        )
        stated += bool(both) and bool(shared)
    assert stated > 10
