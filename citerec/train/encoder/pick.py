"""Positives and hard negatives of the train queries from the citation graph."""

import numpy as np

from citerec.train.data import CHUNK, TrainingData
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.counts import MAX_HARD, GradedLists, grades
from citerec.train.encoder.neighbours import neighbours
from citerec.train.lists import Lists


def near_neighbours(data: TrainingData, config: EncoderTraining) -> Lists:
    """Return the nearest neighbours of each query in the graph embedding."""
    return neighbours(data, 1, config.nearest, dim=config.graph_dim, seed=config.seed)


def distant_neighbours(data: TrainingData, config: EncoderTraining) -> Lists:
    """Return the neighbours of rank `mine_from` to `mine_to` of each query, without its references."""
    first, last = config.mine_from, config.mine_to
    candidates = neighbours(data, first, last, dim=config.graph_dim, seed=config.seed)
    forbidden = data.forbidden(data.gold)
    return candidates.where(
        ~forbidden.holds(data.queries[candidates.segment_ids], candidates.indices)
    )


def cited_by_cited(data: TrainingData, *, most: int | None = MAX_HARD, seed: int = 0) -> Lists:
    """Return for each query the references of its references, without its own references and itself.

    Args:
        data: The queries; only references that are train queries have references themselves.
        most: Longer lists are cut to a random sample of this size; None for no limit.
        seed: Of the samples.

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
        parts.append(lists if most is None else lists.shortened(most, rng))
    return Lists.joined(parts)


def co_cited(data: TrainingData, *, most: int | None = MAX_HARD, seed: int = 0) -> GradedLists:
    """Return for each query the papers that train queries cite together with it, graded by the number of co-citations.

    The papers are in the pool and of no later year; the most co-cited come first.

    Args:
        data: The queries.
        most: Longer lists of seldom co-cited papers are cut to a random sample of this size; None for no limit.
        seed: Of the samples.
    """
    rng = np.random.default_rng([seed, 4])
    parts: list[GradedLists] = []
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        counts = (data.links.T.tocsr()[rows] @ data.links).tocoo()
        order = np.lexsort((counts.col, -counts.data, counts.row))
        segment_ids, others = counts.row[order], counts.col[order].astype(np.int32)
        query_rows = rows[segment_ids]
        selected = data.pool[others] & (others != query_rows) & data.eligible(query_rows, others)
        segment_ids, others = segment_ids[selected], others[selected]
        often, seldom = grades(segment_ids, counts.data[order][selected], len(rows))
        least = Lists.of(segment_ids[seldom], others[seldom], len(rows))
        parts.append(
            GradedLists(
                Lists.of(segment_ids[often], others[often], len(rows)),
                least if most is None else least.shortened(most, rng),
            )
        )
    return GradedLists.joined(parts)
