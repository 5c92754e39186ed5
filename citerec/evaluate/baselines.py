"""What a system must beat, and what none can: random, most cited, and the oracle.

Random and most cited work on row numbers inside an index; the oracle needs only the qrels.
"""

from collections import defaultdict
from hashlib import sha1

import numpy as np
import numpy.typing as npt

from citerec.eligibility import mask
from citerec.evaluate.protocol import EvalConfig, EvalSet, citing_before, known_citations
from citerec.folder import IndexFolder
from citerec.run import Qrels, Run
from citerec.types import Hits, Ranking

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


def citation_order(counts: npt.NDArray[np.int64], id_rank: npt.NDArray[np.int32]) -> Rows:
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
    return rows[np.lexsort((id_rank[rows], -counts[rows]))]


def most_cited_hits(order: Rows, counts: npt.NDArray[np.int64], allowed: Mask, k: int) -> Hits:
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

    Citations are counted once for all queries that know the same ones, not once for each query.
    """
    years = index.papers.years
    own = index.papers.rows_of([query.id for query in task.queries]).tolist()
    alike: defaultdict[tuple[int | None, int], list[int]] = defaultdict(list)
    for i, (query, row) in enumerate(zip(task.queries, own, strict=True)):
        is_earlier = row >= 0 and citing_before(query.year, years[row : row + 1])[0]
        alike[query.year, row if is_earlier else -1].append(i)
    found: dict[int, Hits] = {}
    for (year, row), members in alike.items():
        counts = known_citations(index, year, setting.known_graph, own=row)
        order = citation_order(counts, index.id_rank)
        for i in members:
            allowed = mask(task.eligible[i], years)
            found[i] = most_cited_hits(order, counts, allowed, setting.depth)
    return [found[i] for i in range(len(task.queries))]


def oracle_run(qrels: Qrels, name: str = "oracle") -> Run:
    """Recommend exactly what each query cites: the ceiling of every metric.

    All its metrics are 1 but for F1@20: precision@20 of a query with fewer than 20 citations stays
    below 1, as does recall@20 with more.
    """
    return Run(name, {qid: _in_falling_order(sorted(gold)) for qid, gold in qrels.items()})


def _in_falling_order(ids: list[str]) -> Ranking:
    return Ranking(tuple(ids), tuple(float(n) for n in range(len(ids), 0, -1)))
