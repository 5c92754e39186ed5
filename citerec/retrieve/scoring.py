"""Scores papers by BM25 over stored postings, as Lucene does: ids and scores are the same to the bit.

Lucene computes the score of a term in 32 bits, sums the terms in 64, and rounds the sum to 32. The scores of a query
differ so little in magnitude that their sum is exact, whatever the order of its terms.

Source: BM25Similarity of Lucene 9.9.
"""

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.index.postings import LENGTHS, Ints, Postings

_ONE = np.float32(1)
_INT = np.iinfo(np.int32)
WORTH_COMPILING = 200  # queries after which the import of numba, about a second, has paid off
KEPT_BUFFERS = 8  # 16 bytes per paper each

Docs = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
_Buffers = tuple[npt.NDArray[np.float64], Docs, Scores]


class PostingsScorer:
    """Finds the best documents of a query; several threads may use it.

    The first queries are scored by NumPy, since the import of numba takes as long as a hundred of them; the others, or
    all if numba is imported already, by numba.
    """

    def __init__(
        self, postings: Postings, years: npt.NDArray[np.int32], k1: float, b: float
    ) -> None:
        """Prepare.

        Args:
            postings: The postings of the index.
            years: The year of each document, shape (documents,).
            k1: As in `Bm25Config`.
            b: As in `Bm25Config`.
        """
        self.postings = postings
        unknown = np.int32(_INT.min)  # within every bound
        self._years = np.where(years == NO_YEAR, unknown, years).astype(np.int32)
        self._inverse = _inverse_norms(postings, np.float32(k1), np.float32(b))
        self._queries = 0
        self._kernel: Any = None
        # arrays of queries that are done; those of queries at the same time, up to this many, are kept
        self._free: deque[_Buffers] = deque(maxlen=KEPT_BUFFERS)

    def expect(self, queries: int) -> None:
        """Prepare for more queries: compile the loops if all queries since the start are worth it."""
        self._queries += queries
        if self._kernel is None and (self._queries >= WORTH_COMPILING or "numba" in sys.modules):
            self._kernel = import_module("citerec.retrieve.kernel")

    def top(
        self, terms: Mapping[int, float], k: int, year_max: int | None, excluded: Docs
    ) -> tuple[Docs, Scores]:
        """Return the best `k` eligible documents, all that tie with the last of them, and maybe others, in no order.

        Args:
            terms: The numbers of the terms of the query, and how often it holds each.
            k: How many.
            year_max: The latest eligible year; None for any.
            excluded: Documents that are not eligible.
        """
        bound = _INT.max if year_max is None else max(_INT.min, min(year_max, _INT.max))
        numbers = np.fromiter(terms, np.int64, len(terms))
        starts, ends = self.postings.indptr[numbers], self.postings.indptr[numbers + 1]
        weights = self._weights(ends - starts, np.fromiter(terms.values(), np.float32, len(terms)))
        select = self._select_by_numpy if self._kernel is None else self._select_by_numba
        return select(starts, ends, weights, min(k, len(self._years)), bound, excluded)

    def table(self, queries: Sequence[Mapping[int, float]], docs: Docs) -> Scores:
        """Return the scores of some documents, eligible or not, shape (queries, documents); 0 without a common term.

        The costs depend on the documents, and hardly on the size of the index.

        Args:
            queries: The terms of each, as in `top`.
            docs: Distinct documents.
        """
        order = np.argsort(docs, kind="stable")
        distinct, norms = docs[order], self._inverse[self.postings.norms[docs[order]]]
        totals = np.zeros((len(queries), len(docs)))
        for term in {term: None for terms in queries for term in terms}:
            places, freqs = self.postings.freqs_in(term, distinct)
            x = freqs.astype(np.float32) * norms[places]
            df = np.array([self.postings.df(term)])
            for total, terms in zip(totals, queries, strict=True):
                if count := terms.get(term):
                    [weight] = self._weights(df, np.array([count], np.float32))
                    total[places] += _scores(weight, x)
        scores = np.empty(totals.shape, np.float32)
        scores[:, order] = totals
        return scores

    def _weights(self, dfs: Ints, counts: Scores) -> Scores:
        """Return the weight of terms, from their numbers of documents and how often the query has them."""
        idf = np.log(1 + (self.postings.with_terms - dfs + 0.5) / (dfs + 0.5))
        return counts * idf.astype(np.float32)

    def _select_by_numpy(
        self, starts: Ints, ends: Ints, weights: Scores, k: int, bound: int, excluded: Docs
    ) -> tuple[Docs, Scores]:
        postings = self.postings
        totals = np.zeros(len(self._years))
        for start, end, weight in zip(starts.tolist(), ends.tolist(), weights, strict=True):
            docs = postings.docs[start:end]
            x = postings.freqs[start:end].astype(np.float32) * self._inverse[postings.norms[docs]]
            totals[docs] += _scores(weight, x)
        totals[excluded] = 0
        docs = np.flatnonzero(totals).astype(np.int32)
        docs = docs[self._years[docs] <= bound]
        scores = totals[docs].astype(np.float32)
        if len(docs) <= k:
            return docs, scores
        kept = scores >= np.partition(scores, len(docs) - k)[len(docs) - k]
        return docs[kept], scores[kept]

    def _select_by_numba(
        self, starts: Ints, ends: Ints, weights: Scores, k: int, bound: int, excluded: Docs
    ) -> tuple[Docs, Scores]:
        postings = self.postings
        try:
            buffers = self._free.pop()
        except IndexError:
            count = len(self._years)
            buffers = np.zeros(count), np.empty(count, np.int32), np.empty(count, np.float32)
        totals, docs, scores = buffers
        lists = postings.docs, postings.freqs, postings.norms
        if not self._kernel.add_scores(starts, ends, weights, *lists, self._inverse, totals):
            raise ValueError("the postings name a document that does not exist")
        count = self._kernel.select(totals, self._years, bound, excluded, k, docs, scores)
        found = docs[:count].copy(), scores[:count].copy()
        # totals are 0 again; after an error, Ctrl-C among them, they may not be, and are dropped
        self._free.append(buffers)
        return found


def _scores(weight: np.float32, x: Any) -> Any:
    return weight - weight / (_ONE + x)


def _inverse_norms(postings: Postings, k1: np.float32, b: np.float32) -> Scores:
    """Return 1 / (k1 * (1 - b + b * length / mean length)) for each length that a byte stands for, shape (256,)."""
    mean = np.float32(postings.tokens / max(postings.with_terms, 1)) or _ONE
    with np.errstate(divide="ignore"):
        return _ONE / (k1 * ((_ONE - b) + b * LENGTHS.astype(np.float32) / mean))
