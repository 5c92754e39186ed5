"""Dense retrieval: the papers whose vectors are nearest to a query's."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.config import DenseConfig
from citerec.encode.spec import Fingerprint
from citerec.errors import (
    ConfigError,
    EncoderMismatchError,
    IndexDamagedError,
    IndexReplacedError,
    ModelError,
)
from citerec.folder import IndexFolder
from citerec.index.dense.library import Vectors, on_threads
from citerec.index.dense.read import open_dense
from citerec.manifest import read_manifest
from citerec.types import Eligible, Hits, Query

FOLDER = "dense"


class Encodes(Protocol):
    """Turns queries into vectors; `citerec.encode.encoder.Encoder` is one."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What tells it apart."""
        ...

    def encode(self, papers: Sequence[Query]) -> Vectors:
        """Return the vector of each query, shape (len(papers), dim)."""
        ...


class DenseRetriever:
    """Finds papers by their vectors."""

    name = "dense"

    def __init__(
        self, index: IndexFolder, encoder: Encodes, config: DenseConfig | None = None
    ) -> None:
        """Open the dense part of an index.

        Raises:
            ConfigError: If the index has none.
            EncoderMismatchError: If it was embedded by another encoder.
            IndexDamagedError: If it is not what was written.
            IndexReplacedError: If a build put another index in its place meanwhile.
        """
        self.config = config or DenseConfig()
        said = _said(index, encoder)
        self._encoder = encoder
        self._dim = int(said["dim"])
        self._id_rank: npt.NDArray[np.int32] = index.id_rank
        with _opening(index):
            self._vectors = open_dense(index.path / FOLDER, said, index.papers.years, self.config)

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligible], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query; all are encoded as one batch.

        Raises:
            ModelError: If the encoder gives a vector that is not finite.
            ValueError: If `k` is less than 1.
        """
        return self.search(self._encoder.encode(queries), eligible, k) if queries else []

    def search(self, vectors: Vectors, eligible: Sequence[Eligible], k: int) -> list[Hits]:
        """Return the `k` best eligible papers for each vector, shape (len(eligible), dim).

        A score is the inner product (cosine) or minus the Euclidean distance (L2). An exact index scores a
        pair of query and paper alike in any batch, bit by bit.

        Raises:
            ModelError: If a vector is not finite.
            ValueError: If `k` is less than 1, or the vectors are not of that shape.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if vectors.shape != (len(eligible), self._dim):
            expected = (len(eligible), self._dim)
            raise ValueError(f"the vectors have shape {vectors.shape}, expected {expected}")
        if not np.isfinite(vectors).all():
            raise ModelError("the encoder gave a query a vector that is not finite")
        most = min(k, max(len(self._id_rank), 1))
        with on_threads(self.config.threads):
            found = self._vectors.nearest(np.ascontiguousarray(vectors, np.float32), eligible, most)
        return [Hits.ordered(*hits, self._id_rank, most) for hits in found]

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some papers, shape (len(rows), dim); those of an approximate index are rounded."""
        return self._vectors.vectors(rows)


def _said(index: IndexFolder, encoder: Encodes) -> dict[str, Any]:
    """Return what the manifest says of the vectors, if `encoder` is the one that they are of."""
    settings = index.manifest.settings
    if not settings.get("dense"):
        raise ConfigError(
            f"{index.path} has no vectors; embed its papers: "
            f"citerec encode --index {index.path} --encoder MODEL"
        )
    try:
        of = Fingerprint.from_json(settings["encoder"])
    except (KeyError, TypeError, ValueError) as error:
        raise IndexDamagedError(index.path, ["what it says of its encoder"]) from error
    if of.key != encoder.fingerprint.key:
        raise EncoderMismatchError(index.path, found=encoder.fingerprint.name, expected=str(of))
    return settings["dense"]


@contextmanager
def _opening(index: IndexFolder) -> Generator[None]:
    """Turn what goes wrong with damaged or replaced files into an error that says what to do."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if read_manifest(index.path) != index.manifest:
            raise IndexReplacedError(index.path) from error
        raise IndexDamagedError(index.path, [f"{FOLDER}/ cannot be read: {error}"]) from error
    if read_manifest(index.path) != index.manifest:
        raise IndexReplacedError(index.path)
