"""papers.arrow: what goes in comes out, by row and by docid."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.corpus.papers import BATCH, NO_YEAR, Papers, write_papers
from citerec.types import Paper, id_fault

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
)


def written(folder: Path, papers: list[Paper]) -> Papers:
    with write_papers(folder / "papers.arrow") as add:
        for paper in papers:
            add(paper)
    return Papers(folder / "papers.arrow")


@given(st.lists(WILD, max_size=5, unique_by=lambda paper: paper.id))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_wild_papers_come_back_but_for_their_citations(tmp_path: Path, papers: list[Paper]) -> None:
    opened = written(tmp_path, papers)

    assert len(opened) == len(papers)
    assert [opened[row] for row in range(len(opened))] == [
        replace(paper, citations=()) for paper in papers
    ]
    assert opened.years.tolist() == [paper.year or NO_YEAR for paper in papers]
    assert opened.ids.tolist() == [paper.id for paper in papers]
    assert list(opened.titles()) == [paper.title for paper in papers]
    assert opened.rows_of([p.id for p in papers]).tolist() == list(range(len(papers)))


@pytest.mark.parametrize("count", [BATCH - 1, BATCH, BATCH + 1, 2 * BATCH])
def test_rows_are_found_across_batches(tmp_path: Path, count: int) -> None:
    papers = written(tmp_path, [Paper(id=f"p{i}", title=f"T{i}") for i in range(count)])

    last = papers[count - 1]

    assert len(papers) == count
    assert last == Paper(id=f"p{count - 1}", title=f"T{count - 1}")
    assert papers.rows_of([last.id]).tolist() == [count - 1]
    assert papers.at([count - 1, 0, count - 1]) == {0: papers[0], count - 1: last}
    assert papers.ids_at([0, count - 1]) == ["p0", last.id]


def test_docids_are_looked_up_in_any_order_and_more_than_once(tmp_path: Path) -> None:
    papers = written(tmp_path, [Paper(id=i, title="") for i in ("a", "b", "c")])

    assert papers.rows_of(["c", "nobody", "a", "c"]).tolist() == [2, -1, 0, 2]
    assert papers.rows_of([]).shape == (0,)


def test_no_papers_are_read_for_no_rows(tmp_path: Path) -> None:
    assert written(tmp_path, [Paper(id="a", title="")]).at([]) == {}


def test_half_a_surrogate_pair_is_the_docid_of_nothing(tmp_path: Path) -> None:
    papers = written(tmp_path, [Paper(id="?", title=""), Paper(id="\ufffd", title="")])

    assert papers.rows_of(["\udcff", "?"]).tolist() == [-1, 0]


def test_nothing_but_whole_batches_is_in_memory_at_once(tmp_path: Path) -> None:
    with write_papers(tmp_path / "papers.arrow") as add:
        for i in range(BATCH):
            add(Paper(id=str(i), title="x" * 100))

        assert (tmp_path / "papers.arrow").stat().st_size > BATCH * 100
