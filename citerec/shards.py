"""The files of shards of vectors, and the protocol of what encodes shards elsewhere.

A file is an array of NumPy, shape (papers, dim), float32, followed by the sha256 of its values.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from citerec.io import replacing

if TYPE_CHECKING:
    from citerec.corpus.papers import Papers
    from citerec.encode.encoder import Encoder

CHECKSUM = 32  # bytes of a sha256

Shard = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """A shard that is to be encoded."""

    file: Path
    rows: range  # of papers


class ShardEncoder(Protocol):
    """Encodes shards elsewhere, such as on other machines."""

    def __call__(
        self, encoder: "Encoder", base: Path, papers: "Papers", missing: Sequence[PlannedShard]
    ) -> Iterator[tuple[PlannedShard, Shard]]:
        """Yield each missing shard with its vectors, in any order.

        Args:
            encoder: What would encode them here; the vectors must be those that it gives.
            base: The folder of the index, where a relative folder of the encoder is also searched.
            papers: The papers.
            missing: The shards.
        """
        ...


def is_complete(file: Path, shape: tuple[int, int]) -> bool:
    """Whether a file holds a shard as it was written: its checksum follows the array."""
    try:
        shard = np.load(file, mmap_mode="r")
        with file.open("rb") as stream:
            stream.seek(-CHECKSUM, os.SEEK_END)
            recorded = stream.read()
    except (OSError, ValueError, EOFError):
        return False
    return shard.shape == shape and shard.dtype == np.float32 and recorded == _checksum(shard)


def write_shard(file: Path, vectors: Shard) -> None:
    """Write the vectors of a shard; the file appears complete or not at all."""
    vectors = np.ascontiguousarray(vectors)
    with replacing(file) as temporary, temporary.open("wb") as stream:
        np.save(stream, vectors)
        stream.write(_checksum(vectors))
        stream.flush()
        os.fsync(stream.fileno())


def _checksum(vectors: Shard) -> bytes:
    return hashlib.sha256(vectors.data).digest()
