"""The citation graph, held against sets."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
