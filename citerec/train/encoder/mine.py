"""Hard negatives that are mined: what BM25 and the base model find together, and the query does not cite."""

import numpy as np

from citerec.config import Bm25Config
from citerec.encode.encoder import Encoder, Vectors
from citerec.encode.spec import Similarity
from citerec.fuse import rrf
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.train.data import TrainingData
from citerec.train.lists import Lists, Rows
from citerec.types import Eligible, Hits, Progress, Query

BLOCK = 512  # queries searched at once
SPARE = 2  # times as many papers are asked of BM25


def mined(
    data: TrainingData, encoder: Encoder, first: int, last: int, *, threads: int, progress: Progress
) -> Lists:
    """Return for each query the papers of rank `first` to `last` in the fused list, best first.

    In the list are papers of the pool that are of no later year than the query and that it does not cite. Those at its
    top are left out: many of them could be cited as well.

    Args:
        data: The queries.
        encoder: The model before training.
        first: The first rank, from 1.
        last: The last.
        threads: Of BM25; 0 for one per processor.
        progress: Receives how far it is.
    """
    forbidden = data.forbidden(data.gold)
    vectors = vectors_of(data, encoder, progress)
    bm25 = Bm25Retriever(data.index, Bm25Config(threads=threads))
    lists: list[Rows] = []
    for start in range(0, len(data.queries), BLOCK):
        rows = data.queries[start : start + BLOCK]
        depth = last + int(data.cited.lengths[start : start + BLOCK].max()) + 1
        words = _bm25(data, bm25, rows, depth)
        nearest = _nearest(data, encoder, vectors, rows, depth)
        for row, *found in zip(rows, words, nearest, strict=True):
            fused = rrf(found, data.index.id_rank).rows
            free = fused[~forbidden.holds(row, fused)]
            lists.append(free[first - 1 : last])
        progress("mining", start + len(rows), len(data.queries))
    ends = np.cumsum([0, *map(len, lists)])
    return Lists(ends, np.concatenate(lists).astype(np.int32))


def vectors_of(data: TrainingData, encoder: Encoder, progress: Progress) -> Vectors:
    """Return the vectors of the pool, shape (papers, dim); those of other papers are 0.

    The queries are of the pool, too.
    """
    rows = np.flatnonzero(data.pool)
    vectors = np.zeros((data.papers, encoder.dim), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].tolist()
        papers = data.index.papers.at(block)
        vectors[block] = encoder.encode([papers[row] for row in block])
        progress("encoding", start + len(block), len(rows))
    return vectors


def _bm25(data: TrainingData, bm25: Bm25Retriever, rows: Rows, depth: int) -> list[Hits]:
    papers = data.index.papers.at(rows.tolist())
    queries = [Query.of(papers[row]) for row in rows.tolist()]
    rules = [
        Eligible(q.year, frozenset({row})) for q, row in zip(queries, rows.tolist(), strict=True)
    ]
    found = bm25.retrieve(
        queries, rules, SPARE * depth
    )  # few papers of their years are not of the pool
    kept = [data.pool[hits.rows] for hits in found]
    return [
        Hits(hits.rows[selection_metric][:depth], hits.scores[selection_metric][:depth])
        for hits, selection_metric in zip(found, kept, strict=True)
    ]


def _nearest(
    data: TrainingData, encoder: Encoder, vectors: Vectors, rows: Rows, depth: int
) -> list[Hits]:
    pool = np.flatnonzero(data.pool).astype(np.int32)
    scores = similarities(encoder.spec.similarity, vectors[rows], vectors[pool])
    scores[~data.eligible(rows[:, None], pool[None, :]) | (rows[:, None] == pool)] = -np.inf
    depth = min(depth, len(pool))
    best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    hits: list[Hits] = []
    for mine, near in zip(scores, best, strict=True):
        columns = near[np.isfinite(mine[near])]
        hits.append(Hits.ordered(pool[columns], mine[columns], data.index.id_rank))
    return hits


def similarities(similarity: Similarity, queries: Vectors, papers: Vectors) -> Vectors:
    """Return how close each query is to each paper, shape (queries, papers): inner product, or minus the distance."""
    products = queries @ papers.T
    if similarity is Similarity.COSINE:
        return products
    squares = (queries**2).sum(1)[:, None] + (papers**2).sum(1)[None, :] - 2 * products
    return -np.sqrt(np.maximum(squares, 0))
