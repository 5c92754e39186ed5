"""The loops of `rounded`, compiled by numba on first use; the compiled code is cached on disk."""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def upper_bounds(
    codes: Any,
    scales: Any,
    lost: Any,
    lengths: Any,
    query: Any,
    scale: float,
    length: float,
    query_lost: float,
    by_distance: bool,
    bounds: Any,
) -> None:
    """Compute an upper bound of the closeness of each vector and a query: q x, less x x / 2 by distance.

    With x = s c + e and q = t d + g: q x <= s t (d c) + |q| |e| + |g| |s c|, and |s c| <= |x| + |e|.

    Args:
        codes: c, int8, shape (vectors, dim).
        scales: s, float32, shape (vectors,).
        lost: At least |e|, float32, shape (vectors,).
        lengths: |x|, float32, shape (vectors,).
        query: d, int16, shape (dim,); no sum of products with codes exceeds 31 bits.
        scale: t.
        length: |q|.
        query_lost: |g|.
        by_distance: Whether x x / 2 is subtracted.
        bounds: Receives the bounds, float32, shape (vectors,).
    """
    # Numba adds int32 in 64 bits. Where only 32 of them are kept, in a loop with nothing else, the compiler takes
    # instructions for products of 16 bits, which are much faster on some processors.
    products = np.empty(len(codes), np.int32)
    for i in range(len(codes)):
        product = np.int32(0)
        row = codes[i]
        for j in range(len(query)):
            product += np.int32(row[j]) * np.int32(query[j])
        products[i] = product
    for i in range(len(codes)):
        size, rest = np.float64(lengths[i]), np.float64(lost[i])
        bound = np.float64(scales[i]) * scale * np.float64(products[i])
        bound += length * rest + query_lost * (size + rest)
        if by_distance:
            bound -= size * size / 2
        bounds[i] = np.float32(bound)


@njit(cache=True, nogil=True)
def add_codes(codes: Any, weights: Any, ends: Any, rows: Any, sums: Any) -> None:
    """Add the weighted codes of the rows of each list.

    Args:
        codes: int8, shape (vectors, dim).
        weights: The weight of each entry, float32, shape of `rows`.
        ends: Where each list begins and ends, shape (lists + 1,).
        rows: The lists one after the other; each a row of `codes`.
        sums: Receives the sums, zeros before, float32, shape (lists, dim).
    """
    for i in range(len(sums)):
        for place in range(ends[i], ends[i + 1]):
            row, weight = rows[place], weights[place]
            for j in range(codes.shape[1]):
                sums[i, j] += weight * np.float32(codes[row, j])
