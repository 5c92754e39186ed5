"""papers.arrow and lookup/: what goes in comes out, by row, docid, DOI, title and author."""

from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.corpora import records
from support.types import Build

from citerec.bibliography.entry import Entry, PaperList
from citerec.index.papers import (
    BATCH,
    NO_YEAR,
    Papers,
    Table,
    codes_of,
    open_lookup,
    write_papers,
)
from citerec.match.papers import listed_rows, recognise, write_tables
from citerec.types import Paper, Query, id_fault

WILD = st.builds(
    Paper,
    id=st.text(min_size=1).filter(lambda text: not id_fault(text)),
    title=st.text(),
    abstract=st.text(),
    year=st.none() | st.integers(1, 9999),
    authors=st.lists(st.text(), max_size=3).map(tuple),
    venue=st.text(),
    citations=st.lists(st.text(), max_size=3).map(tuple),
    doi=st.text(),
    url=st.text(),
    pages=st.text(),
    retracted=st.booleans(),
)


def written(folder: Path, papers: list[Paper]) -> Papers:
    with write_papers(folder / "papers.arrow") as add:
        for paper in papers:
            add(paper)
    rmtree(folder / "lookup", ignore_errors=True)  # of the example before
    write_tables(folder, Papers(folder / "papers.arrow"))
    papers = Papers(folder / "papers.arrow")
    papers.lookup = open_lookup(folder)
    return papers


@given(st.lists(WILD, max_size=5, unique_by=lambda paper: paper.id))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_wild_papers_come_back_but_for_their_citations(
    tmp_path: Path, papers: list[Paper]
) -> None:
    opened = written(tmp_path, papers)

    assert len(opened) == len(papers)
    assert [opened[row] for row in range(len(opened))] == [
        replace(paper, citations=()) for paper in papers
    ]
    assert opened.years.tolist() == [paper.year or NO_YEAR for paper in papers]
    assert opened.retracted.tolist() == [
        n for n, paper in enumerate(papers) if paper.retracted
    ]
    assert opened.ids.tolist() == [paper.id for paper in papers]
    assert opened.column("title").to_pylist() == [paper.title for paper in papers]
    assert opened.rows_of([p.id for p in papers]).tolist() == list(range(len(papers)))


@pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH])
def test_rows_are_found_across_batches(tmp_path: Path, count: int) -> None:
    papers = written(
        tmp_path,
        [
            Paper(id=f"p{i}", title=f"T{i}", retracted=i == count - 1)
            for i in range(count)
        ],
    )

    last = papers[count - 1]

    assert len(papers) == count
    assert last == Paper(id=f"p{count - 1}", title=f"T{count - 1}", retracted=True)
    assert papers.retracted.tolist() == [count - 1]
    assert papers.rows_of([last.id]).tolist() == [count - 1]
    assert papers.at([count - 1, 0, count - 1]) == {0: papers[0], count - 1: last}
    assert papers.ids_at([0, count - 1]) == ["p0", last.id]


# --- Tables

CORPUS: list[dict[str, Any]] = records(
    """
{"id": "10.1000/A", "title": "Graph Drawing: A Survey of Methods", "authors": ["Ann Bee"], "year": 2001},
{"id": "b", "title": "A survey of maps of all trees", "doi": "https://doi.org/10.1000/B", "authors": ["Dee, C.",
 "Bee, A."], "year": 2003, "citations": ["10.1000/A"]},
{"id": "c", "title": "Grâph drawing -- a survey of methods", "year": 2002, "citations": ["10.1000/A", "b"]},
{"id": "d", "title": "", "abstract": "No title.", "authors": ["?"], "year": null, "citations": ["b"]}
"""
)


def test_a_list_and_drafts_are_found_by_id_doi_and_title(build: Build) -> None:
    papers = build(CORPUS).papers
    entries = [
        Entry(ids=(i,)) for i in ("b", "10.1000/a", "doi:10.1000/b", "nobody", "10.9/x")
    ]
    titles = ["Graph drawing", "graph drawing a survey of methods", "Survey of maps of all trees",
              "A survey of all maps of tress", "Unknown"]  # fmt: skip
    entries += [Entry(title=title, year=2003, authors=("Bee, A.",)) for title in titles]
    drafts = [
        Query(id="x", title="Graph drawing, a survey of methods"),
        Query(id="y", title="Y", doi="https://doi.org/10.1000/B"),
        Query(id="z", title="Graph drawing"),
    ]

    found = listed_rows(PaperList(tuple(entries)), papers)

    assert found == [{1}, {0}, {1}, set(), set(), set(), {0, 2}, set(), set(), set()]
    assert [query.corpus_ids for query, _ in recognise(drafts, papers)] == [
        ("10.1000/A", "c"),
        ("b",),
        (),
    ]
    assert papers.rows_of(["c", "nobody", "c"]).tolist() == [2, -1, 2]


def test_two_keys_of_one_code_are_distinguished_by_their_texts(build: Build) -> None:
    index = build(CORPUS)
    papers = index.papers
    assert papers.lookup is not None
    everything = Table(np.repeat(codes_of(["c"]), 4), np.arange(4, dtype=np.int32))

    papers.lookup = replace(papers.lookup, ids=everything)

    assert papers.rows_of(["c"]).tolist() == [2]
