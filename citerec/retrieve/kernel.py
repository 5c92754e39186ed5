"""The loops of `scoring`, compiled by numba on first use; the compiled code is cached on disk."""

from typing import Any

import numpy as np
from numba import njit

_ONE = np.float32(1)
_BINS = 4096


@njit(cache=True, nogil=True)
def add_scores(
    starts: Any,
    ends: Any,
    weights: Any,
    docs: Any,
    freqs: Any,
    norms: Any,
    inverse: Any,
    totals: Any,
) -> bool:
    """Add the score of each term to the total of each of its documents.

    Args:
        starts: Where the postings of each term begin, int64, shape (terms,).
        ends: Where they end, shape (terms,).
        weights: The weight of each term, float32, shape (terms,).
        docs: Documents, shape (postings,).
        freqs: Frequencies, shape (postings,).
        norms: The length of each document as a byte, shape (documents,).
        inverse: BM25's length normalisation of each byte, float32, shape (256,).
        totals: The sum of the scores of each document, float64, shape (documents,).

    Returns:
        Whether all documents exist; otherwise the totals are not complete.
    """
    count = np.uint32(len(totals))
    for term in range(len(starts)):
        weight = weights[term]
        for place in range(starts[term], ends[term]):
            doc = np.uint32(docs[place])
            if doc >= count:
                return False
            x = np.float32(freqs[place]) * inverse[norms[doc]]
            totals[doc] += np.float64(weight - weight / (_ONE + x))
    return True


@njit(cache=True, nogil=True)
def select(
    totals: Any, years: Any, bound: Any, excluded: Any, k: int, docs: Any, scores: Any
) -> int:
    """Select the best `k` eligible documents, and set all totals to 0.

    Args:
        totals: The score of each document, float64, shape (documents,); 0 for one that does not match.
        years: The year of each document, int32, shape (documents,).
        bound: Documents of later years are not eligible.
        excluded: Documents that are not eligible, int64.
        k: How many.
        docs: Receives the documents, int32, shape (documents,), rising.
        scores: Receives their scores, float32, shape (documents,).

    Returns:
        How many were selected: all that score at least as much as the k-th, and possibly some that score less.
    """
    for doc in excluded:
        totals[doc] = 0.0
    count = 0
    largest = np.float32(0)
    for doc in range(len(totals)):
        total = totals[doc]
        if total > 0.0:
            totals[doc] = 0.0
            if years[doc] <= bound:
                score = np.float32(total)
                docs[count] = doc
                scores[count] = score
                largest = max(largest, score)
                count += 1
    if count <= k:
        return count
    scale = np.float32(_BINS - 1) / largest
    histogram = np.zeros(_BINS, np.int64)
    for i in range(count):
        histogram[int(scores[i] * scale)] += 1
    threshold, above = _BINS, 0
    while above < k:
        threshold -= 1
        above += histogram[threshold]
    selected = 0
    for i in range(count):
        if int(scores[i] * scale) >= threshold:
            docs[selected] = docs[i]
            scores[selected] = scores[i]
            selected += 1
    return selected
