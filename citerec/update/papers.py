"""Writes `papers.arrow` and `id_rank.npy` of an index that changes: bytes are copied, nothing is parsed."""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.corpus.papers import BATCH, SCHEMA, Papers, as_rows, strings
from citerec.folder import ID_RANK, PAPERS, IndexFolder
from citerec.update.delta import Delta


def rewrite_papers(folder: Path, index: IndexFolder, new: Papers | None, delta: Delta) -> None:
    """Write the papers that stay and those that are added.

    Args:
        folder: Receives `papers.arrow`.
        index: The old index.
        new: The added papers; None if there are none.
        delta: Which papers stay, and in which order the added ones follow.
    """
    with (
        pa.OSFile(str(folder / PAPERS), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA) as writer,
    ):
        for batch in _in_batches(_selected(index.papers, new, delta)):
            writer.write_batch(batch)


def rewrite_id_rank(folder: Path, index: IndexFolder, new: Papers | None, delta: Delta) -> None:
    """Write the rank of each row's id: the order of the papers that stay is known, the others are inserted into it."""
    by_rank = np.empty(len(index.id_rank), np.int32)
    by_rank[index.id_rank] = np.arange(len(by_rank), dtype=np.int32)
    stay = by_rank[delta.kept[by_rank]]
    docids = new.ids_at(delta.order) if new else []
    added = sorted(range(len(docids)), key=docids.__getitem__)

    column = index.papers.column("id")

    def docid_at(row: np.int32) -> str:
        return column[int(row)].as_py()

    places = [bisect_left(stay, docids[i], key=docid_at) for i in added]
    rows = np.insert(delta.new_row[stay], places, delta.first_added + np.array(added, np.int32))
    rank = np.empty(delta.papers, np.int32)
    rank[rows] = np.arange(delta.papers, dtype=np.int32)
    np.save(folder / ID_RANK, rank)


def _selected(old: Papers, new: Papers | None, delta: Delta) -> Iterator[Any]:
    """Yield the papers of the new index, as batches of any length."""
    for number, batch in enumerate(old.batches()):
        kept = delta.kept[number * BATCH : number * BATCH + len(batch)]
        yield batch if kept.all() else batch.take(_rows(np.flatnonzero(kept)))
    if new is not None:
        table = pa.Table.from_batches([_completed(batch) for batch in new.batches()], SCHEMA)
        for start in range(0, len(delta.order), BATCH):
            chosen = table.take(_rows(delta.order[start : start + BATCH]))
            yield from chosen.combine_chunks().to_batches()


def _in_batches(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the papers again, in batches of `BATCH`; the last one may be shorter."""
    waiting: list[Any] = []
    count = 0
    for part in parts:
        waiting.append(_completed(part))
        count += len(part)
        if count >= BATCH:
            joined = waiting[0] if len(waiting) == 1 else pa.concat_batches(waiting)
            full = count - count % BATCH
            for start in range(0, full, BATCH):
                yield joined.slice(start, BATCH)
            waiting, count = [joined.slice(full)] if full < count else [], count - full
    if count:
        yield pa.concat_batches(waiting)


def _completed(batch: Any) -> Any:
    """Add the columns that an index of an earlier version lacks."""
    if batch.schema.names == SCHEMA.names:
        return batch
    empty = strings([""] * len(batch))
    names = batch.schema.names
    columns = [batch[name] if name in names else empty for name in SCHEMA.names]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _rows(rows: npt.NDArray[Any]) -> Any:
    return as_rows(rows.tolist())
