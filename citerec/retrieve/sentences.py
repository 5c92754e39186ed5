"""Searches by single sentences: a paper is often cited for one aspect of a draft, which the whole text hides."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from citerec.encode.sentences import sentences
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.types import Eligibility, Hits, Query, SentenceSearch

if TYPE_CHECKING:
    from citerec.retrieve.dense import DenseRetriever

LEAST_WORDS = 4  # of a sentence that is searched
MOST = 12  # sentences of one query that are searched


def search_by_sentence(
    query: Query,
    eligible: Eligibility,
    depth: int,
    bm25: Bm25Retriever | None,
    dense: "DenseRetriever | None",
) -> SentenceSearch:
    """Return searches for the title and each sentence of a query.

    The sentences of one query are encoded together, so their vectors do not depend on other queries.

    Args:
        query: The query.
        eligible: Its rule.
        depth: Papers that BM25 returns for each sentence.
        bm25: The lexical retriever, if any.
        dense: The dense retriever, if any.
    """

    def hits(bm25: Bm25Retriever) -> list[Hits]:
        parts = sentence_queries(query)
        return bm25.retrieve(parts, [eligible] * len(parts), depth)

    return SentenceSearch(
        vectors=(lambda: dense.encode(sentence_queries(query))) if dense else None,
        bm25=partial(hits, bm25) if bm25 else None,
    )


def sentence_queries(query: Query) -> list[Query]:
    """Return queries for the title and the first `MOST` sentences of the abstract of `LEAST_WORDS` words or more."""
    long = (one for one in sentences(query.abstract) if len(one.split()) >= LEAST_WORDS)
    texts = [query.title, *[*long][:MOST]]
    return [
        replace(query, title=text, abstract="", authors=(), venue="", context="") for text in texts
    ]
