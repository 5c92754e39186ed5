"""The citation graph and its transpose, held against sets."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from citerec.index.graph import (
    REFERENCES,
    STATED,
    Graph,
    gathered,
    open_graph,
    write_graph,
    write_references,
)
from citerec.index.papers import BATCH, NO_YEAR, open_table


def made(
    folder: Path, references: dict[str, tuple[str, ...]], years: list[int] | None = None
) -> tuple[Graph, dict[str, int]]:
    """Write the graph of papers that stand in the order of `references`."""
    rows = {docid: row for row, docid in enumerate(references)}
    with write_references(folder) as add:
        for docid, cited in references.items():
            add(rows[docid], cited)
    counts = write_graph(folder, rows, years or [NO_YEAR] * len(rows))
    return open_graph(folder, len(rows)), counts


DOCIDS = st.sampled_from("abcdefg")


@given(
    st.dictionaries(DOCIDS, st.lists(DOCIDS, max_size=8).map(tuple)),
    st.lists(st.sampled_from([NO_YEAR, 1999, 2000, 2001]), min_size=7, max_size=7),
    st.integers(1998, 2003),
)
@example({"a": ("b", "b", "a", "x"), "b": ()}, [2000] * 7, 2001)
@example({}, [2000] * 7, 2000)
@example({"a": ("a", "x")}, [2000] * 7, 2000)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_graph_is_that_of_sets(
    tmp_path: Path, references: dict[str, tuple[str, ...]], years: list[int], year: int
) -> None:
    papers = list(references)
    expected = [
        sorted(
            {
                papers.index(c)
                for c in references[citing]
                if c in references and c != citing
            }
        )
        for citing in papers
    ]

    graph, counts = made(tmp_path, references, years[: len(papers)])

    rows = range(len(papers))
    assert [graph.references(row).tolist() for row in rows] == expected
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    assert graph.citing.tolist() == [row for row in rows for _ in expected[row]]
    assert sum(map(len, references.values())) == sum(counts.values())
    assert counts["citations"] == sum(map(len, expected))
    kept = [
        (row, [*references[citing]])
        for row, citing in enumerate(papers)
        if references[citing]
    ]
    table = open_table(tmp_path / REFERENCES, STATED)
    assert [(row["row"], row["references"]) for row in table.to_pylist()] == kept
    assert graph.transpose is not None
    citers = [[row for row in rows if cited in expected[row]] for cited in rows]
    assert [graph.cited_by(row).tolist() for row in rows] == citers
    earlier = [sum(NO_YEAR < years[row] < year for row in citing) for citing in citers]
    assert graph.transpose.counts(np.array(rows, np.int32), year).tolist() == earlier
    every = graph.transpose.counts(np.array(rows, np.int32), None).tolist()
    assert every == graph.citation_counts().tolist() == [*map(len, citers)]


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6), most=st.integers(1, 9)
)
def test_of_long_lists_an_even_sample_is_gathered(sizes: list[int], most: int) -> None:
    indptr = np.cumsum([0, *sizes])
    # place of each entry in its list
    indices = np.array([*chain(*map(range, sizes))], np.int32)
    rows = np.arange(len(sizes))[::-1]

    sample, lengths = gathered(indptr, indices, rows, most)

    assert lengths.tolist() == [min(size, most) for size in sizes[::-1]]
    expected = [
        i * size // min(size, most)
        for size in sizes[::-1]
        for i in range(min(size, most))
    ]
    assert sample.tolist() == expected
    assert gathered(indptr, indices, rows)[1].tolist() == sizes[::-1]


def test_of_a_popular_paper_an_even_sample_of_citing_papers_is_read() -> None:
    """Row 0 is cited by the 2,500 others: of those, every fifth pair of neighbours gives two."""
    years = np.full(2501, 2000, np.int32)
    graph = Graph(np.maximum(np.arange(2502) - 1, 0), np.zeros(2500, np.int32))

    sample, [count] = graph.transposed(years).sampled(np.zeros(1, np.int32))

    assert count == 1000
    assert sample[:4].tolist() == [1, 3, 6, 8]


def test_references_are_kept_across_batches(tmp_path: Path) -> None:
    count = 2 * BATCH + 1

    graph, counts = made(tmp_path, {f"p{i}": (f"p{i + 1}",) for i in range(count)})

    assert counts["citations"] == count - 1  # the last cites a paper that is not there
    assert counts["unknown_references"] == 1
    assert graph.indices.tolist() == list(range(1, count))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("indptr.npy", np.array([0, 2, 1, 2])),
        ("indices.npy", np.array([2, 1], np.int32)),
        ("indices.npy", np.array([1.0, 2.0])),
        ("cited_by_years.npy", np.zeros(3, np.int16)),
    ],
)
def test_an_array_that_is_no_part_of_a_graph_is_refused(
    tmp_path: Path, name: str, content: np.ndarray
) -> None:
    made(tmp_path, {"a": ("b", "c"), "b": (), "c": ()})
    np.save(tmp_path / name, content)

    with pytest.raises(ValueError, match=name):
        open_graph(tmp_path, 3)
