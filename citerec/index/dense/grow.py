"""Writes the vectors of an index that changes: exact ones are copied; approximate indexes get the new ones added."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import OutputError, writing
from citerec.index.dense import rounded
from citerec.index.dense.flat import map_flat
from citerec.index.dense.library import NAME, Vectors, load, on_threads
from citerec.index.dense.write import write_dense
from citerec.types import Progress

_AT_ONCE = 4096  # vectors that are copied at once

Shards = Callable[[], Iterator[Vectors]]


def grow_dense(
    old: Path,
    folder: Path,
    settings: Mapping[str, Any],
    old_rows: npt.NDArray[np.int32],
    added: Shards,
    *,
    rows: int,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the vectors of the new index into `folder`.

    An approximate index keeps its parameters, its training and its measured recall. HNSW has no way to remove a vector:
    its graph is then built again from the compressed vectors.

    Args:
        old: The folder of the old vectors.
        folder: The folder of the new ones.
        settings: The settings of the old vectors in the manifest.
        old_rows: The old row of each of the first new rows, shape (n,).
        added: Opens the vectors of the rows that follow.
        rows: The number of vectors of the new index.
        threads: For faiss; 0 for its own choice.
        progress: Receives the step, and how many vectors of how many are done.

    Returns:
        The settings of the new vectors.

    Raises:
        ModelError: If a vector is not finite, or not of unit length although compared by cosine.
        OutputError: If the file cannot be written.
    """
    kind, similarity = DenseKind(settings["kind"]), Similarity(settings["similarity"])
    dim = int(settings["dim"])
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    if kind is DenseKind.EXACT:
        raw = map_flat(old / NAME, rows=int(settings["papers"]), dim=dim, similarity=similarity)

        def shards() -> Iterator[Vectors]:
            for start in range(0, len(old_rows), _AT_ONCE):
                yield raw[old_rows[start : start + _AT_ONCE]].view(np.float32)
            yield from added()

        exact = DenseIndexConfig(kind=kind, threads=threads)
        shape: dict[str, Any] = {"rows": rows, "dim": dim, "similarity": similarity}
        return write_dense(folder, shards, **shape, config=exact, progress=progress)
    with on_threads(threads):
        _grow_approximate(old / NAME, folder / NAME, kind, settings, old_rows, added)
    size = (folder / NAME).stat().st_size
    return {**settings, "papers": rows, "bytes": size, "faiss": load().__version__}


def add_rounded(folder: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Write the rounded vectors if an earlier version wrote an exact index without them; return the settings.

    Args:
        folder: The folder of the vectors.
        settings: Their settings in the manifest.

    Raises:
        OutputError: If a file cannot be written.
    """
    rows, dim = int(settings["papers"]), int(settings["dim"])
    is_exact = DenseKind(settings["kind"]) is DenseKind.EXACT
    if not is_exact or rows < rounded.FROM or settings.get("rounded"):
        return {**settings}
    raw = map_flat(folder / NAME, rows=rows, dim=dim, similarity=Similarity(settings["similarity"]))
    starts = range(0, rows, _AT_ONCE)
    blocks = ((start, raw[start : start + _AT_ONCE].view(np.float32)) for start in starts)
    with rounded.RoundedWriter(folder, rows=rows, dim=dim) as writer:
        for _ in writer.through(blocks):
            pass
    return {**settings, "rounded": True}


def _grow_approximate(
    old: Path,
    new: Path,
    kind: DenseKind,
    settings: Mapping[str, Any],
    old_rows: npt.NDArray[np.int32],
    added: Shards,
) -> None:
    faiss = load()
    index = faiss.read_index(str(old))
    if not np.array_equal(old_rows, np.arange(index.ntotal)):
        select = _selected_hnsw if kind is DenseKind.HNSW else _selected_ivf
        index = select(index, old_rows, settings)
    for shard in added():
        index.add(np.ascontiguousarray(shard, np.float32))
    try:
        faiss.write_index(index, str(new))
    except RuntimeError as error:
        raise OutputError(f"cannot write {new}; is there space on the disk?") from error


def _selected_hnsw(index: Any, old_rows: npt.NDArray[np.int32], settings: Mapping[str, Any]) -> Any:
    """Build a graph over some of the vectors; their codes stay as they are."""
    faiss = load()
    links = int(settings["made"]["m"])
    new = faiss.IndexHNSWSQ(index.d, faiss.ScalarQuantizer.QT_8bit, links, index.metric_type)
    new.hnsw.efConstruction = index.hnsw.efConstruction
    source, target = (faiss.downcast_index(i.storage) for i in (index, new))
    trained = faiss.vector_to_array(source.sq.trained)
    faiss.copy_array_to_vector(trained, target.sq.trained)
    new.is_trained = target.is_trained = True
    for start in range(0, len(old_rows), _AT_ONCE):
        keys = old_rows[start : start + _AT_ONCE].astype(np.int64)
        new.add(source.reconstruct_batch(keys))
    return new


def _selected_ivf(index: Any, old_rows: npt.NDArray[np.int32], _: Mapping[str, Any]) -> Any:
    """Keep some of the vectors, under new numbers."""
    faiss = load()
    numbers = np.full(index.ntotal, -1, np.int64)
    numbers[old_rows] = np.arange(len(old_rows))
    old, new = index.invlists, faiss.ArrayInvertedLists(index.nlist, index.code_size)
    for number in range(index.nlist):
        size = old.list_size(number)
        if not size:
            continue
        ids = numbers[faiss.rev_swig_ptr(old.get_ids(number), size)]
        codes = faiss.rev_swig_ptr(old.get_codes(number), size * index.code_size)
        keep = ids >= 0
        ids, kept = ids[keep], np.ascontiguousarray(codes.reshape(size, -1)[keep])
        if len(ids):
            new.add_entries(number, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(kept))
    index.replace_invlists(new, True)
    new.this.disown()  # it belongs to the index now
    index.ntotal = len(old_rows)
    return index
