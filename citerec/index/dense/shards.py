"""The vectors of a corpus as they come: shards of any length, read again for each pass over them."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.errors import ModelError
from citerec.index.dense.library import Vectors

Shards = Sequence[Vectors] | Callable[[], Iterable[Vectors]]
Blocks = Iterable[tuple[int, Vectors]]  # each with the row of its first vector

NORM_SLACK = 0.01  # how far from 1 the length of a vector may be that cosine compares


def blocks_of(
    shards: Shards, size: int, *, rows: int, dim: int, similarity: Similarity
) -> Iterator[tuple[int, Vectors]]:
    """Cut the shards into blocks of `size` vectors, whatever their own lengths.

    So what is made of them does not depend on how they were cut.

    Raises:
        ValueError: If they are not `rows` vectors of `dim` dimensions.
        ModelError: If a vector is not finite, or cosine compares them and one is not of unit length.
    """
    first, held, waiting = 0, 0, list[Vectors]()
    for shard in shards() if callable(shards) else shards:
        if shard.ndim != 2 or shard.shape[1] != dim:
            raise ValueError(f"a shard has shape {shard.shape}, expected (n, {dim})")
        _check(shard, first + held, similarity)
        waiting.append(shard)
        held += len(shard)
        if held >= size:
            joined = np.concatenate(waiting, dtype=np.float32)
            whole = held - held % size
            for start in range(0, whole, size):
                yield first + start, joined[start : start + size]
            first, held, waiting = first + whole, held - whole, [joined[whole:]]
    if held:
        yield first, np.concatenate(waiting, dtype=np.float32)
    if first + held != rows:
        raise ValueError(f"the shards hold {first + held} vectors, expected {rows}")


def pick(blocks: Blocks, rows: npt.NDArray[np.int64]) -> Vectors:
    """Return the vectors at `rows`, which rise; all blocks are read, so that all are checked."""
    picked = [
        block[rows[slice(*np.searchsorted(rows, [first, first + len(block)]))] - first]
        for first, block in blocks
    ]
    return np.concatenate(picked)


def _check(shard: Vectors, first: int, similarity: Similarity) -> None:
    norms = np.sqrt(np.einsum("ij,ij->i", shard, shard))
    if len(bad := np.flatnonzero(~np.isfinite(norms))):
        raise ModelError(
            f"the encoder gave paper {first + bad[0]} a vector that is not finite; "
            "is the model whole? try another with --encoder"
        )
    if similarity is Similarity.COSINE and len(
        bad := np.flatnonzero(np.abs(norms - 1) > NORM_SLACK)
    ):
        raise ModelError(
            f"the encoder gave paper {first + bad[0]} a vector of length {norms[bad[0]]:.3g}; "
            "expected 1, as cosine compares them"
        )
