"""Which papers are positives of a query, and which are hard negatives, read off the citations."""

import numpy as np

from citerec.train.data import CHUNK, TrainingData
from citerec.train.encoder.config import EncoderTraining
from citerec.train.encoder.counts import KEPT, Graded, grades
from citerec.train.encoder.neighbours import neighbours
from citerec.train.lists import Lists


def near_neighbours(data: TrainingData, config: EncoderTraining) -> Lists:
    """Return the neighbours of each query that are near."""
    return neighbours(data, 1, config.nearest, dim=config.graph_dim, seed=config.seed)


def distant_neighbours(data: TrainingData, config: EncoderTraining) -> Lists:
    """Return the neighbours of each query that are neither near nor far, without what it cites."""
    first, last = config.mine_from, config.mine_to
    found = neighbours(data, first, last, dim=config.graph_dim, seed=config.seed)
    cites = data.forbidden(data.gold)
    return found.where(~cites.holds(data.queries[found.owners], found.indices))


def cited_by_cited(data: TrainingData, *, most: int | None = KEPT, seed: int = 0) -> Lists:
    """Return for each query what the papers that it cites cite, without what it cites and itself.

    Args:
        data: The queries; of the papers that they cite, those that are train queries themselves have citations.
        most: A list of more is cut down to as many, at random; None for all.
        seed: Of that.

    Source: Cohan et al., ACL 2020, section 2.4, https://arxiv.org/abs/2004.07180.
    """
    rng = np.random.default_rng([seed, 1])
    parts: list[Lists] = []
    forbidden = data.forbidden(data.gold)
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        found = (data.links[rows] @ data.links).tocsr()
        found.sort_indices()
        lists = Lists(found.indptr.astype(np.int64), found.indices.astype(np.int32))
        lists = lists.where(~forbidden.holds(rows[lists.owners], lists.indices))
        parts.append(lists if most is None else lists.shortened(most, rng))
    return Lists.joined(parts)


def co_cited(data: TrainingData, *, most: int | None = KEPT, seed: int = 0) -> Graded:
    """Return for each query the papers that train queries cite together with it, often or seldom.

    All of them are of the pool and of no later year; those that are cited with it most often come first.

    Args:
        data: The queries.
        most: A list of those that are seldom so is cut down to as many, at random; None for all.
        seed: Of that.
    """
    rng = np.random.default_rng([seed, 4])
    parts: list[Graded] = []
    for start in range(0, len(data.queries), CHUNK):
        rows = data.queries[start : start + CHUNK]
        found = (data.links.T.tocsr()[rows] @ data.links).tocoo()
        order = np.lexsort((found.col, -found.data, found.row))
        owners, others = found.row[order], found.col[order].astype(np.int32)
        asked = rows[owners]
        selection_metric = data.pool[others] & (others != asked) & data.eligible(asked, others)
        owners, others = owners[selection_metric], others[selection_metric]
        often, seldom = grades(owners, found.data[order][selection_metric], len(rows))
        least = Lists.of(owners[seldom], others[seldom], len(rows))
        parts.append(
            Graded(
                Lists.of(owners[often], others[often], len(rows)),
                least if most is None else least.shortened(most, rng),
            )
        )
    return Graded.joined(parts)
