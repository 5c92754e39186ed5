"""Opens the file of an approximate index and checks its structure: faiss's search trusts every number in it."""

from pathlib import Path
from typing import Any

import numpy as np

from citerec.arrays import check_ends, check_range
from citerec.config import DenseKind
from citerec.index.dense.library import load

# first bytes of a file; faiss could open a hundred other kinds
BEGINS = {DenseKind.HNSW: b"IHNs", DenseKind.IVF: b"IwPQ"}
_BLOCK = 2**18  # links that are checked at once: all of them would take hundreds of megabytes


def map_approximate(path: Path, kind: DenseKind) -> Any:
    """Open an approximate index; faiss has another mapping flag for each kind.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If faiss cannot read it as an index of this kind.
    """
    with path.open("rb") as stream:
        if stream.read(4) != BEGINS[kind]:
            raise ValueError(f"faiss cannot read it as an index of the kind {kind}")
    faiss = load()
    flag = faiss.IO_FLAG_MMAP_IFC
    if kind is DenseKind.IVF:
        flag = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE
    try:
        return faiss.read_index(str(path), flag)
    except (RuntimeError, MemoryError) as error:
        raise ValueError("faiss cannot read it") from error


def check_approximate(index: Any, kind: DenseKind, rows: int) -> None:
    """Check that all references in an index stay inside it.

    Args:
        index: A faiss index.
        kind: The expected kind.
        rows: The expected number of vectors.

    Raises:
        ValueError: If one does not, or kind or sizes differ.
    """
    if kind is DenseKind.HNSW:
        _check_hnsw(index, rows)
    else:
        _check_ivf(index, rows)


def _check_hnsw(index: Any, rows: int) -> None:
    faiss, graph = load(), index.hnsw
    storage = faiss.downcast_index(index.storage)
    if not (isinstance(storage, faiss.IndexScalarQuantizer) and storage.ntotal == rows):
        raise ValueError("its graph has no vectors")
    dim, quantizer = index.d, storage.sq
    sizes = (storage.d, quantizer.d, quantizer.code_size, storage.code_size, storage.codes.size())
    if sizes != (dim, dim, dim, dim, rows * dim) or quantizer.trained.size() != 2 * dim:
        raise ValueError("its vectors have another length")
    if quantizer.qtype != faiss.ScalarQuantizer.QT_8bit:
        raise ValueError("its vectors are packed in another way")
    ends, levels = faiss.vector_to_array(graph.offsets), faiss.vector_to_array(graph.levels)
    neighbours = _mapped(graph.neighbors)
    widths = faiss.vector_to_array(graph.cum_nneighbor_per_level)
    if len(levels) != rows or len(ends) != rows + 1:
        raise ValueError("its graph is of other vectors")
    check_ends("its graph", ends, len(neighbours))
    check_ends("its graph", widths, int(widths[-1]) if len(widths) else 0)
    check_range("its graph", levels - 1, len(widths) - 1)
    if np.any(np.diff(ends.astype(np.int64)) != widths[levels]):
        raise ValueError("its graph has other levels than neighbours")
    for start in range(0, len(neighbours), _BLOCK):  # -1 stands for no neighbour
        check_range("its graph", neighbours[start : start + _BLOCK] + 1, rows + 1)
    _check_levels(neighbours, ends, levels, widths)
    entry, top = int(graph.entry_point), int(graph.max_level)
    if rows and not (0 <= entry < rows and levels[entry] == top + 1 == levels.max()):
        raise ValueError("its graph has no valid entry point")


def _mapped(vector: Any) -> Any:
    """Return the numbers of a vector of a mapped file without a copy; valid as long as its index is."""
    size = vector.size()
    return load().rev_swig_ptr(vector.data(), size) if size else np.zeros(0, np.int32)


def _check_levels(neighbours: Any, ends: Any, levels: Any, widths: Any) -> None:
    """Check that the neighbours on an upper level exist on that level."""
    for level in range(1, int(levels.max(initial=1))):
        on_level = np.flatnonzero(levels > level)
        first = ends[on_level].astype(np.int64) + int(widths[level])
        places = first[:, None] + np.arange(int(widths[level + 1] - widths[level]))
        linked = neighbours[places.ravel()]
        if np.any(levels[linked[linked >= 0]] <= level):
            raise ValueError("its graph leads to a level that does not exist")


def _check_ivf(index: Any, rows: int) -> None:
    faiss, codes = load(), index.pq
    lists, coarse = index.invlists, faiss.downcast_index(index.quantizer)
    if not isinstance(coarse, faiss.IndexFlat) or (coarse.ntotal, coarse.d) != (
        index.nlist,
        index.d,
    ):
        raise ValueError("it has no list for each of its centroids")
    if (codes.d, codes.nbits, codes.M * codes.dsub) != (index.d, 8, index.d):
        raise ValueError("its codes are of vectors of another length")
    if codes.centroids.size() != index.d * 256 or index.code_size != codes.M:
        raise ValueError("its codes are of another length")
    if (lists.nlist, lists.code_size) != (index.nlist, index.code_size):
        raise ValueError("its lists are of another index")
    seen = np.zeros(rows, np.bool_)
    for number in range(lists.nlist):
        if size := lists.list_size(number):
            ids = faiss.rev_swig_ptr(lists.get_ids(number), size)
            check_range("one of its lists", ids, rows)
            seen[ids] = True
    if not seen.all():
        raise ValueError("its lists lack a paper")
