"""Opens the vectors of an index as memory maps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.config import DenseConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.index.dense.exact import ExactIndex, RowsAndScores
from citerec.index.dense.flat import FlatFile, map_flat
from citerec.index.dense.library import NAME, Vectors, metric_of
from citerec.index.dense.rounded import Rounded
from citerec.types import Eligibility

MAX_DIM = 2**16


class DenseIndex(Protocol):
    """The vectors of an index of any kind."""

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of at least the `k` best eligible papers of each query, in any order.

        Hits that tie with the last of the `k` are included; fewer than `k` are returned only if fewer papers
        are eligible. Scores: the inner product for cosine, minus the distance for L2.
        """
        ...

    def vectors(self, rows: npt.NDArray[np.int32]) -> Vectors:
        """Return the vectors of some rows, shape (len(rows), dim); compressed ones are decompressed."""
        ...

    def summed_directions(
        self, ends: npt.NDArray[np.integer], rows: npt.NDArray[np.int32]
    ) -> Vectors | None:
        """Return the sum of the directions of each list of papers; None if that takes their vectors anyway.

        Args:
            ends: Where each list begins and ends, shape (lists + 1,).
            rows: The lists one after the other.

        Returns:
            Shape (lists, dim).
        """
        ...


def open_dense(
    folder: Path,
    settings: Mapping[str, Any],
    years: npt.NDArray[np.int32],
    config: DenseConfig | None = None,
) -> DenseIndex:
    """Open the vectors that `write_dense` wrote.

    Args:
        folder: The folder that it wrote to.
        settings: The settings that it returned.
        years: The year of each row, shape (papers,), for eligibility.
        config: The search parameters.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the file is damaged, or does not match `settings`.
        KeyError: If `settings` is not what `write_dense` returns.
    """
    path, config = folder / NAME, config or DenseConfig()
    kind, similarity = DenseKind(settings["kind"]), Similarity(settings["similarity"])
    rows, dim = int(settings["papers"]), int(settings["dim"])
    if not 1 <= dim <= MAX_DIM:
        raise ValueError(f"it holds vectors of {dim} dimensions")
    if rows != len(years):
        raise ValueError(f"it holds {rows} vectors for {len(years)} papers")
    if path.stat().st_size != settings["bytes"]:
        raise ValueError(f"it has {path.stat().st_size} bytes, expected {settings['bytes']}")
    if kind is DenseKind.EXACT:
        return open_exact(
            folder, years, dim=dim, similarity=similarity, rounded=bool(settings.get("rounded"))
        )
    from citerec.index.dense.approximate import ApproximateIndex, Search
    from citerec.index.dense.structure import check_approximate, map_approximate

    hnsw = kind is DenseKind.HNSW
    chosen = settings["search"]["ef_search" if hnsw else "nprobe"]
    effort = (config.ef_search if hnsw else config.nprobe) or int(chosen)
    index = map_approximate(path, kind)
    if (index.ntotal, index.d, index.metric_type) != (rows, dim, metric_of(similarity)):
        raise ValueError(f"it holds {index.ntotal} vectors of {index.d} dimensions")
    check_approximate(index, kind, rows)
    return ApproximateIndex(index, Search(kind, effort), similarity, years)


def open_exact(
    folder: Path,
    years: npt.NDArray[np.int32],
    *,
    dim: int,
    similarity: Similarity,
    rounded: bool,
) -> ExactIndex:
    """Open the vectors that `write_exact` wrote.

    Args:
        folder: The folder that it wrote to.
        years: The year of each row, shape (papers,).
        dim: The dimension of each vector.
        similarity: How vectors are compared.
        rounded: Whether it wrote rounded vectors, too.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If a file is damaged.
    """
    path, rows = folder / NAME, len(years)
    raw = map_flat(path, rows=rows, dim=dim, similarity=similarity)
    if not rounded:
        return ExactIndex(raw, similarity, years)
    codes = Rounded.open(folder, rows=rows, dim=dim, similarity=similarity)
    file = None
    if FlatFile.is_supported():
        file = FlatFile(path, rows=rows, dim=dim, similarity=similarity)
    return ExactIndex(raw, similarity, years, codes, file)
