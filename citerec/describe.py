"""What a user is told: the settings of the stages in use, and why a query has no recommendations or unreliable ones."""

import numpy as np

from citerec.config import RecommendConfig, RerankConfig
from citerec.corpus.papers import NO_YEAR
from citerec.folder import IndexFolder
from citerec.rank.ltr import LtrModel, reads_probability
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.hybrid import UNREADABLE
from citerec.rules.known import within
from citerec.text import plural
from citerec.tuned import fusion_in_use, rerank_weight_in_use
from citerec.types import CandidateSet, Eligibility, Query, QueryKind


def describe_reranker(reranker: OpenReranker, ranker: LtrModel | None) -> str:
    """Describe a reranker and its settings in one line.

    Args:
        reranker: The reranker.
        ranker: The learning-to-rank model; None for none.
    """
    interpolates = ranker and not reads_probability(ranker, reranker)
    return f"{reranker}, against {ranker}" if interpolates else str(reranker)


def describe_settings(
    index: IndexFolder,
    config: RecommendConfig,
    reranker: OpenReranker | None,
    ranker: LtrModel | None,
    *,
    fuses: bool,
) -> tuple[str, ...]:
    """Describe the settings of the stages and the origin of each (tuned, default or option), one per line.

    Args:
        index: The index.
        config: The settings that were given.
        reranker: The reranker; None for none.
        ranker: The learning-to-rank model; None for none.
        fuses: Whether several retrievers are fused.
    """
    lines = [f"fusion: {fusion_in_use(index, config)}"] if fuses else []
    if reranker and ranker and reads_probability(ranker, reranker):
        lines.append(f"rerank weight: none, the probability is a feature of {ranker}")
    elif reranker:
        last, requested = reranker, config.reranker
        weight = rerank_weight_in_use(
            index,
            last.weight,
            str(last.settings["weights"]),
            is_option=isinstance(requested, RerankConfig) and requested.weight is not None,
            has_ranker=ranker is not None,
        )
        lines.append(f"rerank weight: {weight}")
    origin = "default" if config.ranker == "auto" else "option"
    return (*lines, f"ranker: {ranker or 'none'} ({origin})")


def explain_no_results(
    index: IndexFolder,
    rule: Eligibility,
    *,
    has_vectors: bool,
    kind: QueryKind = QueryKind.DRAFT,
) -> str:
    """Return why no paper was found: no paper is eligible, or no eligible paper has a word of the query.

    Args:
        index: The index that was searched.
        rule: Which papers are eligible.
        has_vectors: Whether vectors were searched; dense retrieval finds every eligible paper.
        kind: What was searched.
    """
    years, papers = index.papers.years, len(index.papers)
    in_time = within(Eligibility(rule.year_max), years, np.arange(papers, dtype=np.int32))
    too_late = papers - int(in_time.sum())
    excluded = sum(bool(in_time[row]) for row in rule.excluded)
    if too_late == papers:
        first = int(years[years != NO_YEAR].min())
        return (
            f"{_all(papers)} later than {rule.year_max}: the earliest is of {first}; "
            f"give --year-max {first} or a later year, or correct the draft's year"
        )
    if excluded + too_late == papers:
        bound = (
            f", and {plural(too_late, 'paper is', 'papers are')} later than {rule.year_max}"
            if too_late
            else ""
        )
        return (
            f"{plural(excluded, 'paper is', 'papers are')} excluded{bound}: none of {papers:,} is eligible; "
            "leave out --exclude or --cited, or name fewer papers in them"
        )
    searched = plural(papers - too_late - excluded, "eligible paper")
    if kind is QueryKind.REFERENCES:
        return f"no citation and no word of a title connects the references with the {searched}"
    no_match = f"no word of the {kind} occurs in the {searched}"
    if has_vectors:
        return f"nothing was found in the {searched}; add an abstract, or a title with more words"
    if index.is_embedded:
        return f"{no_match}, and its vectors were not searched; leave out --encoder none"
    return (
        f"{no_match}, and this index has no vectors for a semantic search; add an abstract, or vectors: "
        f"citerec encode --index {index.path} --encoder MODEL"
    )


def unmatched_notice(query: Query, candidates: CandidateSet) -> str:
    """Return a notice if BM25 was searched and found no word of the query in any eligible paper; else nothing."""
    words = candidates.hits_by_source.get("bm25")
    if words is None or len(words) or not len(candidates.hits):
        return ""
    if query.kind is QueryKind.REFERENCES:
        return ""
    return (
        f"no word of this {query.kind} occurs in an eligible paper, so the list may be unreliable; "
        "check the spelling and the language, or add an abstract"
    )


def unreadable_notice(query: Query, share: float) -> str:
    """Return a notice if an index does not cover the script or language of a query; else nothing.

    Args:
        query: The query.
        share: The share of its letters that are unreadable, in [0, 1].
    """
    if share < UNREADABLE or query.kind is QueryKind.REFERENCES:
        return ""
    return (
        f"most words of this {query.kind} are in a script or language that the index does not cover "
        f"({share:.0%} of the letters); the recommendations are unreliable"
    )


def _all(papers: int) -> str:
    return "the only paper is" if papers == 1 else f"all {papers:,} papers are"
