"""Opens arrays of an index as memory maps, after checking their type, length and range; reads no pickle.

C++ libraries read these arrays without checks of their own, so damaged files have to be refused here.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def open_array(path: Path, *kinds: npt.DTypeLike, length: int | None = None) -> npt.NDArray[Any]:
    """Map the file of a one-dimensional array into memory.

    Args:
        path: A file that `numpy.save` wrote.
        kinds: The allowed types of its numbers.
        length: The expected length, shape (length,); None for any.

    Raises:
        OSError: If it cannot be read.
        ValueError: If type, shape or length differ, or the file has more or fewer bytes than its header states.
    """
    with path.open("rb") as stream:
        shape, dtype = _header(stream, path.name)
        offset = stream.tell()
    if len(shape) != 1 or dtype not in [np.dtype(kind) for kind in kinds]:
        expected = " or ".join(str(np.dtype(kind)) for kind in kinds)
        raise ValueError(
            f"{path.name} is an array of {dtype} of shape {shape}, expected {expected}"
        )
    if length is not None and shape[0] != length:
        raise ValueError(f"{path.name} holds {shape[0]:,} numbers, expected {length:,}")
    if path.stat().st_size != offset + shape[0] * dtype.itemsize:
        raise ValueError(
            f"{path.name} does not have as many bytes as its {shape[0]:,} numbers need"
        )
    if not shape[0]:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, "r", offset, shape)


def check_range(name: str, numbers: npt.NDArray[Any], end: int) -> None:
    """Check that numbers are row numbers: at least 0 and below `end`.

    Raises:
        ValueError: If one is outside this range.
    """
    if len(numbers) and not ((low := int(numbers.min())) >= 0 and int(numbers.max()) < end):
        wrong = low if low < 0 else int(numbers.max())
        raise ValueError(f"{name} names row {wrong:,}, expected rows from 0 to {end - 1:,}")


def check_distinct(name: str, numbers: npt.NDArray[Any], end: int) -> None:
    """Check that numbers are row numbers below `end`, each at most once.

    Raises:
        ValueError: If one is outside the range or repeated.
    """
    check_range(name, numbers, end)
    seen = np.zeros(end, np.bool_)
    seen[numbers] = True
    if np.count_nonzero(seen) != len(numbers):
        raise ValueError(f"{name} names a row twice")


def check_ends(name: str, ends: npt.NDArray[Any], last: int) -> None:
    """Check the offsets of consecutive lists: they start at 0, end at `last` and never fall.

    Raises:
        ValueError: If they are not.
    """
    if not len(ends) or ends[0] != 0 or ends[-1] != last or np.any(ends[1:] < ends[:-1]):
        raise ValueError(f"{name} does not rise from 0 to {last:,}")


def gathered(
    indptr: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    rows: npt.NDArray[Any],
    most: int | None = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return some lists of a CSR structure one after the other, and the length of each, shape of `rows`.

    Args:
        indptr: The offsets of the lists, shape (lists + 1,).
        indices: The content of all lists.
        rows: The numbers of the lists, in any order.
        most: Of a longer list an even sample of so many entries is returned; by default all are.

    Raises:
        ValueError: If a number in a list is less than 0, which NumPy would read from the end of another array.
    """
    starts = indptr[rows].astype(np.int64)
    whole = indptr[rows + 1] - starts
    lengths = whole if most is None else np.minimum(whole, most)
    ends = np.cumsum(lengths)
    places = np.arange(int(ends[-1]) if len(ends) else 0)
    if lengths is whole or np.array_equal(lengths, whole):
        places += np.repeat(starts - (ends - lengths), lengths)
    else:
        places -= np.repeat(ends - lengths, lengths)  # from 0 in each list
        places = places * np.repeat(whole, lengths) // np.repeat(lengths, lengths)
        places += np.repeat(starts, lengths)
    found = indices[places]
    if len(found) and found.min() < 0:
        raise ValueError(f"a list names row {found.min():,}")
    return found, lengths


def _header(stream: Any, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"version {version}")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # numpy parses the header as Python: it may raise anything
        raise ValueError(f"{name} is not an array as numpy writes it") from error
    return shape, dtype
