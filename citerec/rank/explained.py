"""Reasons of recommended papers: the largest feature contributions, or, without a ranker, the hits of each stage."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from citerec.rank import reasons
from citerec.rank.custom import LtrModel
from citerec.rank.features import NAMES
from citerec.rank.ltr import RankedCandidates
from citerec.rank.reads import reads_probability
from citerec.rerank.cascade import NAME as RERANK
from citerec.rerank.cascade import Cascade
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.context import sentence_of
from citerec.types import CandidateSet, Query, Recommendation

MAX_DENSE_RANK = 100  # the last rank of dense retrieval that is a reason where no model weighs it


def with_reasons(
    query: Query,
    candidates: CandidateSet,
    result: tuple[Recommendation, ...],
    *,
    bm25: Bm25Retriever | None,
    ranker: LtrModel | None,
    cascade: Cascade | None,
) -> tuple[Recommendation, ...]:
    """Add its reasons to each recommended paper.

    Args:
        query: The query; if it has a context, that sentence alone is searched for matching words.
        candidates: The papers of `result`, in the order of the last stage.
        result: The recommended papers.
        bm25: Finds the matching words; None for none.
        ranker: The learning-to-rank model; None without one.
        cascade: The reranker; None without one.
    """
    rows = candidates.rows.tolist()
    words = (
        bm25.matches(sentence_of(query), rows, most=reasons.MOST_WORDS)
        if bm25
        else [[] for _ in rows]
    )
    if isinstance(candidates, RankedCandidates) and ranker:
        return _ranker_reasons(ranker, candidates, result, words, cascade)
    return tuple(
        replace(item, reasons=tuple(_stage_reasons(item, matched, cascade)))
        for item, matched in zip(result, words, strict=True)
    )


def _ranker_reasons(
    ranker: LtrModel,
    candidates: RankedCandidates,
    result: tuple[Recommendation, ...],
    words: Sequence[Sequence[str]],
    cascade: Cascade | None,
) -> tuple[Recommendation, ...]:
    """Add to each paper the reasons with the largest contributions to its score.

    Args:
        ranker: The learning-to-rank model.
        candidates: The papers of `result` in the order of the model.
        result: The recommended papers.
        words: For each paper, the matching words of the query, highest BM25 weight first.
        cascade: The reranker; None without one.
    """
    matrix = candidates.features_of(candidates.hits.rows)
    contributions = ranker.contributions(matrix)
    if cascade and not reads_probability(ranker, cascade):
        # The reranker follows the model, so its probability is used as its contribution.
        probabilities = [
            cascade.probability(i.stages[RERANK].score) if RERANK in i.stages else 0.0
            for i in result
        ]
        matrix[:, NAMES.index(RERANK)] = contributions[:, NAMES.index(RERANK)] = probabilities
    papers = [
        reasons.RankedPaper(
            item=item,
            features=dict(zip(NAMES, features.tolist(), strict=True)),
            matched=matched,
            row=row,
            facts=candidates.facts,
        )
        for item, features, matched, row in zip(
            result, matrix, words, candidates.hits.rows.tolist(), strict=True
        )
    ]
    return tuple(
        replace(paper.item, reasons=reasons.reasons(paper, of_paper))
        for paper, of_paper in zip(papers, contributions, strict=True)
    )


def _stage_reasons(
    item: Recommendation, matched: Sequence[str], cascade: Cascade | None
) -> Iterator[str]:
    if matched:
        yield reasons.matching(matched)
    if (dense := item.stages.get("dense")) and dense.rank <= MAX_DENSE_RANK:
        yield reasons.semantic(dense.rank)
    by_reranker = item.stages.get(RERANK)
    if by_reranker and cascade:
        yield from filter(None, [reasons.reranked(cascade.probability(by_reranker.score))])
