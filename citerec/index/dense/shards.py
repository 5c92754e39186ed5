"""Reads the vectors of a corpus from shards of any length; each pass over them reads them again."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.errors import ModelError
from citerec.index.dense.library import Vectors
from citerec.index.dense.scan import NORM_SLACK, Blocks

Shards = Sequence[Vectors] | Callable[[], Iterable[Vectors]]


def blocks_of(
    shards: Shards, size: int, *, rows: int, dim: int, similarity: Similarity
) -> Iterator[tuple[int, Vectors]]:
    """Yield the vectors as blocks of `size`, whatever the lengths of the shards.

    So an index does not depend on the lengths of the shards.

    Raises:
        ValueError: If there are not `rows` vectors of `dim` dimensions.
        ModelError: If a vector is not finite, or not of unit length although cosine compares them.
    """
    first, pending_count, waiting = 0, 0, list[Vectors]()
    for shard in shards() if callable(shards) else shards:
        if shard.ndim != 2 or shard.shape[1] != dim:
            raise ValueError(f"a shard has shape {shard.shape}, expected (n, {dim})")
        _check(shard, first + pending_count, similarity)
        waiting.append(shard)
        pending_count += len(shard)
        if pending_count >= size:
            joined = np.concatenate(waiting, dtype=np.float32)
            full = pending_count - pending_count % size
            for start in range(0, full, size):
                yield first + start, joined[start : start + size]
            first, pending_count, waiting = first + full, pending_count - full, [joined[full:]]
    if pending_count:
        yield first, np.concatenate(waiting, dtype=np.float32)
    if first + pending_count != rows:
        raise ValueError(f"the shards hold {first + pending_count} vectors, expected {rows}")


def pick(blocks: Blocks, rows: npt.NDArray[np.int64]) -> Vectors:
    """Return the vectors at `rows` (rising), shape (len(rows), dim); all blocks are read, so all are checked."""
    picked = [
        block[rows[slice(*np.searchsorted(rows, [first, first + len(block)]))] - first]
        for first, block in blocks
    ]
    return np.concatenate(picked)


def _check(shard: Vectors, first: int, similarity: Similarity) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", shard, shard))
    if len(wrong := np.flatnonzero(~np.isfinite(norms))):
        raise ModelError(
            f"the encoder gave paper {first + wrong[0]} a vector that is not finite; "
            "is the model complete? try another with --encoder"
        )
    if similarity is Similarity.COSINE and len(
        wrong := np.flatnonzero(np.abs(norms - 1) > NORM_SLACK)
    ):
        raise ModelError(
            f"the encoder gave paper {first + wrong[0]} a vector of length {norms[wrong[0]]:.3g}; "
            "expected 1, as cosine compares them"
        )
