"""Reasons why a paper belongs to a list of references, with counts of the list's papers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from citerec.fuse import ranks_and_scores
from citerec.rank import reasons
from citerec.rank.seeds import (
    CITED_BY,
    CO_CITATION,
    COUPLING,
    SIMILAR_LISTS,
    WEIGHTS,
    SeedCandidates,
    source_points,
)
from citerec.rules.known import GraphSnapshot, Rows, TemporalGraph
from citerec.text import plural
from citerec.types import Recommendation

YOURS = "of your references"


class SeedFacts:
    """Counts the citations that connect papers with a list of references."""

    def __init__(self, graph: TemporalGraph, snapshot: GraphSnapshot, seeds: Rows) -> None:
        """Prepare; only citations of `snapshot` count."""
        self._graph, self._snapshot, self._seeds = graph, snapshot, seeds

    def cited_together(self, row: int) -> int:
        """Return how many papers of the list at least one paper cites together with the paper at `row`."""
        cited = [self._references(citing) for citing in self._citers(row).tolist()]
        return len(np.intersect1d(np.concatenate([*cited, self._seeds[:0]]), self._seeds))

    def cites(self, row: int) -> int:
        """Return how many papers of the list the paper at `row` cites."""
        return len(np.intersect1d(self._references(row), self._seeds))

    def cited_by(self, row: int) -> int:
        """Return how many papers of the list cite the paper at `row`."""
        return len(np.intersect1d(self._citers(row), self._seeds))

    def similar_lists(self, row: int) -> int:
        """Return how many papers cite both the paper at `row` and at least two papers of the list."""
        lists = [self._references(citing) for citing in self._citers(row).tolist()]
        return sum(len(np.intersect1d(one, self._seeds)) > 1 for one in lists)

    def _citers(self, row: int) -> Rows:
        rows = self._graph.citers.citers(row)
        return rows[self._snapshot.is_citing(rows)]

    def _references(self, row: int) -> Rows:
        graph = self._graph.index.graph
        [is_known] = self._snapshot.is_citing(np.array([row], np.int32))
        return graph.references(row) if is_known else graph.indices[:0]


def seed_reasons(
    graph: TemporalGraph,
    candidates: SeedCandidates,
    result: tuple[Recommendation, ...],
    words: Sequence[Sequence[str]],
) -> tuple[Recommendation, ...]:
    """Add to each paper the reasons of the sources that found it, largest share of its score first.

    Args:
        graph: The citation graph.
        candidates: The papers of `result`, in its order.
        result: The recommended papers.
        words: For each paper, the words that it shares with the titles of the list.
    """
    facts = SeedFacts(graph, candidates.snapshot, candidates.seeds)
    places = {name: _points(candidates, name) for name in candidates.hits_by_source}
    reasoned: list[Recommendation] = []
    for i, (item, row) in enumerate(zip(result, candidates.rows.tolist(), strict=True)):
        sources = sorted(item.stages, key=lambda name, at=i: -places[name][at])
        texts = (_text(name, facts, row, item, words[i]) for name in sources)
        reasoned.append(replace(item, reasons=tuple(filter(None, texts))[: reasons.MOST]))
    return tuple(reasoned)


def _points(candidates: SeedCandidates, name: str) -> Sequence[float]:
    """Return what a source adds to the score of each candidate."""
    hits = candidates.hits_by_source[name]
    points = WEIGHTS[name] * source_points(name, hits)
    scaled = replace(hits, scores=points.astype(np.float32))
    return np.nan_to_num(ranks_and_scores(scaled, candidates.rows)[1]).tolist()


def _text(
    source: str, facts: SeedFacts, row: int, item: Recommendation, words: Sequence[str]
) -> str:
    if source == CO_CITATION:
        count = facts.cited_together(row)
        return f"cited together with {count:,} {YOURS}" if count else ""
    if source == SIMILAR_LISTS:
        count = facts.similar_lists(row)
        return f"cited by {plural(count, 'paper')} with several {YOURS}" if count else ""
    if source == COUPLING:
        return f"cites {facts.cites(row):,} {YOURS}"
    if source == CITED_BY:
        return f"cited by {facts.cited_by(row):,} {YOURS}"
    if source == "dense":
        rank = item.stages[source].rank
        return reasons.semantic(rank)
    return reasons.matching(words)
