"""Opens the vectors of an index, mapped into memory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.config import DenseConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.index.dense.approximate import ApproximateIndex, Search
from citerec.index.dense.exact import ExactIndex, Found
from citerec.index.dense.flat import map_flat
from citerec.index.dense.library import Vectors, load, metric_of
from citerec.index.dense.structure import BEGINS, check_approximate
from citerec.index.dense.write import NAME
from citerec.types import Eligible

MAX_DIM = 2**16


class DenseIndex(Protocol):
    """The vectors of an index, however they are kept."""

    def nearest(self, vectors: Vectors, eligible: Sequence[Eligible], k: int) -> list[Found]:
        """Return at least the `k` best eligible rows of each query and their scores, in any order.

        Whatever ties with the last of the `k` is among them, too; fewer than `k` come back only where
        fewer are eligible. Scores: the inner product for cosine, minus the distance for L2.
        """
        ...

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors at some rows, as they are kept."""
        ...


def open_dense(
    folder: Path,
    said: Mapping[str, Any],
    years: npt.NDArray[np.int32],
    config: DenseConfig | None = None,
) -> DenseIndex:
    """Open what `write_dense` wrote.

    Args:
        folder: Where it wrote.
        said: What it returned.
        years: The year of each row, which eligibility asks for.
        config: What a search may spend.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not what `said` says, or damaged.
        KeyError: If `said` is not what `write_dense` returns.
    """
    path, config = folder / NAME, config or DenseConfig()
    kind, similarity = DenseKind(said["kind"]), Similarity(said["similarity"])
    rows, dim = int(said["papers"]), int(said["dim"])
    if not 1 <= dim <= MAX_DIM:
        raise ValueError(f"it holds vectors of {dim} dimensions")
    if rows != len(years):
        raise ValueError(f"it holds {rows} vectors for {len(years)} papers")
    if path.stat().st_size != said["bytes"]:
        raise ValueError(f"it has {path.stat().st_size} bytes, expected {said['bytes']}")
    if kind is DenseKind.EXACT:
        raw = map_flat(path, rows=rows, dim=dim, similarity=similarity)
        return ExactIndex(raw, similarity, years)
    hnsw = kind is DenseKind.HNSW
    chosen = said["search"]["ef_search" if hnsw else "nprobe"]
    effort = (config.ef_search if hnsw else config.nprobe) or int(chosen)
    index = _map(path, kind)
    if (index.ntotal, index.d, index.metric_type) != (rows, dim, metric_of(similarity)):
        raise ValueError(f"it holds {index.ntotal} vectors of {index.d} dimensions")
    check_approximate(index, kind, rows)
    return ApproximateIndex(index, Search(kind, effort), similarity, years)


def _map(path: Path, kind: DenseKind) -> Any:
    """Open an approximate index; faiss maps each kind by a flag of its own."""
    with path.open("rb") as stream:
        if stream.read(4) != BEGINS[kind]:
            raise ValueError(f"faiss cannot make it out as an index of the kind {kind}")
    faiss = load()
    flag = faiss.IO_FLAG_MMAP_IFC
    if kind is DenseKind.IVF:
        flag = faiss.IO_FLAG_MMAP | faiss.IO_FLAG_SKIP_PRECOMPUTE_TABLE
    try:
        return faiss.read_index(str(path), flag)
    except (RuntimeError, MemoryError) as error:
        raise ValueError("faiss cannot make it out") from error
