"""Popularity bias: the share of cited papers that a system ranks in the top 20, by their age and citation count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from citerec.corpus.papers import NO_YEAR
from citerec.evaluate.overlap import PairBin, found_pairs
from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.rank.known import KnownGraph, TemporalGraph
from citerec.run import Qrels, Run

ByPair = Mapping[str, Mapping[str, int]]  # by query and by paper that it cites

AGES = ((0, 1), (2, 3), (4, 6), (7, 10), (11, 20), (21, None))  # years, both ends in
CITATIONS = ((0, 0), (1, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, None))


@dataclass(frozen=True, slots=True)
class CitedPaperStats:
    """Age and known citations of each cited paper at the time of its query, as far as they are known."""

    ages: ByPair = field(default_factory=dict[str, dict[str, int]])  # in years before the query
    citations: ByPair = field(default_factory=dict[str, dict[str, int]])  # known to the query


def cited_stats(index: IndexFolder, task: EvalSet, known: KnownGraph) -> CitedPaperStats:
    """Return the age and the known citations of each cited paper of each query.

    Args:
        index: The index.
        task: The evaluation set; a pair with an unknown year has no age.
        known: Whose citations count.
    """
    years = index.papers.years
    docids = sorted(frozenset[str]().union(*task.qrels.values()))
    rows = dict(zip(docids, index.papers.rows_of(docids).tolist(), strict=True))
    ages: dict[str, dict[str, int]] = {}
    citations: dict[str, dict[str, int]] = {}
    snapshots = TemporalGraph(index, known).of(task.queries, task.eligible)
    for query, snapshot in zip(task.queries, snapshots, strict=True):
        gold = [(docid, rows[docid]) for docid in sorted(task.qrels[query.id])]
        citations[query.id] = {docid: int(snapshot.counts[row]) for docid, row in gold}
        dated = [(docid, row) for docid, row in gold if years[row] != NO_YEAR]
        if query.year is not None:
            ages[query.id] = {docid: query.year - int(years[row]) for docid, row in dated}
    return CitedPaperStats(ages, citations)


def by_age(cited_stats: CitedPaperStats, qrels: Qrels, runs: Sequence[Run]) -> tuple[PairBin, ...]:
    """Return the recall of each system in bins of the age of cited papers; empty if no age is known."""
    return _bins(cited_stats.ages, AGES, qrels, runs)


def by_citations(
    cited_stats: CitedPaperStats, qrels: Qrels, runs: Sequence[Run]
) -> tuple[PairBin, ...]:
    """Return the recall of each system in bins of the known citations of cited papers."""
    return _bins(cited_stats.citations, CITATIONS, qrels, runs)


def _bins(
    values: ByPair, bounds: Sequence[tuple[int, int | None]], qrels: Qrels, runs: Sequence[Run]
) -> tuple[PairBin, ...]:
    pairs = [
        (qid, docid, values[qid][docid])
        for qid, gold in sorted(qrels.items())
        for docid in sorted(gold)
        if docid in values.get(qid, {})
    ]
    if not pairs:
        return ()
    is_found = {run.name: found_pairs(run, pairs) for run in runs}
    value = np.array([pair[2] for pair in pairs])
    bins: list[PairBin] = []
    for low, high in bounds:
        inside = (value >= low) & (value <= (value.max() if high is None else high))
        if inside.any():
            recall = {name: float(flags[inside].mean()) for name, flags in is_found.items()}
            bins.append(PairBin(_label(low, high), int(inside.sum()), recall))
    return tuple(bins)


def _label(low: int, high: int | None) -> str:
    if high is None:
        return f"{low}+"
    return f"{low}" if low == high else f"{low}-{high}"
