"""Writes the vectors of an index; returns their settings for the manifest."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import ModelError, OutputError, writing
from citerec.index.dense import rounded
from citerec.index.dense.approximate import Numbers
from citerec.index.dense.flat import write_flat
from citerec.index.dense.library import NAME, Vectors, load, on_threads
from citerec.index.dense.scan import BLOCK, NORM_SLACK, Blocks, scan
from citerec.index.dense.train import (
    Measured,
    add,
    check_rows,
    depth_of,
    exclude_self,
    sample,
    trained,
    tuned,
)
from citerec.types import Progress, no_progress

Shards = Sequence[Vectors] | Callable[[], Iterable[Vectors]]  # each pass reads them again

EXACT_UP_TO = 1_000_000  # papers; the search of so many takes well under a second
# vectors that are added to an approximate index in one step; hnsw takes seconds for them
_ADDED = 2 * BLOCK


def resolve(kind: DenseKind, rows: int) -> DenseKind:
    """Resolve `DenseKind.AUTO` for a corpus of `rows` papers."""
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

    An exact index needs memory for a shard and a block; an approximate one for itself and its training sample.

    Args:
        folder: Created if it does not exist; an existing file is replaced.
        shards: The vectors in the order of rows: a sequence, or a function that opens them for one more pass.
        rows: The number of vectors.
        dim: The dimension of each vector.
        similarity: How vectors are compared; they must have unit length for cosine.
        config: The kind of index and its parameters.
        progress: Receives the step, and how many vectors (of a measurement: queries) of how many are done.

    Returns:
        The settings for the manifest: the kind, its parameters, and the measured recall.

    Raises:
        ConfigError: If there are too few papers for the kind.
        ModelError: If a vector is not finite, or not of unit length although compared by cosine.
        OutputError: If the file cannot be written, or is read differently than written.
        ValueError: If there are not `rows` vectors of `dim` dimensions.
    """
    config, report = config or DenseIndexConfig(), progress or no_progress
    kind, path = resolve(config.kind, rows), folder / NAME
    check_rows(kind, rows)

    def blocks(size: int, step: str) -> Iterator[tuple[int, Vectors]]:
        for first, block in _blocks_of(shards, size, rows=rows, dim=dim, similarity=similarity):
            yield first, block
            report(step, first + len(block), rows)

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {}
    if kind is DenseKind.EXACT:
        vectors = blocks(BLOCK, "writing vectors")
        if write_exact(folder, vectors, rows=rows, dim=dim, similarity=similarity):
            settings["rounded"] = True
    else:
        settings = _write_approximate(path, kind, blocks, rows, similarity, config, report)
    base = {"kind": str(kind), "similarity": str(similarity), "papers": rows, "dim": dim}
    return base | {"bytes": path.stat().st_size, "faiss": load().__version__} | settings


def write_exact(
    folder: Path, blocks: Blocks, *, rows: int, dim: int, similarity: Similarity
) -> bool:
    """Write vectors as they are, and, if there are many, rounded ones; return whether there are these.

    Args:
        folder: Receives the files.
        blocks: The vectors in the order of rows.
        rows: The number of vectors.
        dim: The dimension of each vector.
        similarity: How vectors are compared.
    """
    flat = partial(write_flat, folder / NAME, rows=rows, dim=dim, similarity=similarity)
    if rows < rounded.FROM:
        flat(blocks)
        return False
    with rounded.RoundedWriter(folder, rows=rows, dim=dim) as writer:
        flat(writer.through(blocks))
    return True


def _write_approximate(
    path: Path,
    kind: DenseKind,
    blocks: Callable[[int, str], Blocks],
    rows: int,
    similarity: Similarity,
    config: DenseIndexConfig,
    report: Progress,
) -> dict[str, Any]:
    rng = np.random.default_rng(config.seed)
    training = sample(rows, config.training_papers, rng=rng)
    query_rows = sample(rows, config.recall_queries, rng=rng)
    with on_threads(config.threads):
        sampled = np.union1d(training, query_rows)
        vectors = _pick(blocks(BLOCK, "reading vectors"), sampled)
        queries = vectors[np.searchsorted(sampled, query_rows)]
        report("training", 0, len(training))
        index = trained(kind, vectors[np.searchsorted(sampled, training)], rows, similarity, config)
        report("training", len(training), len(training))
        del vectors
        truth = _fill(
            index, kind, blocks, queries, query_rows, depth_of(rows, config), similarity, config
        )
        report("measuring recall", 0, len(queries))
        measured = tuned(index, kind, queries, query_rows, truth, config)
        report("measuring recall", len(queries), len(queries))
    try:
        load().write_index(index, str(path))
    except RuntimeError as error:
        raise OutputError(f"cannot write {path}; is there space on the disk?") from error
    return _settings(index, kind, len(training), measured, config)


def _fill(
    index: Any,
    kind: DenseKind,
    blocks: Callable[[int, str], Blocks],
    queries: Vectors,
    query_rows: Numbers,
    depth: int,
    similarity: Similarity,
    config: DenseIndexConfig,
) -> Numbers:
    """Add all vectors; return the rows that exact search finds for each query, shape (queries, depth)."""

    def added() -> Iterator[tuple[int, Vectors]]:
        for first, block in blocks(_ADDED, "indexing vectors"):
            add(index, kind, block, config)
            for start in range(0, len(block), BLOCK):
                yield first + start, block[start : start + BLOCK]

    _, truth = scan(queries, added(), max(depth, 1), similarity, partial(exclude_self, query_rows))
    return truth[:, :depth]


def _settings(
    index: Any, kind: DenseKind, training: int, measured: Measured, config: DenseIndexConfig
) -> dict[str, Any]:
    parameters: dict[str, Any] = {"m": config.hnsw_m, "ef_construction": config.ef_construction}
    if kind is DenseKind.IVF:
        parameters = {"lists": index.nlist, "bytes_per_vector": index.pq.M}
    effort = "ef_search" if kind is DenseKind.HNSW else "nprobe"
    return {
        "made": parameters | {"training_papers": training, "seed": config.seed},
        "search": {effort: measured.effort},
        "recall": {
            "value": round(measured.recall, 4),
            "depth": measured.depth,
            "queries": measured.queries,
            "target": config.recall_target,
        },
    }


def _blocks_of(
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
        _check_vectors(shard, first + pending_count, similarity)
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


def _pick(blocks: Blocks, rows: npt.NDArray[np.int64]) -> Vectors:
    """Return the vectors at `rows` (rising), shape (len(rows), dim); all blocks are read, so all are checked."""
    picked = [
        block[rows[slice(*np.searchsorted(rows, [first, first + len(block)]))] - first]
        for first, block in blocks
    ]
    return np.concatenate(picked)


def _check_vectors(shard: Vectors, first: int, similarity: Similarity) -> None:
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
