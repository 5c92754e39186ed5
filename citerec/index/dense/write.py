"""Writes the vectors of an index, and says what the manifest says of them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import OutputError, writing
from citerec.index.dense.approximate import Numbers
from citerec.index.dense.flat import write_flat
from citerec.index.dense.library import Vectors, load, on_threads
from citerec.index.dense.scan import BLOCK, scan
from citerec.index.dense.shards import Blocks, Shards, blocks_of, pick
from citerec.index.dense.train import (
    Measured,
    add,
    check_rows,
    depth_of,
    sample,
    spare_itself,
    trained,
    tuned,
)
from citerec.types import Progress

NAME = "vectors.faiss"
EXACT_UP_TO = 1_000_000  # papers: a search of so many takes well under a second
_ADDED = 16 * BLOCK  # vectors that are added to an approximate index at once


def resolve(kind: DenseKind, rows: int) -> DenseKind:
    """Decide what `DenseKind.AUTO` means for a corpus."""
    if kind is not DenseKind.AUTO:
        return kind
    return DenseKind.EXACT if rows <= EXACT_UP_TO else DenseKind.HNSW


def write_dense(
    folder: Path,
    shards: Shards,
    *,
    rows: int,
    dim: int,
    similarity: Similarity,
    config: DenseIndexConfig | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the vectors of a corpus into `folder`, as one faiss file whose ids are row numbers.

    An exact index needs no more memory than a shard and a block; an approximate one, itself and its training sample.

    Args:
        folder: Made if need be; a file that is there is replaced.
        shards: The vectors in the order of the rows: a sequence, or what opens them for one more pass.
        rows: How many there are.
        dim: The length of each.
        similarity: How they are compared; of unit length if by cosine.
        config: Which kind of index, and how it is made.
        progress: Receives what is done, how many vectors are through, and of how many.

    Returns:
        What the manifest says of them: the kind, its parameters, and the recall it was measured to have.

    Raises:
        ConfigError: If there are too few papers for the kind.
        ModelError: If a vector is not finite, or not of unit length though compared by cosine.
        OutputError: If it cannot be written, or is not read as it was written.
        ValueError: If there are not `rows` vectors of `dim` dimensions.
    """
    config = config or DenseIndexConfig()
    kind, path = resolve(config.kind, rows), folder / NAME
    check_rows(kind, rows)

    def blocks(size: int, what: str) -> Iterator[tuple[int, Vectors]]:
        for first, block in blocks_of(shards, size, rows=rows, dim=dim, similarity=similarity):
            yield first, block
            if progress:
                progress(what, first + len(block), rows)

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    said: dict[str, Any] = {}
    if kind is DenseKind.EXACT:
        vectors = blocks(BLOCK, "writing vectors")
        write_flat(path, vectors, rows=rows, dim=dim, similarity=similarity)
    else:
        said = _write_approximate(path, kind, blocks, rows, similarity, config)
    base = {"kind": str(kind), "similarity": str(similarity), "papers": rows, "dim": dim}
    return base | {"bytes": path.stat().st_size, "faiss": load().__version__} | said


def _write_approximate(
    path: Path,
    kind: DenseKind,
    blocks: Callable[[int, str], Blocks],
    rows: int,
    similarity: Similarity,
    config: DenseIndexConfig,
) -> dict[str, Any]:
    rng = np.random.default_rng(config.seed)
    training = sample(rows, config.training_papers, rng=rng)
    own = sample(rows, config.recall_queries, rng=rng)
    with on_threads(config.threads):
        both = np.union1d(training, own)
        vectors = pick(blocks(BLOCK, "reading vectors"), both)
        queries = vectors[np.searchsorted(both, own)]
        index = trained(kind, vectors[np.searchsorted(both, training)], rows, similarity, config)
        del vectors
        truth = _fill(index, kind, blocks, queries, own, depth_of(rows, config), similarity, config)
        measured = tuned(index, kind, queries, own, truth, config)
    try:
        load().write_index(index, str(path))
    except RuntimeError as error:
        raise OutputError(f"cannot write {path}; is there space on the disk?") from error
    return _said(index, kind, len(training), measured, config)


def _fill(
    index: Any,
    kind: DenseKind,
    blocks: Callable[[int, str], Blocks],
    queries: Vectors,
    own: Numbers,
    depth: int,
    similarity: Similarity,
    config: DenseIndexConfig,
) -> Numbers:
    """Add every vector; on the way, find for each query the rows that exact search finds."""

    def added() -> Iterator[tuple[int, Vectors]]:
        for first, block in blocks(_ADDED, "indexing vectors"):
            add(index, kind, block, config)
            for start in range(0, len(block), BLOCK):
                yield first + start, block[start : start + BLOCK]

    _, truth = scan(queries, added(), max(depth, 1), similarity, partial(spare_itself, own))
    return truth[:, :depth]


def _said(
    index: Any, kind: DenseKind, training: int, measured: Measured, config: DenseIndexConfig
) -> dict[str, Any]:
    made: dict[str, Any] = {"m": config.hnsw_m, "ef_construction": config.ef_construction}
    if kind is DenseKind.IVF:
        made = {"lists": index.nlist, "bytes_per_vector": index.pq.M}
    effort = "ef_search" if kind is DenseKind.HNSW else "nprobe"
    return {
        "made": made | {"training_papers": training, "seed": config.seed},
        "search": {effort: measured.effort},
        "recall": {
            "value": round(measured.recall, 4),
            "depth": measured.depth,
            "queries": measured.queries,
            "target": config.recall_target,
        },
    }
