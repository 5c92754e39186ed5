"""The file of an exact index: a faiss flat index, written as a stream and memory-mapped.

The file is a header followed by the vectors. faiss itself can only write it from memory.
"""

import mmap
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.errors import OutputError, writing
from citerec.index.dense.library import Vectors, load, metric_of
from citerec.index.dense.scan import Blocks

_ROWS = slice(8, 16)  # in the header: after the kind and the dimensions, 4 bytes each
_FLOATS = slice(-8, None)  # in the header: the count of the numbers that follow


def write_flat(path: Path, blocks: Blocks, *, rows: int, dim: int, similarity: Similarity) -> None:
    """Write vectors as a faiss flat index, one block in memory at a time.

    Raises:
        OutputError: If it cannot be written, or faiss reads other vectors from it than were written.
    """
    ends: dict[int, Vectors] = {}  # the first and the last vector, by row
    with writing(path), path.open("wb") as stream:
        stream.write(_header(rows, dim, similarity))
        for first, block in blocks:
            stream.write(np.ascontiguousarray(block, "<f4").tobytes())
            ends |= {
                row: block[row - first].copy()
                for row in (0, rows - 1)
                if _contains(first, block, row)
            }
    _check(path, ends, rows, dim, similarity)


def map_flat(path: Path, *, rows: int, dim: int, similarity: Similarity) -> npt.NDArray[np.uint8]:
    """Map the vectors of a flat index, shape (rows, 4 * dim): as bytes, since they are not aligned.

    Raises:
        ValueError: If the file is not a flat index of so many vectors.
        OSError: If it cannot be read.
    """
    header = _header(rows, dim, similarity)
    with path.open("rb") as stream:
        header_read = stream.read(len(header))
    expected = len(header) + 4 * rows * dim
    if header_read != header or path.stat().st_size != expected:
        raise ValueError(f"it is not a flat index of {rows} vectors of {dim} dimensions")
    if not rows:
        return np.zeros((0, 4 * dim), np.uint8)
    return np.memmap(path, np.uint8, "r", offset=len(header), shape=(rows, 4 * dim))


def unmap_pages(raw: npt.NDArray[np.uint8]) -> None:
    """Take the pages of a mapped file out of the memory of this process; the system's file cache may keep them.

    It has no effect where the platform offers no such call.

    Args:
        raw: What `map_flat` returned.
    """
    mapped = getattr(raw, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class FlatFile:
    """Reads some vectors of a flat index without its map.

    For each page of a map that is read, the system maps its neighbours, too: reading a few vectors of many papers
    would add far more to the memory of the process than they take.
    """

    def __init__(self, path: Path, *, rows: int, dim: int, similarity: Similarity) -> None:
        """Open the file, which stays open even if it is replaced.

        Raises:
            ValueError: If it is not as long as so many vectors.
            OSError: If it cannot be read.
        """
        self._path, self._vector_bytes = path, 4 * dim
        self._offset = len(_header(rows, dim, similarity))
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        weakref.finalize(self, os.close, self._descriptor)
        if os.fstat(self._descriptor).st_size != self._offset + rows * self._vector_bytes:
            raise ValueError(f"it is not a flat index of {rows} vectors of {dim} dimensions")

    @staticmethod
    def is_supported() -> bool:
        """Whether the platform reads at a position, so that threads do not disturb each other."""
        return hasattr(os, "preadv")

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some rows, shape (len(rows), dim).

        Raises:
            OSError: If they cannot be read, as where the file became shorter after it was opened.
        """
        found = np.empty((len(rows), self._vector_bytes), np.uint8)
        for vector, row in zip(found, rows.tolist(), strict=True):
            self._read(vector.data, self._offset + row * self._vector_bytes)
        return found.view(np.float32)

    def _read(self, vector: memoryview, position: int) -> None:
        """Fill `vector` with the bytes from `position` on; a read may return fewer bytes than fit."""
        done = 0
        while done < len(vector):
            count = os.preadv(self._descriptor, (vector[done:],), position + done)
            if not count:
                raise OSError(f"{self._path.name} became shorter after it was opened")
            done += count


def _header(rows: int, dim: int, similarity: Similarity) -> bytes:
    """Return the bytes before the vectors: the header of an empty index with the counts replaced."""
    faiss = load()
    empty = faiss.IndexFlat(dim, metric_of(similarity))
    header = bytearray(faiss.serialize_index(empty).tobytes())
    header[_ROWS] = rows.to_bytes(8, "little")
    header[_FLOATS] = (rows * dim).to_bytes(8, "little")
    return bytes(header)


def _contains(first: int, block: Vectors, row: int) -> bool:
    return first <= row < first + len(block)


def _check(
    path: Path, ends: dict[int, Vectors], rows: int, dim: int, similarity: Similarity
) -> None:
    """Check that faiss reads the file as written: another version of faiss may have another layout."""
    faiss = load()
    try:
        index: Any = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise _unreadable(path) from error
    same = (index.ntotal, index.d, index.metric_type) == (rows, dim, metric_of(similarity))
    if not same or any(np.any(index.reconstruct(row) != v) for row, v in ends.items()):
        raise _unreadable(path)


def _unreadable(path: Path) -> OutputError:
    return OutputError(
        f"{path}: faiss {load().__version__} reads other vectors from the file than were written; "
        "install another version of faiss-cpu (1.15 is known to work)"
    )
