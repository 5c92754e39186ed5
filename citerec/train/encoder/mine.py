"""Mines hard negatives: papers that BM25 and the base model rank high and that the query does not cite."""

import numpy as np

from citerec.config import Bm25Config
from citerec.encode.encoder import Encoder, Vectors
from citerec.encode.spec import Similarity
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import rrf
from citerec.train.data import IndexPart, TrainingData
from citerec.train.lists import Lists, Rows
from citerec.types import Eligibility, Hits, Progress, Query

MINE_FROM, MINE_TO = 10, 100  # ranks of mined negatives and of distant neighbours, from 1
BLOCK = 512  # queries searched at once, papers encoded at once
BM25_FACTOR = 2  # BM25 retrieves so many times more papers, as some are outside the pool


def mined(
    data: TrainingData, encoder: Encoder, first: int, last: int, *, threads: int, progress: Progress
) -> Lists:
    """Return for each query the papers of rank `first` to `last` of the fused ranking, best first.

    The ranking holds papers of the pool that are of no later year and that the query does not cite. The top ranks are
    left out, since many of these papers could also be cited.

    Args:
        data: The queries.
        encoder: The model before the training.
        first: The first rank, from 1.
        last: The last rank.
        threads: Of BM25; 0 for one per processor.
        progress: Receives the number of queries that are done.
    """
    lists = [
        _mined(part, encoder, first, last, threads=threads, progress=progress).shifted(part.start)
        for part in data.by_index()
    ]
    return Lists.joined(lists)


def _mined(
    part: IndexPart, encoder: Encoder, first: int, last: int, *, threads: int, progress: Progress
) -> Lists:
    """Return the mined papers of one index."""
    index, data = part.index, part.data
    forbidden = data.forbidden(data.gold)
    vectors = vectors_of(data, encoder, progress)
    bm25 = Bm25Retriever(index, Bm25Config(threads=threads))
    lists: list[Rows] = []
    for start in range(0, len(data.queries), BLOCK):
        rows = data.queries[start : start + BLOCK]
        depth = last + int(data.cited.lengths[start : start + BLOCK].max()) + 1
        lexical = _bm25(data, bm25, rows, depth)
        semantic = _nearest(part, encoder, vectors, rows, depth)
        for row, *rankings in zip(rows, lexical, semantic, strict=True):
            fused = rrf(rankings, index.id_rank).rows
            candidates = fused[~forbidden.holds(row, fused)]
            lists.append(candidates[first - 1 : last])
        progress("mining", start + len(rows), len(data.queries))
    ends = np.cumsum([0, *map(len, lists)])
    return Lists(ends, np.concatenate(lists).astype(np.int32))


def vectors_of(data: TrainingData, encoder: Encoder, progress: Progress) -> Vectors:
    """Return the vectors of the pool, shape (papers, dim); 0 for other papers.

    The pool contains the queries.
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
        Eligibility(q.year, frozenset({row})) for q, row in zip(queries, rows.tolist(), strict=True)
    ]
    results = bm25.retrieve(
        queries, rules, BM25_FACTOR * depth
    )  # few eligible papers are outside the pool
    in_pool = [data.pool[hits.rows] for hits in results]
    return [
        Hits(hits.rows[flags][:depth], hits.scores[flags][:depth])
        for hits, flags in zip(results, in_pool, strict=True)
    ]


def _nearest(
    part: IndexPart, encoder: Encoder, vectors: Vectors, rows: Rows, depth: int
) -> list[Hits]:
    index, data = part.index, part.data
    pool = np.flatnonzero(data.pool).astype(np.int32)
    scores = similarities(encoder.spec.similarity, vectors[rows], vectors[pool])
    scores[~data.eligible(rows[:, None], pool[None, :]) | (rows[:, None] == pool)] = -np.inf
    depth = min(depth, len(pool))
    best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    hits: list[Hits] = []
    for query_scores, nearest in zip(scores, best, strict=True):
        columns = nearest[np.isfinite(query_scores[nearest])]
        hits.append(Hits.ordered(pool[columns], query_scores[columns], index.id_rank))
    return hits


def similarities(similarity: Similarity, queries: Vectors, papers: Vectors) -> Vectors:
    """Return the inner products or negative L2 distances of queries and papers, shape (queries, papers)."""
    products = queries @ papers.T
    if similarity is Similarity.COSINE:
        return products
    squares = (queries**2).sum(1)[:, None] + (papers**2).sum(1)[None, :] - 2 * products
    return -np.sqrt(np.maximum(squares, 0))
