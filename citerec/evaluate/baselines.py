"""Baselines and the ceiling: random, most cited, and the oracle.

Random and most cited work on row numbers of an index; the oracle needs only the qrels.
"""

from hashlib import sha1

import numpy as np
import numpy.typing as npt

from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rules.eligible import mask
from citerec.rules.known import TemporalGraph
from citerec.run import Qrels, Run
from citerec.types import Hits, Ranking, best_first

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]


def query_rng(seed: int, qid: str) -> np.random.Generator:
    """Return the random generator of one query, independent of the other queries.

    Args:
        seed: Of the whole run; not negative.
        qid: The query's id.
    """
    digest = sha1(qid.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def random_hits(allowed: Mask, k: int, rng: np.random.Generator) -> Hits:
    """Draw `k` of the allowed papers without replacement, in random order.

    Args:
        allowed: Eligible mask, one flag per row of the index.
        k: The number of papers; fewer if fewer are allowed.
        rng: The generator of the query, see `query_rng`.

    Returns:
        Hits with the distinct scores n, n - 1, ..., 1.
    """
    rows = np.flatnonzero(allowed).astype(np.int32)
    drawn = rng.choice(rows, size=min(k, len(rows)), replace=False)
    return Hits(drawn, np.arange(len(drawn), 0, -1, dtype=np.float32))


def citation_order(counts: npt.NDArray[np.integer], id_rank: npt.NDArray[np.int32]) -> Rows:
    """Return the cited papers by falling citation count, equal counts by rising docid.

    The counts differ only between queries of different years, so one order serves all queries of a year.

    Args:
        counts: Known citations of each row of the index.
        id_rank: The place of each row's docid among the sorted docids.

    Returns:
        Row numbers of the papers with a count above 0.
    """
    rows = np.flatnonzero(counts > 0).astype(np.int32)
    return rows[best_first(rows, counts[rows], id_rank)]


def most_cited_hits(order: Rows, counts: npt.NDArray[np.integer], allowed: Mask, k: int) -> Hits:
    """Return the `k` most cited of the allowed papers, with their counts as scores.

    Args:
        order: The order of `counts` by `citation_order`.
        counts: Known citations of each row of the index.
        allowed: Eligible mask, one flag per row of the index.
        k: The number of papers; fewer if fewer allowed papers are cited.
    """
    rows = order[allowed[order]][:k]
    return Hits(rows, counts[rows].astype(np.float32))


def random_lists(index: IndexFolder, task: EvalSet, config: EvalConfig) -> list[Hits]:
    """Draw eligible papers for each query of an evaluation set."""
    years = index.papers.years
    return [
        random_hits(mask(rule, years), config.depth, query_rng(config.seed, query.id))
        for query, rule in zip(task.queries, task.eligible, strict=True)
    ]


def most_cited_lists(index: IndexFolder, task: EvalSet, config: EvalConfig) -> list[Hits]:
    """Return the most cited eligible papers for each query of an evaluation set.

    Citations are counted once for all queries with the same known citations.
    """
    graph, years = TemporalGraph(index, config.known_graph), index.papers.years
    snapshots = graph.snapshots(task.queries, task.eligible)
    counts = {snapshot: snapshot.counts for snapshot in dict.fromkeys(snapshots)}
    orders = {snapshot: citation_order(n, index.id_rank) for snapshot, n in counts.items()}
    return [
        most_cited_hits(orders[snapshot], counts[snapshot], mask(rule, years), config.depth)
        for rule, snapshot in zip(task.eligible, snapshots, strict=True)
    ]


def oracle_run(qrels: Qrels, name: str = "oracle") -> Run:
    """Return the run that ranks exactly the gold of each query: the ceiling of every metric.

    All metrics are 1 except F1@20: precision@20 is below 1 for fewer than 20 gold papers, recall@20 for more.
    """
    return Run(name, {qid: _in_falling_order(sorted(gold)) for qid, gold in qrels.items()})


def _in_falling_order(ids: list[str]) -> Ranking:
    return Ranking(tuple(ids), tuple(float(n) for n in range(len(ids), 0, -1)))
