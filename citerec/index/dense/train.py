"""Builds an approximate index: trains it on a sample, adds blocks, and measures its recall against exact search."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import DenseIndexConfig, DenseKind
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError
from citerec.index.dense.approximate import Numbers, find
from citerec.index.dense.library import Vectors, load, metric_of, on_threads
from citerec.index.dense.scan import Closeness

POINTS = 39  # training vectors per centroid; with fewer faiss warns
CODES = 256  # values of one byte, which encodes one part of a vector
# papers that each kind needs at least
MIN_ROWS = {DenseKind.HNSW: 1, DenseKind.IVF: POINTS * CODES}
PART = 4  # dimensions that ivf encodes in one byte
MOST_CANDIDATES = 8192  # of a graph search: with more, comparing all vectors is faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The recall of an approximate index: the share of exact search's hits that it finds."""

    effort: int  # efSearch or nprobe of the measurement
    recall: float  # in [0, 1], mean over the queries
    depth: int  # hits per query of the measurement
    queries: int  # papers that served as queries, each excluded from its own hits


def check_rows(kind: DenseKind, rows: int) -> None:
    """Check that there are enough papers for a kind of index.

    Raises:
        ConfigError: If there are too few.
    """
    if rows < (least := MIN_ROWS.get(kind, 0)):
        raise ConfigError(
            f"--dense-index {kind} needs at least {least} papers to train on, the corpus has {rows}; "
            "use --dense-index exact, which is as fast for so few"
        )


def sample(rows: int, most: int, *, rng: np.random.Generator) -> Numbers:
    """Draw at most `most` distinct rows, rising."""
    return np.sort(rng.choice(rows, min(rows, most), replace=False))


def trained(
    kind: DenseKind, training: Vectors, rows: int, similarity: Similarity, config: DenseIndexConfig
) -> Any:
    """Return a trained, empty faiss index."""
    faiss, metric, dim = load(), metric_of(similarity), training.shape[1]
    if kind is DenseKind.HNSW:
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, config.hnsw_m, metric)
        index.hnsw.efConstruction = config.ef_construction
    else:
        lists = min(config.ivf_lists or int(4 * sqrt(rows)), len(training) // POINTS)
        coarse = faiss.IndexFlat(dim, metric)
        index = faiss.IndexIVFPQ(coarse, dim, lists, parts_of(dim), 8, metric)
        index.cp.seed = index.pq.cp.seed = config.seed
        # it may take gigabytes, and would be computed at each opening
        index.use_precomputed_table = -1
    index.train(training)
    return index


def parts_of(dim: int) -> int:
    """Return the number of one-byte parts of an ivf vector: the largest divisor of `dim` with parts of 4 or more."""
    return max(n for n in range(1, max(dim // PART, 1) + 1) if dim % n == 0)


def add(index: Any, kind: DenseKind, block: Vectors, config: DenseIndexConfig) -> None:
    """Add a block of vectors; the same blocks give the same index if `config.reproducible`."""
    with on_threads(1 if kind is DenseKind.HNSW and config.reproducible else config.threads):
        index.add(np.ascontiguousarray(block))


def depth_of(rows: int, config: DenseIndexConfig) -> int:
    """Return the number of hits over which the recall is measured: of few papers any search finds most."""
    return min(config.recall_depth, max(rows // 10, 1), rows - 1)


def exclude_self(own: Numbers, closeness: Closeness, first: int) -> None:
    """Remove each query's own row (`own`, shape (queries,)) from a block of a scan."""
    inside = np.flatnonzero((own >= first) & (own < first + closeness.shape[1]))
    closeness[inside, own[inside] - first] = -np.inf


def tuned(
    index: Any,
    kind: DenseKind,
    queries: Vectors,
    own: Numbers,
    truth: Numbers,
    config: DenseIndexConfig,
) -> Measured:
    """Double the effort of a search until it reaches the target recall or the maximal effort.

    The codes of ivf may lose so much that even a search of all lists misses the target. Then the target is that share
    of the recall of all lists: more lists would cost time and find little.

    Args:
        index: A complete faiss index.
        kind: The kind of `index`.
        queries: Vectors of the corpus, shape (queries, dim).
        own: Their rows, shape (queries,).
        truth: The rows that exact search finds, without their own rows, shape (queries, depth).
        config: The first effort, and the target recall.
    """
    hnsw = kind is DenseKind.HNSW
    effort = config.ef_search if hnsw else min(config.nprobe, index.nlist)
    most = max(MOST_CANDIDATES, effort) if hnsw else index.nlist
    recalls = {effort: _recall(index, kind, queries, own, truth, effort)}
    while recalls[effort] < config.recall_target and effort < most:
        effort = min(2 * effort, most)
        recalls[effort] = _recall(index, kind, queries, own, truth, effort)
    if not hnsw and recalls[effort] < config.recall_target:
        least = config.recall_target * recalls[effort]
        effort = next(tried for tried, recall in recalls.items() if recall >= least)
    return Measured(
        effort=effort, recall=recalls[effort], depth=truth.shape[1], queries=len(queries)
    )


def _recall(
    index: Any, kind: DenseKind, queries: Vectors, own: Numbers, truth: Numbers, effort: int
) -> float:
    depth = truth.shape[1]
    if not depth:
        return 1.0
    _, rows = find(index, kind, queries, depth + 1, effort)
    results = [_without(hits, row, depth) for hits, row in zip(rows, own, strict=True)]
    recalls = [
        np.isin(expected, hits).mean() for expected, hits in zip(truth, results, strict=True)
    ]
    return float(np.mean(recalls))


def _without(rows: Numbers, own: np.int64, depth: int) -> npt.NDArray[np.int64]:
    return rows[rows != own][:depth]
