"""The citation graph, held against sets."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citerec.arrays import gathered
from citerec.corpus.citedby import transposed
from citerec.corpus.graph import (
    Graph,
    GraphCounts,
    ReferenceSpill,
    open_graph,
    spill_references,
    write_graph,
)


def made(folder: Path, references: dict[str, tuple[str, ...]]) -> tuple[Graph, GraphCounts]:
    """Write the graph of papers that stand in the order of `references`."""
    rows = {docid: row for row, docid in enumerate(references)}
    with spill_references(folder / "references.tmp") as spill:
        for docid, cited in references.items():
            spill.add(rows[docid], cited)
        spill.close()
        counts = write_graph(folder / "citations", spill, rows)
    return open_graph(folder / "citations", len(rows)), counts


def test_a_small_graph_by_hand(tmp_path: Path) -> None:
    references = {
        "bert": ("gpt", "elmo", "unknown"),  # two known
        "elmo": (),
        "gpt": ("elmo", "gpt", "elmo"),  # one known, itself, one twice
    }

    graph, counts = made(tmp_path, references)

    assert counts == GraphCounts(
        citations=3, self_citations=1, repeated_references=1, unknown_references=1
    )
    assert graph.indptr.tolist() == [0, 2, 2, 3]
    assert graph.indices.tolist() == [1, 2, 1]
    assert graph.citing.tolist() == [0, 0, 2]
    assert graph.references(0).tolist() == [1, 2]
    assert graph.references(1).tolist() == []


DOCIDS = st.sampled_from("abcdefg")


@given(st.dictionaries(DOCIDS, st.lists(DOCIDS, max_size=8).map(tuple)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_graph_is_that_of_sets(tmp_path: Path, references: dict[str, tuple[str, ...]]) -> None:
    papers = list(references)
    expected = {
        citing: {cited for cited in references[citing] if cited in references and cited != citing}
        for citing in papers
    }

    graph, counts = made(tmp_path, references)

    found = {papers[row]: [papers[i] for i in graph.references(row)] for row in range(len(papers))}
    assert {citing: set(cited) for citing, cited in found.items()} == expected
    assert all(len(set(cited)) == len(cited) for cited in found.values())
    assert all((np.diff(graph.references(row)) > 0).all() for row in range(len(papers)))
    assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
    given_references = sum(len(cited) for cited in references.values())
    assert given_references == (
        counts.citations
        + counts.self_citations
        + counts.repeated_references
        + counts.unknown_references
    )


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6), most=st.integers(1, 9))
def test_of_long_lists_an_even_sample_is_gathered(sizes: list[int], most: int) -> None:
    indptr = np.cumsum([0, *sizes])
    indices = np.concatenate([np.arange(size) for size in sizes])  # place of each entry in its list
    rows = np.arange(len(sizes))[::-1]

    found, lengths = gathered(indptr, indices, rows, most)

    assert lengths.tolist() == [min(size, most) for size in sizes[::-1]]
    expected = [i * size // min(size, most) for size in sizes[::-1] for i in range(min(size, most))]
    assert found.tolist() == expected
    assert gathered(indptr, indices, rows)[1].tolist() == sizes[::-1]


def test_of_a_popular_paper_an_even_sample_of_citing_papers_is_read() -> None:
    """Row 0 is cited by the 2,500 others: of those, every fifth pair of neighbours gives two."""
    years = np.full(2501, 2000, np.int32)
    graph = Graph(np.maximum(np.arange(2502) - 1, 0), np.zeros(2500, np.int32))

    sample, [count] = transposed(graph, years).lists(np.zeros(1, np.int32))

    assert count == 1000
    assert sample[:4].tolist() == [1, 3, 6, 8]


@pytest.mark.parametrize("references", [{}, {"a": ()}, {"a": ("a", "x")}])
def test_a_corpus_without_citations_has_an_empty_graph(
    tmp_path: Path, references: dict[str, tuple[str, ...]]
) -> None:
    graph, counts = made(tmp_path, references)

    assert graph.indptr.tolist() == [0] * (len(references) + 1)
    assert len(graph.indices) == len(graph.citing) == counts.citations == 0


def test_references_are_kept_across_batches_and_their_file_is_gone_in_the_end(
    tmp_path: Path,
) -> None:
    count = 2 * ReferenceSpill.BATCH + 1
    references = {f"p{i}": (f"p{i + 1}",) for i in range(count)}

    graph, counts = made(tmp_path, references)

    assert counts.citations == count - 1  # the last cites a paper that is not there
    assert counts.unknown_references == 1
    assert graph.indices.tolist() == list(range(1, count))
    assert not (tmp_path / "references.tmp").exists()


def test_a_failed_build_leaves_no_references(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), spill_references(tmp_path / "references.tmp") as spill:
        spill.add(0, ("a",))
        raise RuntimeError

    assert list(tmp_path.iterdir()) == []
