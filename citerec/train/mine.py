"""Hard negatives of the train queries: citations of citations, and papers that BM25 and the base model rank high."""

from collections.abc import Sequence

import numpy as np

from citerec.config import Bm25Config
from citerec.encode.encoder import Encoder, Vectors
from citerec.encode.spec import Similarity
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import rrf
from citerec.train.data import CHUNK, TrainingData
from citerec.train.lists import Lists, Rows
from citerec.types import Eligibility, Hits, Progress, Query

# The best ranks are left out, since many of these papers could also be cited.
MINE_FROM, MINE_TO = 10, 100  # from 1
MAX_HARD = 500  # references of references of a query that are kept, drawn at random
BLOCK = 512  # queries searched at once, papers encoded at once
BM25_FACTOR = 2  # BM25 retrieves so many times more papers, as some are outside the pool


def cited_by_cited(data: TrainingData, *, seed: int = 0) -> Lists:
    """Return for each query the references of its references, without its own references and itself.

    Only references that are train queries have references themselves.

    Source: Cohan et al., ACL 2020, section 2.4, https://arxiv.org/abs/2004.07180.
    """
    rng = np.random.default_rng([seed, 1])
    parts: list[Lists] = []
    forbidden = data.forbidden(data.gold)
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        second_order = (data.links[rows] @ data.links).tocsr()
        second_order.sort_indices()
        lists = Lists(second_order.indptr.astype(np.int64), second_order.indices.astype(np.int32))
        lists = lists.where(~forbidden.holds(rows[lists.segment_ids], lists.indices))
        parts.append(lists.shortened(MAX_HARD, rng))
    return Lists.joined(parts)


def mined(data: TrainingData, encoder: Encoder, *, threads: int, progress: Progress) -> Lists:
    """Return for each query the papers of rank `MINE_FROM` to `MINE_TO` of the fused ranking, best first.

    The ranking holds papers of the pool that are of no later year and that the query does not cite.

    Args:
        data: The queries.
        encoder: The model before the training.
        threads: Of BM25; 0 for one per processor.
        progress: Receives the number of papers and of queries that are done.
    """
    forbidden = data.forbidden(data.gold)
    vectors = _vectors(data, encoder, progress)
    bm25 = Bm25Retriever(data.index, Bm25Config(threads=threads))
    lists: list[Rows] = []
    for start in range(0, len(data.queries), BLOCK):
        rows = data.queries[start : start + BLOCK]
        depth = MINE_TO + int(data.cited.lengths[start : start + BLOCK].max()) + 1
        lexical = _lexical(data, bm25, rows, depth)
        semantic = _semantic(data, encoder, vectors, rows, depth)
        for row, *rankings in zip(rows, lexical, semantic, strict=True):
            fused = rrf(rankings, data.index.id_rank).rows
            lists.append(fused[~forbidden.holds(row, fused)][MINE_FROM - 1 : MINE_TO])
        progress("mining", start + len(rows), len(data.queries))
    return Lists(np.cumsum([0, *map(len, lists)]), np.concatenate(lists).astype(np.int32))


def _vectors(data: TrainingData, encoder: Encoder, progress: Progress) -> Vectors:
    """Return the vectors of the pool, which contains the queries, shape (papers, dim); 0 for other papers."""
    rows = np.flatnonzero(data.pool)
    vectors = np.zeros((data.papers, encoder.dim), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].tolist()
        papers = data.index.papers.at(block)
        vectors[block] = encoder.encode([papers[row] for row in block])
        progress("encoding", start + len(block), len(rows))
    return vectors


def _lexical(data: TrainingData, bm25: Bm25Retriever, rows: Rows, depth: int) -> list[Hits]:
    papers = data.index.papers.at(rows.tolist())
    queries = [Query.of(papers[row]) for row in rows.tolist()]
    rules = [
        Eligibility(query.year, frozenset({row}))
        for query, row in zip(queries, rows.tolist(), strict=True)
    ]
    results = bm25.retrieve(queries, rules, BM25_FACTOR * depth)
    in_pool = [data.pool[hits.rows] for hits in results]
    return [
        Hits(hits.rows[flags][:depth], hits.scores[flags][:depth])
        for hits, flags in zip(results, in_pool, strict=True)
    ]


def _semantic(
    data: TrainingData, encoder: Encoder, vectors: Vectors, rows: Rows, depth: int
) -> Sequence[Hits]:
    pool = np.flatnonzero(data.pool).astype(np.int32)
    scores = similarities(encoder.spec.similarity, vectors[rows], vectors[pool])
    scores[~data.eligible(rows[:, None], pool[None, :]) | (rows[:, None] == pool)] = -np.inf
    depth = min(depth, len(pool))
    best = np.argpartition(-scores, depth - 1, axis=1)[:, :depth]
    hits: list[Hits] = []
    for query_scores, nearest in zip(scores, best, strict=True):
        columns = nearest[np.isfinite(query_scores[nearest])]
        hits.append(Hits.ordered(pool[columns], query_scores[columns], data.index.id_rank))
    return hits


def similarities(similarity: Similarity, queries: Vectors, papers: Vectors) -> Vectors:
    """Return the inner products or negative L2 distances of queries and papers, shape (queries, papers)."""
    products = queries @ papers.T
    if similarity is Similarity.COSINE:
        return products
    squares = (queries**2).sum(1)[:, None] + (papers**2).sum(1)[None, :] - 2 * products
    return -np.sqrt(np.maximum(squares, 0))
