"""Compares papers with single sentences: a paper is often cited for one aspect, which the whole draft hides."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from citerec.encode.sentences import sentences
from citerec.types import Query, SentenceScores

if TYPE_CHECKING:
    from citerec.retrieve.dense import DenseRetriever

Table = npt.NDArray[np.float32]  # shape (queries, papers)

LEAST_WORDS = 4  # of a sentence
MOST = 12  # sentences of one query


@runtime_checkable
class LexicalScores(Protocol):
    """Scores any papers by their words; `Bm25Retriever` does."""

    def scores_of_papers(self, queries: Sequence[Query], rows: npt.NDArray[np.int32]) -> Table:
        """Return the score of each paper for each query, 0 without a common term."""
        ...


def scores_by_sentence(
    queries: Sequence[Query],
    bm25: LexicalScores | None,
    dense: "DenseRetriever | None",
    *,
    ahead: bool = False,
) -> list[SentenceScores]:
    """Return, for each query, what compares papers with its title and each of its sentences.

    The sentences of all queries are encoded in one call, when the first of them is read: one query at a time would take
    most of the time of a batch.

    Args:
        queries: The queries.
        bm25: What scores papers by their words, if anything does.
        dense: The dense retriever, if any.
        ahead: Whether to begin with the vectors of a single query now, because they will be read.
    """
    parts = [sentence_queries(query) for query in queries]
    vectors: list[Callable[[], Table] | None] = [None] * len(parts)
    if dense and len(parts) == 1:
        [only] = parts
        vectors = [dense.encode_ahead(only) if ahead else partial(dense.encode, only)]
    elif dense:
        encoded = cache(
            partial(dense.encoder.encode, [one for of_query in parts for one in of_query])
        )
        ends = list(accumulate(map(len, parts)))
        starts = [0, *ends]
        vectors = [
            partial(_rows, encoded, slice(start, end))
            for start, end in zip(starts, ends, strict=False)
        ]
    return [
        SentenceScores(
            vectors=of_query, bm25=partial(bm25.scores_of_papers, mine) if bm25 else None
        )
        for mine, of_query in zip(parts, vectors, strict=True)
    ]


def _rows(encoded: Callable[[], Table], rows: slice) -> Table:
    return encoded()[rows]


def sentence_queries(query: Query) -> list[Query]:
    """Return queries for the title and the first `MOST` sentences of the abstract of `LEAST_WORDS` words or more."""
    long = (one for one in sentences(query.abstract) if len(one.split()) >= LEAST_WORDS)
    texts = [query.title, *[*long][:MOST]]
    return [
        replace(query, title=text, abstract="", authors=(), venue="", context="") for text in texts
    ]
