"""Arrays of an index: what a number in them means, how they are saved, opened and checked."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save_array(path: Path, array: "npt.NDArray[Any]") -> None:
    """Write an array as `np.save` does, which misses that its last write failed, except into such a stream."""
    # no `io.BufferedWriter`, past which numpy writes by itself
    with path.open("w+b") as stream:
        np.save(stream, array)


def open_array(
    path: Path, *kinds: "npt.DTypeLike", length: int | None = None
) -> "npt.NDArray[Any]":
    """Map the file of a one-dimensional array, of one of some types, into memory.

    OSError if it cannot be read; ValueError if type, shape or `length` differ, or the file has more or fewer bytes than
    its header states.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except (
        Exception
    ) as error:  # numpy parses the header as Python: it may raise anything
        raise ValueError(
            f"{path.name} is not a whole array as numpy writes it"
        ) from error
    if array.ndim != 1 or array.dtype not in [np.dtype(kind) for kind in kinds]:
        expected = " or ".join(str(np.dtype(kind)) for kind in kinds)
        raise ValueError(
            f"{path.name}: {array.dtype} of shape {array.shape}, expected {expected}"
        )
    if length is not None and len(array) != length:
        raise ValueError(
            f"{path.name} holds {len(array):,} numbers, expected {length:,}"
        )
    if path.stat().st_size != array.offset + array.nbytes:
        raise ValueError(f"{path.name} has more bytes than {len(array):,} numbers need")
    return np.asarray(array)  # slices of a memory map cost ten times as much


def batched(items: Any, size: int) -> Iterator[Any]:
    """Yield the items of a sequence, a range or an array in parts of the same type; the last part may be shorter."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def concatenated(arrays: "Iterable[npt.NDArray[Any]]", kind: Any) -> "npt.NDArray[Any]":
    """Return arrays one after the other; of none, an empty one of a type."""
    return np.concatenate([np.zeros(0, kind), *arrays])


def offsets(lengths: "npt.ArrayLike") -> "Counts":
    """Return where each list of a CSR structure begins, and where the last ends, shape (lists + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def check_rows(
    name: str, rows: "npt.NDArray[np.integer]", end: int, *, distinct: bool = False
) -> None:
    """Raise ValueError unless numbers are at least 0 and below `end`, and each at most once if `distinct`."""
    if len(rows) and not (rows.min() >= 0 and rows.max() < end):
        raise ValueError(f"{name} names rows that are not from 0 to {end - 1:,}")
    if distinct:
        seen = np.zeros(end, np.bool_)
        seen[rows] = True
        if np.count_nonzero(seen) != len(rows):
            raise ValueError(f"{name} names a row twice")


def check_ends(name: str, ends: "npt.NDArray[np.integer]", last: int) -> None:
    """Raise ValueError unless the offsets of consecutive lists start at 0, end at `last` and never fall."""
    if (
        not len(ends)
        or ends[0] != 0
        or ends[-1] != last
        or (ends[1:] < ends[:-1]).any()
    ):
        raise ValueError(f"{name} does not rise from 0 to {last:,}")


Array = npt.NDArray[Any]
Numbers = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]  # row numbers of papers in an index
Years = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]  # shape (n, dim)
