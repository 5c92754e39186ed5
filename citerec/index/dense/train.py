"""Makes an approximate index: trained on a sample, fed block by block, measured against exact search."""

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

POINTS = 39  # per centroid, under which faiss warns that they are too few to train on
CODES = 256  # of a part of a vector: one byte
LEAST = {DenseKind.HNSW: 1, DenseKind.IVF: POINTS * CODES}  # papers that a kind can be made of
PART = 4  # dimensions that ivf puts into one byte
MOST_CANDIDATES = 8192  # of a search of a graph: beyond, looking at everything is faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How much of what exact search finds an approximate index finds."""

    effort: int  # efSearch or nprobe that it was measured with
    recall: float  # in [0, 1], mean over the queries
    depth: int  # hits that it is over
    queries: int  # papers of the corpus, each left out of its own hits


def check_rows(kind: DenseKind, rows: int) -> None:
    """Check that there are enough papers to make a kind of index.

    Raises:
        ConfigError: If there are not.
    """
    if rows < (least := LEAST.get(kind, 0)):
        raise ConfigError(
            f"--dense-index {kind} needs at least {least} papers to train on, the corpus has {rows}; "
            "use --dense-index exact, which is as fast for so few"
        )


def sample(rows: int, most: int, *, rng: np.random.Generator) -> Numbers:
    """Draw at most `most` rows, none twice, rising."""
    return np.sort(rng.choice(rows, min(rows, most), replace=False))


def trained(
    kind: DenseKind, training: Vectors, rows: int, similarity: Similarity, config: DenseIndexConfig
) -> Any:
    """Return an empty faiss index that vectors can be added to."""
    faiss, metric, dim = load(), metric_of(similarity), training.shape[1]
    if kind is DenseKind.HNSW:
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, config.hnsw_m, metric)
        index.hnsw.efConstruction = config.ef_construction
    else:
        lists = min(config.ivf_lists or int(4 * sqrt(rows)), len(training) // POINTS)
        coarse = faiss.IndexFlat(dim, metric)
        index = faiss.IndexIVFPQ(coarse, dim, lists, parts_of(dim), 8, metric)
        index.cp.seed = index.pq.cp.seed = config.seed
        index.use_precomputed_table = -1  # it may take gigabytes, and is made at each opening
    index.train(training)
    return index


def parts_of(dim: int) -> int:
    """Return how many parts, of a byte each, ivf cuts a vector into: a divisor of `dim`."""
    return max(n for n in range(1, max(dim // PART, 1) + 1) if dim % n == 0)


def add(index: Any, kind: DenseKind, block: Vectors, config: DenseIndexConfig) -> None:
    """Add a block of vectors; the same blocks give the same index if `config.reproducible`."""
    with on_threads(1 if kind is DenseKind.HNSW and config.reproducible else config.threads):
        index.add(np.ascontiguousarray(block))


def depth_of(rows: int, config: DenseIndexConfig) -> int:
    """Return how many hits the recall is over: of few papers any search finds most."""
    return min(config.recall_depth, max(rows // 10, 1), rows - 1)


def spare_itself(own: Numbers, closeness: Closeness, first: int) -> None:
    """Take each query's own row (`own`, one per query) out of a block of a scan."""
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
    """Double the effort of a search until it finds what is asked for, or finds no more.

    Args:
        index: A faiss index, whole.
        kind: Of the index.
        queries: Vectors of the corpus, shape (n, dim).
        own: Their rows, shape (n,).
        truth: The rows that exact search finds, themselves left out, shape (n, depth).
        config: Where to begin, and the recall to reach.
    """
    hnsw = kind is DenseKind.HNSW
    effort = config.ef_search if hnsw else min(config.nprobe, index.nlist)
    most = max(MOST_CANDIDATES, effort) if hnsw else index.nlist
    while True:
        recall = _recall(index, kind, queries, own, truth, effort)
        if recall >= config.recall_target or effort >= most:
            return Measured(
                effort=effort, recall=recall, depth=truth.shape[1], queries=len(queries)
            )
        effort = min(2 * effort, most)


def _recall(
    index: Any, kind: DenseKind, queries: Vectors, own: Numbers, truth: Numbers, effort: int
) -> float:
    depth = truth.shape[1]
    if not depth:
        return 1.0
    _, rows = find(index, kind, queries, depth + 1, effort)
    others = [_without(mine, row, depth) for mine, row in zip(rows, own, strict=True)]
    found = [np.isin(good, mine).mean() for good, mine in zip(truth, others, strict=True)]
    return float(np.mean(found))


def _without(rows: Numbers, own: np.int64, depth: int) -> npt.NDArray[np.int64]:
    return rows[rows != own][:depth]
