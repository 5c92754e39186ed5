"""Dense retrieval: finds the papers whose vectors are nearest to a query's."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.config import DenseConfig
from citerec.encode.spec import Fingerprint
from citerec.errors import (
    EncoderMismatchError,
    IndexDamagedError,
    ModelError,
)
from citerec.folder import DENSE, IndexFolder
from citerec.index.vectors import DenseIndex, RowsAndScores, Vectors, on_threads, open_dense
from citerec.types import Eligibility, Hits, Query, QueryVector


class QueryEncoder(Protocol):
    """Turns queries into vectors; `citerec.encode.encoder.Encoder` is one.

    It may have `encode_together`, which is faster for the sentences of one query, and `overlaps`: whether two threads
    may encode at the same time.
    """

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
        dense_settings = _dense_settings(index, encoder)
        self._encoder = encoder
        # the last batch with its vectors
        self._last: tuple[tuple[Query, ...], Vectors] = (), np.zeros((0, 0), np.float32)
        self._dim = int(dense_settings["dim"])
        self._id_rank: npt.NDArray[np.int32] = index.id_rank
        try:
            self._vectors = open_dense(index.path / DENSE, dense_settings, index.papers.years)
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise IndexDamagedError(index.path, [f"{DENSE}/ cannot be read ({error})"]) from error
        self._search: VectorSearch | DenseIndex = search or self._vectors
        self._path = index.path

    @property
    def encoder(self) -> QueryEncoder:
        """What encodes queries."""
        return self._encoder

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

    def encode(self, queries: Sequence[Query]) -> Vectors:
        """Return the vectors of queries that always come together, shape (len(queries), dim).

        Those of `query_vectors` are kept.
        """
        encode = getattr(self._encoder, "encode_together", self._encoder.encode)
        return encode(queries)

    def encode_ahead(self, queries: Sequence[Query]) -> Callable[[], Vectors]:
        """Begin to compute what `encode` returns in a thread, if the encoder can; return what waits for it."""
        if not getattr(self._encoder, "overlaps", False):
            return partial(self.encode, queries)
        return self._ahead.submit(self.encode, queries).result

    @cached_property
    def _ahead(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, thread_name_prefix="encode-ahead")

    def _encoded(self, queries: Sequence[Query]) -> Vectors:
        batch, vectors = self._last
        if batch != (*queries,):
            vectors = self._encoder.encode(queries)
            self._last = (*queries,), vectors
        return vectors

    def search(self, vectors: Vectors, eligible: Sequence[Eligibility], k: int) -> list[Hits]:
        """Return the `k` best eligible papers for each vector, shape (len(eligible), dim).

        A score is the inner product (cosine) or minus the Euclidean distance (L2). A pair of query and
        paper has the same score in any batch, bit by bit.

        Raises:
            IndexDamagedError: If the file of the vectors cannot be read any more.
            ModelError: If a vector is not finite.
            ValueError: If `k` is less than 1, or the vectors have another shape.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if vectors.shape != (len(eligible), self._dim):
            expected = (len(eligible), self._dim)
            raise ValueError(f"the vectors have shape {vectors.shape}, expected {expected}")
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

    @contextmanager
    def _reading(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise IndexDamagedError(self._path, [str(error)]) from error


def _dense_settings(index: IndexFolder, encoder: QueryEncoder) -> dict[str, Any]:
    """Return the settings of the vectors from the manifest, after checking that `encoder` made them."""
    index.check_embedded()
    settings = index.manifest.settings
    try:
        recorded = Fingerprint.from_json(settings["encoder"])
    except (KeyError, TypeError, ValueError) as error:
        raise IndexDamagedError(
            index.path, ["the record of its encoder in the manifest cannot be parsed"]
        ) from error
    if recorded.key != encoder.fingerprint.key:
        raise EncoderMismatchError(
            index.path, found=encoder.fingerprint.name, expected=str(recorded)
        )
    return settings["dense"]
