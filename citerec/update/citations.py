"""Writes the citation graph of an index that changes.

Citations of removed papers become references outside the corpus, and references to papers that are added become
citations.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.corpus.columns import numbers
from citerec.corpus.graph import Graph, GraphCounts, counts_of, save_graph
from citerec.corpus.outside import (
    OUTSIDE,
    SCHEMA,
    UNKNOWN,
    OutsideWriter,
    classify,
    outside_batches,
    write_outside,
)
from citerec.corpus.papers import as_rows, compute, strings
from citerec.folder import CITATIONS, IndexFolder
from citerec.update.added import Added
from citerec.update.delta import Delta

Rows = npt.NDArray[np.int32]
Edges = tuple[Rows, Rows]  # citing and cited rows of the new index, of the same shape


def rewrite_citations(
    folder: Path, index: IndexFolder, added: Added, delta: Delta
) -> tuple[GraphCounts, int]:
    """Write the citations of the new index.

    Args:
        folder: Receives `citations/`.
        index: The old index.
        added: The added papers.
        delta: Which papers stay, go and come.

    Returns:
        The counts, and how many papers state references.
    """
    new_rows = _rows_of_added(added, delta)
    old = index.graph
    citing = old.citing
    stays, target = delta.kept[citing], delta.new_row[old.indices]
    inside = stays & (target >= 0)
    edges = [(delta.new_row[citing[inside]], target[inside])]
    with write_outside(folder / CITATIONS) as outside:
        edges.extend(_resolved(index, delta, new_rows, outside))
        _add_removed(index, outside, delta, stays & (target < 0))
        edges.extend(_of_added(index, added, delta, new_rows, outside))
        outside.flush()
        states = np.zeros(delta.papers, np.bool_)
        graph = _graph(edges, delta.papers)
        save_graph(folder / CITATIONS, graph.indptr, graph.indices)
        counts = counts_of(len(graph.indices), outside)
    states[np.diff(graph.indptr) > 0] = True
    for batch in outside_batches(folder / CITATIONS):
        states[numbers(batch["row"])] = True
    if not (index.path / CITATIONS / OUTSIDE).is_file():  # what is missing stays missing
        (folder / CITATIONS / OUTSIDE).unlink()
    return counts, int(np.count_nonzero(states))


def _rows_of_added(added: Added, delta: Delta) -> dict[str, int]:
    """Return the row of each added paper in the new index, by its id."""
    ids = added.papers.ids_at(delta.order) if added.papers else []
    return {docid: delta.first_added + i for i, docid in enumerate(ids)}


def _resolved(
    index: IndexFolder, delta: Delta, new_rows: dict[str, int], outside: OutsideWriter
) -> Iterator[Edges]:
    """Yield the citations of added papers by those that stay; the other references stay outside."""
    ids = list(new_rows)
    rows, values = np.array([*new_rows.values()], np.int32), strings(ids)
    for batch in outside_batches(index.path / CITATIONS):
        citing = numbers(batch["row"])
        place = numbers(compute.index_in(batch["id"], value_set=values), missing=-1)
        stays = delta.kept[citing]
        known = stays & (place >= 0) & (numbers(batch["kind"]) == UNKNOWN)
        yield delta.new_row[citing[known]], rows[place[known]]
        left = batch.take(as_rows(np.flatnonzero(stays & ~known).tolist()))
        moved = as_rows(delta.new_row[numbers(left["row"])].tolist())
        columns = [moved, left["id"], left["kind"]]
        outside.add_batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))


def _add_removed(
    index: IndexFolder, outside: OutsideWriter, delta: Delta, gone: npt.NDArray[np.bool_]
) -> None:
    """Add the references of papers that stay to papers that are removed."""
    citing, cited = index.graph.citing[gone], index.graph.indices[gone]
    rows = np.unique(cited)
    docids = dict(zip(rows.tolist(), index.papers.ids_at(rows), strict=True))
    for row, target in zip(delta.new_row[citing].tolist(), cited.tolist(), strict=True):
        outside.add(row, docids[target], UNKNOWN)


def _of_added(
    index: IndexFolder,
    added: Added,
    delta: Delta,
    new_rows: dict[str, int],
    outside: OutsideWriter,
) -> Iterator[Edges]:
    """Yield the citations of the added papers; their other references are added to those outside."""
    ids = list(added.rows)
    stated = [(docid, r) for row, r in added.stated() if (docid := ids[row]) in new_rows]
    requested = sorted({reference for _, references in stated for reference in references})
    found = index.papers.rows_of(requested)
    known = {
        docid: int(delta.new_row[row])
        for docid, row in zip(requested, found.tolist(), strict=True)
        if row >= 0 and delta.new_row[row] >= 0
    } | new_rows
    citing: list[int] = []
    cited: list[int] = []
    for docid, references in stated:
        inside, others = classify(docid, references, known)
        citing += [new_rows[docid]] * len(inside)
        cited += [known[reference] for reference in inside]
        for reference, kind in others:
            outside.add(new_rows[docid], reference, kind)
    yield np.array(citing, np.int32), np.array(cited, np.int32)


def _graph(edges: list[Any], papers: int) -> Graph:
    """Return the graph of some citations, which are distinct and in any order."""
    citing = np.concatenate([rows for rows, _ in edges])
    cited = np.concatenate([rows for _, rows in edges])
    keys = np.sort(citing.astype(np.int64) * papers + cited, kind="stable")
    indptr = np.zeros(papers + 1, np.int64)
    np.cumsum(np.bincount(citing, minlength=papers), out=indptr[1:])
    return Graph(indptr, (keys % papers).astype(np.int32))
