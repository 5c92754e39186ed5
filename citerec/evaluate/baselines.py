"""What a system must beat, and what none can: random, most cited, and the oracle.

Random and most cited work on row numbers inside an index; the oracle needs only the qrels.
"""

from hashlib import sha1

import numpy as np
import numpy.typing as npt

from citerec.eligibility import mask
from citerec.evaluate.protocol import EvalConfig, EvalSet
from citerec.folder import IndexFolder
from citerec.rank.known import TemporalGraph
from citerec.run import Qrels, Run
from citerec.types import Hits, Ranking, best_first

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]


def query_rng(seed: int, qid: str) -> np.random.Generator:
    """Make the generator of one query, the same wherever the query stands among the others.

    Args:
        seed: Of the whole run; not negative.
        qid: The query's id.
    """
    digest = sha1(qid.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "big")])


def random_hits(allowed: Mask, k: int, rng: np.random.Generator) -> Hits:
    """Draw `k` of the allowed papers, without replacement and in random order.

    Args:
        allowed: One flag per row of the index.
        k: How many; fewer come back only where fewer are allowed.
        rng: The query's own, see `query_rng`.

    Returns:
        Hits with scores n, n - 1, ..., 1: no two are equal.
    """
    rows = np.flatnonzero(allowed).astype(np.int32)
    drawn = rng.choice(rows, size=min(k, len(rows)), replace=False)
    return Hits(drawn, np.arange(len(drawn), 0, -1, dtype=np.float32))


def citation_order(counts: npt.NDArray[np.integer], id_rank: npt.NDArray[np.int32]) -> Rows:
    """Order the papers that are cited at all: falling count, equal counts by rising docid.

    Counts differ between queries of different years only, so one order serves all queries of a year.

    Args:
        counts: Citations known for each row of the index.
        id_rank: The place of each row's docid among the sorted docids.

    Returns:
        Row numbers of the papers with a count above 0; a paper that nobody cites is not among the
        most cited, and its place would be chance.
    """
    rows = np.flatnonzero(counts > 0).astype(np.int32)
    return rows[best_first(rows, counts[rows], id_rank)]


def most_cited_hits(order: Rows, counts: npt.NDArray[np.integer], allowed: Mask, k: int) -> Hits:
    """Take the `k` most cited of the allowed papers, scored by their counts.

    Args:
        order: What `citation_order` made of `counts`.
        counts: Citations known for each row of the index.
        allowed: One flag per row of the index.
        k: How many; fewer come back where fewer allowed papers are cited.
    """
    rows = order[allowed[order]][:k]
    return Hits(rows, counts[rows].astype(np.float32))


def random_lists(index: IndexFolder, task: EvalSet, setting: EvalConfig) -> list[Hits]:
    """Draw eligible papers for each query of a task."""
    years = index.papers.years
    return [
        random_hits(mask(rule, years), setting.depth, query_rng(setting.seed, query.id))
        for query, rule in zip(task.queries, task.eligible, strict=True)
    ]


def most_cited_lists(index: IndexFolder, task: EvalSet, setting: EvalConfig) -> list[Hits]:
    """Find the most cited eligible papers for each query of a task.

    Papers are ordered once for all queries that know the same citations.
    """
    graph, years = TemporalGraph(index, setting.known_graph), index.papers.years
    snapshots = graph.of(task.queries, task.eligible)
    orders = {one: citation_order(one.counts, index.id_rank) for one in dict.fromkeys(snapshots)}
    return [
        most_cited_hits(orders[known], known.counts, mask(rule, years), setting.depth)
        for rule, known in zip(task.eligible, snapshots, strict=True)
    ]


def oracle_run(qrels: Qrels, name: str = "oracle") -> Run:
    """Recommend exactly what each query cites: the ceiling of every metric.

    All its metrics are 1 but for F1@20: precision@20 of a query with fewer than 20 citations stays
    below 1, as does recall@20 with more.
    """
    return Run(name, {qid: _in_falling_order(sorted(gold)) for qid, gold in qrels.items()})


def _in_falling_order(ids: list[str]) -> Ranking:
    return Ranking(tuple(ids), tuple(float(n) for n in range(len(ids), 0, -1)))
