"""Popularity bias: the age and the citation count of cited papers, by which their recall is broken down."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from citerec.corpus.papers import NO_YEAR
from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.rules.known import CitationScope, TemporalGraph

ByPair = Mapping[str, Mapping[str, int]]  # by query and by paper that it cites


@dataclass(frozen=True, slots=True)
class CitedPaperStats:
    """Age and known citations of each cited paper at the time of its query, as far as they are known."""

    ages: ByPair = field(default_factory=dict[str, dict[str, int]])  # in years before the query
    citations: ByPair = field(default_factory=dict[str, dict[str, int]])  # known to the query


def cited_stats(index: IndexFolder, task: EvalSet, scope: CitationScope) -> CitedPaperStats:
    """Return the age and the known citations of each cited paper of each query.

    Args:
        index: The index.
        task: The evaluation set; a pair with an unknown year has no age.
        scope: Whose citations count.
    """
    years = index.papers.years
    docids = sorted(frozenset[str]().union(*task.qrels.values()))
    rows = dict(zip(docids, index.papers.rows_of(docids).tolist(), strict=True))
    ages: dict[str, dict[str, int]] = {}
    citations: dict[str, dict[str, int]] = {}
    snapshots = TemporalGraph(index, scope).snapshots(task.queries, task.eligible)
    for query, snapshot in zip(task.queries, snapshots, strict=True):
        gold = [(docid, rows[docid]) for docid in sorted(task.qrels[query.id])]
        counts = snapshot.citations(np.array([row for _, row in gold], np.int32)).tolist()
        citations[query.id] = {docid: n for (docid, _), n in zip(gold, counts, strict=True)}
        dated = [(docid, row) for docid, row in gold if years[row] != NO_YEAR]
        if query.year is not None:
            ages[query.id] = {docid: query.year - int(years[row]) for docid, row in dated}
    return CitedPaperStats(ages, citations)
