"""Gives each recommended paper the reasons for it: what weighed most, or, without a ranker, what each stage found."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from citerec.rank import reasons
from citerec.rank.custom import LtrModel
from citerec.rank.features import NAMES
from citerec.rank.ltr import RankedCandidates
from citerec.rerank.cascade import NAME as RERANK
from citerec.rerank.cascade import Cascade
from citerec.text import percentage
from citerec.types import Recommendation

CLOSE = 100  # rank of dense retrieval down to which it is a reason
LIKELY = 0.01  # probability from which on a reranker's word is a reason


def weighed(
    ranker: LtrModel,
    found: RankedCandidates,
    result: tuple[Recommendation, ...],
    words: Sequence[Sequence[str]],
    cascade: Cascade | None,
) -> tuple[Recommendation, ...]:
    """Give each paper the reasons that weighed most for the ranker."""
    matrix = found.features_of(found.hits.rows)
    added = ranker.contributions(matrix)
    if cascade and not ranker.reads_reranker:  # which read after it: what it thinks was mixed in
        likely = [
            cascade.probability(i.stages[RERANK].score) if RERANK in i.stages else 0.0
            for i in result
        ]
        matrix[:, NAMES.index(RERANK)] = added[:, NAMES.index(RERANK)] = likely
    cases = [
        reasons.Case(
            item=item,
            features=dict(zip(NAMES, features.tolist(), strict=True)),
            matched=matched,
            row=row,
            facts=found.facts,
        )
        for item, features, matched, row in zip(
            result, matrix, words, found.hits.rows.tolist(), strict=True
        )
    ]
    return tuple(
        replace(case.item, reasons=reasons.reasons(case, mine))
        for case, mine in zip(cases, added, strict=True)
    )


def plain(
    result: tuple[Recommendation, ...], words: Sequence[Sequence[str]], cascade: Cascade | None
) -> tuple[Recommendation, ...]:
    """Give each paper what can be said of it without a ranker.

    Args:
        result: The papers.
        words: Of each, words of the query that matched, what weighed most first.
        cascade: What reranked them, if anything did.
    """
    return tuple(
        replace(item, reasons=tuple(_said(item, matched, cascade)))
        for item, matched in zip(result, words, strict=True)
    )


def _said(item: Recommendation, matched: Sequence[str], cascade: Cascade | None) -> Iterator[str]:
    if matched:
        yield f"matches: {', '.join(matched)}"
    if (dense := item.stages.get("dense")) and dense.rank <= CLOSE:
        yield f"close in meaning: number {dense.rank} of all"
    judged = item.stages.get(RERANK)
    if judged and cascade and (likely := cascade.probability(judged.score)) >= LIKELY:
        yield f"judged citable: probability {percentage(likely)}"
