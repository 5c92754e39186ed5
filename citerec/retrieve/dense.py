"""Dense retrieval: finds the papers whose vectors are nearest to a query's, and compares papers with its sentences."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from citerec.config import DenseConfig
from citerec.encode.spec import Fingerprint
from citerec.errors import EncoderMismatchError, IndexDamagedError, ModelError
from citerec.folder import DENSE, IndexFolder
from citerec.index.vectors import DenseIndex, RowsAndScores, Vectors, on_threads, open_dense
from citerec.text import sentences
from citerec.types import Eligibility, Hits, Query, QueryVector, SentenceScores

LEAST_WORDS = 4  # of a sentence that is compared by itself
MOST = 12  # sentences of one query


class QueryEncoder(Protocol):
    """Turns queries into vectors; `citerec.encode.encoder.Encoder` is one."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The identity of the encoder."""
        ...

    def encode(self, papers: Sequence[Query]) -> Vectors:
        """Return the vector of each query, shape (len(papers), dim)."""
        ...


class VectorSearch(Protocol):
    """Finds the nearest vectors of an index elsewhere, such as on other machines."""

    @property
    def name(self) -> str:
        """The name of the hits."""
        ...

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of the `k` best eligible papers of each query; see `DenseIndex.nearest`."""
        ...


class DenseRetriever:
    """Finds papers by their vectors."""

    def __init__(
        self,
        index: IndexFolder,
        encoder: QueryEncoder,
        config: DenseConfig | None = None,
        *,
        search: VectorSearch | None = None,
    ) -> None:
        """Open the dense part of an index.

        Args:
            index: The index.
            encoder: What encodes queries; it must have embedded the papers.
            config: The search parameters.
            search: What searches the vectors in place of the file of the index; the ranking still reads single vectors
                from the file.

        Raises:
            ConfigError: If the index has no vectors.
            EncoderMismatchError: If it was embedded by another encoder.
            IndexDamagedError: If the vectors were changed.
        """
        self.name = search.name if search else "dense"
        self.config = config or DenseConfig()
        self.encoder = encoder
        self._path, self._id_rank = index.path, index.id_rank
        settings = _checked_settings(index, encoder)
        # the last batch with its vectors
        self._last: tuple[tuple[Query, ...], Vectors] = (), np.zeros((0, 0), np.float32)
        try:
            self._vectors = open_dense(index.path / DENSE, settings, index.papers.years)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IndexDamagedError(index.path, [f"{DENSE}/ cannot be read ({error})"]) from error
        self._search: VectorSearch | DenseIndex = search or self._vectors

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; all are encoded as one batch.

        Raises:
            ModelError: If the encoder gives a vector that is not finite.
            ValueError: If `k` is less than 1.
        """
        return self.search(self._encoded(queries), eligible, k) if queries else []

    def query_vectors(self, queries: Sequence[Query]) -> list[QueryVector]:
        """Return the vector of each query; those of the last batch of `retrieve` are not encoded again."""
        return [QueryVector(vector, self.vectors) for vector in self._encoded(queries)]

    def _encoded(self, queries: Sequence[Query]) -> Vectors:
        batch, vectors = self._last
        if batch != (*queries,):
            vectors = self.encoder.encode(queries)
            self._last = (*queries,), vectors
        return vectors

    def search(self, vectors: Vectors, eligible: Sequence[Eligibility], k: int) -> list[Hits]:
        """Return the `k` best eligible papers for each vector, shape (len(eligible), dim).

        A score is the inner product (cosine) or minus the Euclidean distance (L2). A pair of query and paper has the
        same score in any batch, bit by bit.

        Raises:
            IndexDamagedError: If the file of the vectors cannot be read any more.
            ModelError: If a vector is not finite.
            ValueError: If `k` is less than 1.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if not np.isfinite(vectors).all():
            raise ModelError("the encoder gave a query a vector that is not finite")
        most = min(k, max(len(self._id_rank), 1))
        with on_threads(self.config.threads), self._reading():
            nearest = self._search.nearest(
                np.ascontiguousarray(vectors, np.float32), eligible, most
            )
        return [Hits.ordered(*hits, self._id_rank, most) for hits in nearest]

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some papers, shape (len(rows), dim).

        Raises:
            IndexDamagedError: If the file of the vectors cannot be read any more.
        """
        with self._reading():
            return self._vectors.vectors(rows)

    def sentence_vectors(self, parts: Sequence[Sequence[Query]]) -> list[Callable[[], Vectors]]:
        """Return, for the title and sentences of each query, what returns their vectors, shape (sentences, dim).

        The sentences of all queries are encoded in one call, when the first of them is read: one query at a time would
        take most of the time of a batch.
        """
        every = [one for of_query in parts for one in of_query]
        encoded = cache(partial(self.encoder.encode, every))
        ends = accumulate(map(len, parts), initial=0)
        return [partial(_part, encoded, slice(*bounds)) for bounds in pairwise(ends)]

    @contextmanager
    def _reading(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise IndexDamagedError(self._path, [str(error)]) from error


def _part(encoded: Callable[[], Vectors], rows: slice) -> Vectors:
    return encoded()[rows]


def _checked_settings(index: IndexFolder, encoder: QueryEncoder) -> dict[str, Any]:
    """Return the settings of the vectors from the manifest, after checking that `encoder` made them."""
    index.check_embedded()
    recorded = index.encoder
    if recorded.key != encoder.fingerprint.key:
        found = encoder.fingerprint.name
        raise EncoderMismatchError(index.path, found=found, expected=str(recorded))
    return index.manifest.settings["dense"]


@runtime_checkable
class LexicalScores(Protocol):
    """Scores any papers by their words; `Bm25Retriever` does."""

    def scores_of_papers(
        self, queries: Sequence[Query], rows: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float32]:
        """Return the score of each paper for each query, shape (queries, papers); 0 without a common term."""
        ...


def scores_by_sentence(
    queries: Sequence[Query],
    lexical: LexicalScores | None,
    dense: DenseRetriever | None,
) -> list[SentenceScores]:
    """Return, for each query, what compares papers with its title and each of its sentences, on first use.

    A paper is often cited for one aspect, which the whole draft hides.

    Args:
        queries: The queries.
        lexical: What scores papers by their words, if anything does.
        dense: The dense retriever, if any.
    """
    parts = [*map(sentence_queries, queries)]
    vectors = dense.sentence_vectors(parts) if dense else [None] * len(parts)
    return [
        SentenceScores(
            vectors=encode, bm25=partial(lexical.scores_of_papers, part) if lexical else None
        )
        for part, encode in zip(parts, vectors, strict=True)
    ]


def sentence_queries(query: Query) -> list[Query]:
    """Return queries for the title and the first `MOST` sentences of the abstract of `LEAST_WORDS` words or more."""
    long = [one for one in sentences(query.abstract) if len(one.split()) >= LEAST_WORDS]
    texts = [query.title, *long[:MOST]]
    return [
        replace(query, title=text, abstract="", authors=(), venue="", context="") for text in texts
    ]
