"""Dense retrieval: finds the papers whose vectors are nearest to a query's, and compares papers with its sentences."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from citerec.config import DenseConfig
from citerec.encode.spec import Similarity
from citerec.errors import EncoderMismatchError, ModelError
from citerec.files.arrays import Rows, Scores, Vectors
from citerec.index.folder import IndexFolder
from citerec.index.vectors import on_threads, unit, vectors_of
from citerec.text import encoder_text, sentences
from citerec.types import Eligibility, Hits, Query, SentenceScores

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

LEAST_WORDS = 4  # of a sentence that is compared by itself
MAX_SENTENCES = 12  # sentences of one query


class DenseRetriever:
    """Finds papers by their vectors."""

    name = "dense"

    def __init__(
        self,
        index: IndexFolder,
        encoder: "Encoder",
        config: DenseConfig | None = None,
    ) -> None:
        """Open the dense part of an index, which `encoder` must have embedded."""
        self.config = config or DenseConfig()
        self.encoder = encoder
        self._id_rank = index.id_rank
        # the texts of the last batch with their vectors
        self._last: tuple[list[str], Vectors] = [], np.zeros((0, 0), np.float32)
        index.check_embedded()
        if (recorded := index.encoder).key != encoder.fingerprint.key:
            found = encoder.fingerprint.name
            raise EncoderMismatchError(index.path, found=found, expected=str(recorded))
        self._vectors = vectors_of(index)

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; all are encoded as one batch."""
        return self.search(self.encoded(queries), eligible, k) if queries else []

    def encoded(self, queries: Sequence[Query]) -> Vectors:
        """Return the vectors of queries, shape (len(queries), dim). Equal texts are encoded once.

        Those of the last call are kept: the only sentence of a draft without an abstract is the draft.
        """
        # only tells equal texts; the encoder puts its own separator between title and abstract
        texts = [
            encoder_text(query, self.encoder.fingerprint.spec.form, " ")
            for query in queries
        ]
        last, vectors = self._last
        if texts != last:
            # sentences share their draft
            distinct = dict(zip(texts, queries, strict=True))
            row = {text: i for i, text in enumerate(distinct)}
            vectors = self.encoder.encode([*distinct.values()])[
                [row[text] for text in texts]
            ]
            self._last = texts, vectors
        return vectors

    def search(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers for each vector, shape (len(eligible), dim).

        A score is the inner product (cosine) or minus the Euclidean distance (L2). A pair of query and paper has the
        same score in any batch, bit by bit. A ModelError if a vector is not finite.
        """
        if not np.isfinite(vectors).all():
            raise ModelError("the encoder gave a query a vector that is not finite")
        most = min(k, max(len(self._id_rank), 1))
        with on_threads(self.config.threads):
            nearest = self._vectors.nearest(
                np.ascontiguousarray(vectors, np.float32), eligible, most
            )
        return [Hits.ordered(*hits, self._id_rank, most) for hits in nearest]

    def approximate_vectors(self, rows: Rows) -> Vectors:
        """Return the vectors of some papers, shape (len(rows), dim); those of int8 where a search reads these."""
        return self._vectors.approximate(rows)

    def directions(self, rows: Rows) -> Vectors:
        """Return the vectors of some papers as `approximate_vectors` does, but of length 1."""
        vectors = self.approximate_vectors(rows)
        return (
            vectors if self._vectors.similarity is Similarity.COSINE else unit(vectors)
        )


@runtime_checkable
class LexicalScores(Protocol):
    """Scores any papers by their words; `Bm25Retriever` does."""

    def scores_of_papers(self, queries: Sequence[Query], rows: Rows) -> Scores:
        """Return the score of each paper for each query, shape (queries, papers); 0 without a common term."""
        ...


def scores_by_sentence(
    queries: Sequence[Query],
    lexical: LexicalScores | None,
    dense: DenseRetriever | None,
) -> list[SentenceScores]:
    """Return, for each query, what compares papers with its title and each of its sentences, on first use.

    A paper is often cited for one aspect, which the whole draft hides.
    """
    parts = [*map(sentence_queries, queries)]

    # the sentences of all queries are encoded in one call, when the first of them is read: one query at a time would
    # take most of the time of a batch
    @cache
    def encoded() -> Vectors:
        assert dense
        return dense.encoded([sentence for part in parts for sentence in part])

    return scores_of_parts(parts, lexical, encoded if dense else None)


def scores_of_parts(
    parts: Sequence[Sequence[Query]],
    lexical: LexicalScores | None,
    encoded: Callable[[], Vectors] | None,
) -> list[SentenceScores]:
    """Return what compares papers with the sentences of each part; `encoded` returns the vectors of all of them."""

    def scores(part: Sequence[Query], rows: slice) -> SentenceScores:
        def vectors() -> Vectors:
            assert encoded
            return encoded()[rows]

        by_words = partial(lexical.scores_of_papers, part) if lexical else None
        return SentenceScores(vectors if encoded else None, by_words)

    bounds = pairwise(accumulate(map(len, parts), initial=0))
    return [
        scores(part, slice(*ends)) for part, ends in zip(parts, bounds, strict=True)
    ]


def sentence_queries(query: Query) -> list[Query]:
    """Return queries for the title and the first `MAX_SENTENCES` sentences of at least `LEAST_WORDS` words.

    A text that stands for the title, as that of a need in words, has sentences of its own.
    """
    title, *others = [query.title] if query.abstract else sentences(query.title)
    others += sentences(query.abstract)
    long = [text for text in others if len(text.split()) >= LEAST_WORDS]
    texts = [title, *long[:MAX_SENTENCES]]
    return [
        replace(query, title=text, abstract="", authors=(), venue="", context="")
        for text in texts
    ]
