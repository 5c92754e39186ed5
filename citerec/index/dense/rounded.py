"""Vectors rounded to 8 bits, besides the exact ones: a search reads a quarter of the bytes, and finds the same papers.

A vector x is stored as scale * codes with whole codes in [-127, 127], and with the length of what rounding lost. The
inner product of a query q with the rounded vector differs from that with x by at most |q| * |lost| (Cauchy-Schwarz).
So an upper bound of the closeness of every paper comes from whole numbers, and only papers with a high bound are
compared by their exact vectors.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.arrays import check_range, open_array
from citerec.encode.spec import Similarity
from citerec.errors import writing
from citerec.index.dense.library import Vectors
from citerec.index.dense.scan import Blocks, Closeness, MaskOut

FROM = 50_000  # papers; the exact vectors of fewer are compared in some milliseconds
CODES, SCALES, LOST, LENGTHS = (
    f"rounded_{name}.npy" for name in ("codes", "scales", "lost", "lengths")
)
LARGEST = 127  # code
_QUERY_LARGEST = 2**15 - 1  # code of a query
_LEAST = 1e-9  # length; a shorter vector has no direction
_SUM = 2**31 - 1  # the largest sum of products of codes


@dataclass(frozen=True, slots=True, eq=False)
class Rounded:
    """The rounded vectors of an index."""

    codes: npt.NDArray[np.int8]  # shape (papers, dim)
    scales: npt.NDArray[np.float32]  # shape (papers,)
    lost: npt.NDArray[np.float32]  # at least the length of what rounding lost, shape (papers,)
    lengths: npt.NDArray[np.float32]  # of the exact vectors, shape (papers,)
    similarity: Similarity

    @classmethod
    def open(cls, folder: Path, *, rows: int, dim: int, similarity: Similarity) -> Self:
        """Map what `RoundedWriter` wrote.

        Raises:
            OSError: If a file cannot be read.
            ValueError: If it does not hold so many vectors, or a scale or a length is not finite.
        """
        codes = open_array(folder / CODES, np.int8, length=rows * dim).reshape(rows, dim)

        def numbers(name: str) -> npt.NDArray[np.float32]:
            values = open_array(folder / name, np.float32, length=rows)
            if not np.isfinite(values).all():
                raise ValueError(f"{name} holds a number that is not finite")
            return values

        return cls(codes, numbers(SCALES), numbers(LOST), numbers(LENGTHS), similarity)

    def scan(
        self, kernel: Any, queries: Vectors, k: int, mask_out: MaskOut, start: int, stop: int
    ) -> tuple[Closeness, npt.NDArray[np.int64]]:
        """Return the largest upper bounds of the closeness of some rows and their rows, best first.

        Args:
            kernel: The module `kernel`, whose import takes time.
            queries: Shape (queries, dim).
            k: How many, at most.
            mask_out: Excludes papers; see `citerec.index.dense.scan`.
            start: The first row.
            stop: The row after the last one.

        Returns:
            Both of shape (queries, k); missing ones have row -1.
        """
        bounds = np.empty((len(queries), stop - start), np.float32)
        for query, row in zip(queries, bounds, strict=True):
            self._upper_bounds(kernel, query, row, start, stop)
        mask_out(bounds, start)
        best = np.full((len(queries), k), -np.inf, np.float32)
        rows = np.full((len(queries), k), -1, np.int64)
        for i, row in enumerate(bounds):
            found = np.flatnonzero(row > -np.inf)
            found = found[_largest(row[found], k)]
            found = found[np.argsort(-row[found], kind="stable")][:k]
            best[i, : len(found)], rows[i, : len(found)] = row[found], start + found
        return best, rows

    def summed_directions(
        self, kernel: Any, ends: npt.NDArray[np.integer], rows: npt.NDArray[np.int32]
    ) -> Vectors:
        """Return the sum of the directions (vectors of length 1) of each list of papers, shape (lists, dim).

        Args:
            kernel: As for `scan`; None if it is not imported, which takes more time.
            ends: Where each list begins and ends, shape (lists + 1,).
            rows: The lists one after the other.

        Raises:
            ValueError: If there is no such paper.
        """
        check_range("a list", rows, len(self.codes))
        scales, lengths = self.scales[rows], self.lengths[rows]
        weights = scales / np.maximum(lengths, np.float32(_LEAST))
        if kernel is None:
            from scipy.sparse import csr_array

            distinct, columns = np.unique(rows, return_inverse=True)
            shape = (len(ends) - 1, len(distinct))
            codes = np.take(self.codes, distinct, axis=0).astype(np.float32)
            return csr_array((weights, columns, ends), shape=shape) @ codes
        sums = np.zeros((len(ends) - 1, self.codes.shape[1]), np.float32)
        kernel.add_codes(self.codes, weights, ends, rows, sums)
        return sums

    def _upper_bounds(
        self, kernel: Any, query: Vectors, bounds: Closeness, start: int, stop: int
    ) -> None:
        exact = query.astype(np.float64)
        largest = min(_QUERY_LARGEST, _SUM // ((LARGEST + 1) * len(query)))
        scale = float(np.abs(exact).max()) / largest or 1.0
        codes = np.rint(exact / scale)
        part = slice(start, stop)
        kernel.upper_bounds(
            self.codes[part],
            self.scales[part],
            self.lost[part],
            self.lengths[part],
            codes.astype(np.int16),
            scale,
            float(np.linalg.norm(exact)),
            float(np.linalg.norm(exact - scale * codes)),
            self.similarity is Similarity.L2,
            bounds,
        )


class RoundedWriter:
    """Writes rounded vectors block by block."""

    def __init__(self, folder: Path, *, rows: int, dim: int) -> None:
        """Begin; existing files in `folder` are replaced."""
        self._folder = folder
        self._numbers: list[npt.NDArray[np.float32]] = []  # each of shape (3, vectors of a block)
        with writing(folder / CODES):
            self._stream = (folder / CODES).open("wb")
            header = {"descr": "|i1", "fortran_order": False, "shape": (rows * dim,)}
            np.lib.format.write_array_header_1_0(self._stream, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with writing(self._folder / CODES):
            self._stream.close()
        if error[0] is not None:
            return
        columns = np.concatenate([np.zeros((3, 0), np.float32), *self._numbers], axis=1)
        for name, column in zip((SCALES, LOST, LENGTHS), columns, strict=True):
            with writing(self._folder / name):
                np.save(self._folder / name, column)

    def through(self, blocks: Blocks) -> Blocks:
        """Yield blocks of vectors, of all rows in order, after writing each as rounded vectors.

        Raises:
            OutputError: If the file cannot be written.
        """
        for first, block in blocks:
            codes, *numbers = rounded(block)
            self._numbers.append(np.stack(numbers))
            with writing(self._folder / CODES):
                self._stream.write(codes.tobytes())
            yield first, block


def rounded(block: Vectors) -> tuple[Any, Any, Any, Any]:
    """Round vectors of shape (n, dim); return codes of the same shape, and scales, lost and lengths of shape (n,)."""
    exact = block.astype(np.float64)
    scales = (np.abs(exact).max(axis=1, initial=0) / LARGEST).astype(np.float32)
    scales[scales == 0] = 1
    codes = np.rint(exact / scales[:, None]).clip(-LARGEST, LARGEST)
    lost = np.linalg.norm(exact - codes * scales[:, None].astype(np.float64), axis=1)
    lost = np.nextafter(lost.astype(np.float32), np.float32(np.inf))  # never too small
    lengths = np.linalg.norm(exact, axis=1).astype(np.float32)
    return codes.astype(np.int8), scales, lost, lengths


def _largest(values: Closeness, k: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the `k` largest values and those that tie with the last of them."""
    if k >= len(values):
        return np.ones(len(values), np.bool_)
    return values >= np.partition(values, len(values) - k)[len(values) - k]
