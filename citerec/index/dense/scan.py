"""Exact search: one pass over all vectors for all queries.

The pass multiplies matrices, which is fast, but rounding depends on the position of a vector. So it only collects
candidates, slightly more than requested. Their final scores are computed pair by pair: they are the same
in any batch, and equal for equal vectors.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.index.dense.library import Vectors, load

Blocks = Iterable[tuple[int, Vectors]]  # each with the row of its first vector

NORM_SLACK = 0.01  # tolerance of unit length for vectors that cosine compares
BLOCK = 4096  # vectors per block: their scores for a thousand queries fit a processor's cache

FEW = 4  # queries whose products are computed one by one: faster than a matrix product, which copies the block

Closeness = npt.NDArray[np.float32]  # rises with similarity; q x for cosine, q x - x x / 2 for L2
# sets closeness to -inf; receives a block's and its first row
MaskOut = Callable[[Closeness, int], None]


def scan(
    queries: Vectors, blocks: Blocks, k: int, similarity: Similarity, mask_out: MaskOut
) -> tuple[Closeness, npt.NDArray[np.int64]]:
    """Return the closeness and rows of the `k` nearest vectors of each query, best first.

    Both have shape (len(queries), k); missing ones have row -1.
    """
    faiss = load()
    top = faiss.ResultHeap(len(queries), k, keep_max=True)
    for first, block in blocks:
        closeness = _closeness(queries, block, similarity)
        mask_out(closeness, first)
        top.heaps.addn(len(block), faiss.swig_ptr(closeness), first, 0, len(queries))
    top.finalize()
    return top.D, top.I


def merged(
    parts: Sequence[tuple[Closeness, npt.NDArray[np.int64]]],
) -> tuple[Closeness, npt.NDArray[np.int64]]:
    """Merge scans of different blocks for the same queries into one scan of the same shape."""
    if len(parts) == 1:
        return parts[0]
    top = load().ResultHeap(*parts[0][0].shape, keep_max=True)
    for closeness, rows in parts:
        top.add_result(closeness, rows)
    top.finalize()
    return top.D, top.I


def pairwise(query: Vectors, vectors: Vectors, similarity: Similarity) -> npt.NDArray[np.float32]:
    """Score vectors against one query, shape (dim,); each pair is computed separately. Shape (len(vectors),).

    The inner product for cosine, minus the Euclidean distance for L2.
    """
    faiss = load()
    query, vectors = np.ascontiguousarray(query), np.ascontiguousarray(vectors)
    scores, indices = np.empty(len(vectors), np.float32), np.arange(len(vectors))
    measures = {
        Similarity.COSINE: faiss.fvec_inner_products_by_idx,
        Similarity.L2: faiss.fvec_L2sqr_by_idx,
    }
    pointers = [faiss.swig_ptr(array) for array in (scores, query, vectors, indices)]
    measures[similarity](*pointers, len(query), 1, len(vectors))
    return scores if similarity is Similarity.COSINE else 0 - np.sqrt(scores)


def dropped_bound(query: Vectors, worst: float, kth: float, similarity: Similarity) -> float:
    """Return an upper bound of the score of vectors that `scan` dropped and that could reach the score at rank k.

    A sum of `dim` products in float32 has an error of at most dim * 2^-24 times the sum of their absolute values, in
    any order of summation; for L2 the triangle inequality bounds the length of a vector that is close enough.

    Args:
        query: The query, shape (dim,).
        worst: The lowest closeness that the scan kept.
        kth: The score of the hit at rank k, from `pairwise`.
        similarity: The similarity of the scores.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1.
    """
    relative_error = (len(query) + 8) * 2.0**-23
    length = float(np.linalg.norm(query.astype(np.float64)))
    if similarity is Similarity.COSINE:
        return worst + relative_error * length * (1 + NORM_SLACK)
    longest = length - kth
    slack = relative_error * (2 * length * longest + longest**2 + kth**2)
    return -float(np.sqrt(max(length**2 - 2 * worst - slack, 0.0)))


def _closeness(queries: Vectors, block: Vectors, similarity: Similarity) -> Closeness:
    products = _products(queries, block)
    if similarity is Similarity.L2:
        products -= np.einsum("ij,ij->i", block, block) / 2
    return products


def _products(queries: Vectors, block: Vectors) -> Closeness:
    """Multiply by faiss, not numpy: faiss keeps to the thread count that it was given."""
    faiss = load()
    if len(queries) <= FEW:
        products = np.empty((len(queries), len(block)), np.float32)
        for query, row in zip(np.ascontiguousarray(queries), products, strict=True):
            pointers = [faiss.swig_ptr(array) for array in (row, query, block)]
            faiss.fvec_inner_products_ny(*pointers, block.shape[1], len(block))
        return products
    transform = faiss.LinearTransform(block.shape[1], len(block), False)
    faiss.copy_array_to_vector(block.ravel(), transform.A)
    transform.is_trained = True
    return transform.apply(queries)
