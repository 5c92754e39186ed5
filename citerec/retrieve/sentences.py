"""Compares papers with single sentences: a paper is often cited for one aspect, which the whole draft hides."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
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
    query: Query,
    bm25: LexicalScores | None,
    dense: "DenseRetriever | None",
    *,
    ahead: bool = False,
) -> SentenceScores:
    """Return what compares papers with the title and each sentence of a query.

    The sentences of one query are encoded together, so their vectors do not depend on other queries.

    Args:
        query: The query.
        bm25: What scores papers by their words, if anything does.
        dense: The dense retriever, if any.
        ahead: Whether to begin with the vectors now, because they will be read.
    """
    parts = sentence_queries(query)
    vectors = None
    if dense:
        vectors = dense.encode_ahead(parts) if ahead else partial(dense.encode, parts)
    return SentenceScores(
        vectors=vectors, bm25=partial(bm25.scores_of_papers, parts) if bm25 else None
    )


def sentence_queries(query: Query) -> list[Query]:
    """Return queries for the title and the first `MOST` sentences of the abstract of `LEAST_WORDS` words or more."""
    long = (one for one in sentences(query.abstract) if len(one.split()) >= LEAST_WORDS)
    texts = [query.title, *[*long][:MOST]]
    return [
        replace(query, title=text, abstract="", authors=(), venue="", context="") for text in texts
    ]
