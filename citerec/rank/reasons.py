"""Reasons of a recommendation as text: the features with the largest contributions to the score of the ranker.

Without a ranker the hits of each stage are the reasons. Only citations that are known at the query's time count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.rank.expand import NeighbourScores
from citerec.rank.features import NAMES, Feature
from citerec.rank.ltr import LtrModel, RankedCandidates, reads_probability
from citerec.rerank.reranker import NAME as RERANK
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import sentence_of
from citerec.rules.known import RECENT_YEARS, GraphSnapshot, Rows, TemporalGraph
from citerec.text import percentage, plural
from citerec.types import CandidateSet, Query, Recommendation

MOST = 4  # reasons per paper
MOST_WORDS = 6  # maximum number of matching words in a reason
MIN_PROBABILITY = 0.01  # least probability of the reranker that is a reason
MAX_DENSE_RANK = 100  # the last rank of dense retrieval that is a reason where no model weighs it
_TITLE = 60  # maximum characters of a title


@dataclass(frozen=True, slots=True)
class CitedBy:
    """The neighbours that cite the candidate."""

    count: int  # neighbours that cite the candidate
    neighbours: int  # all neighbours whose references are known
    closest: str  # the title of the closest neighbour that cites the candidate


@dataclass(frozen=True, slots=True)
class CoCitation:
    """The papers that cite both the candidate and a neighbour."""

    partner: str  # the title of the neighbour
    citing: str  # the title of the newest paper that cites both
    others: int  # the number of other papers that cite both


@dataclass(frozen=True, slots=True)
class SharedReferences:
    """The references that the candidate shares with another paper."""

    count: int  # shared references
    # the title of the other paper; if that is the query, the title of a shared reference
    with_paper: str


class Facts:
    """Looks up the citations that connect papers with one query."""

    def __init__(
        self,
        graph: TemporalGraph,
        snapshot: GraphSnapshot,
        neighbour_scores: NeighbourScores,
        cited: Sequence[int] = (),
    ) -> None:
        """Prepare; `neighbour_scores` hold the neighbours of the query, `cited` its known references."""
        self._graph, self._snapshot, self._scores = graph, snapshot, neighbour_scores
        self._cited = np.array(sorted(cited), np.int32)

    def cited_by_similar(self, row: int) -> CitedBy | None:
        """Return the neighbours that cite a paper; None if there is none."""
        neighbours = self._scores.neighbours
        citing = neighbours[np.isin(neighbours, self._citing(row))]
        if not len(citing):
            return None
        return CitedBy(len(citing), len(neighbours), self._title(citing[0]))

    def co_citation(self, row: int) -> CoCitation | None:
        """Return the neighbour with the most co-citations of a paper; None without a co-citation."""
        best, both = self._largest(row, self._scores.cited_neighbours, self._citing)
        if not len(both):
            return None
        years = self._graph.index.papers.years[both]
        newest = both[np.argmax(np.where(years == NO_YEAR, -1, years))]
        return CoCitation(self._title(best), self._title(newest), len(both) - 1)

    def shared_references(self, row: int) -> SharedReferences | None:
        """Return the neighbour that shares the most references with a paper; None if no reference is shared."""
        best, both = self._largest(row, self._scores.neighbours, self._references)
        return SharedReferences(len(both), self._title(best)) if len(both) else None

    def own_references(self, row: int) -> SharedReferences | None:
        """Return the known references of the query that a paper cites; None if there is none."""
        both = np.intersect1d(self._references(row), self._cited)
        return SharedReferences(len(both), self._title(both[0])) if len(both) else None

    def _largest(
        self, row: int, neighbours: Rows, links: Callable[[int], Rows]
    ) -> tuple[int, Rows]:
        """Return the neighbour that has the most links in common with a paper, and these; the closest of equal ones."""
        own, best, most = links(row), row, self._cited[:0]
        for other in neighbours.tolist():
            both = np.intersect1d(own, links(other))
            if other != row and len(both) > len(most):
                best, most = other, both
        return best, most

    def _citing(self, row: int) -> Rows:
        return self._graph.citing(row, self._snapshot)

    def _references(self, row: int) -> Rows:
        return self._graph.references(row, self._snapshot)

    def _title(self, row: int) -> str:
        (title,) = self._graph.index.papers.texts("title", np.array([row], np.int32)).to_pylist()
        return title


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPaper:
    """One recommended paper with its features and facts."""

    item: Recommendation
    features: Mapping[str, float]  # by name; NaN where missing
    matched: Sequence[str]  # matching words of the query, highest BM25 weight first
    row: int  # the row of the paper
    facts: Facts

    def number(self, feature: str) -> int:
        """Return the count of a feature that is log(1 + count); 0 if missing."""
        value = self.features[feature]
        return round(float(np.expm1(value))) if np.isfinite(value) else 0


def matching(words: Sequence[str]) -> str:
    """Return the reason of words that a paper shares with the query; empty without any."""
    return f"matches: {', '.join(words)}" if words else ""


def semantic(rank: int) -> str:
    """Return the reason of a rank by dense retrieval."""
    return f"semantic similarity: rank {rank}"


def reranked(probability: float) -> str:
    """Return the reason of a reranker's probability; empty if it is too low for one."""
    if not probability >= MIN_PROBABILITY:
        return ""
    return f"reranker: probability {percentage(probability)}"


def _quoted(title: str) -> str:
    return f'"{shorten(title, _TITLE, placeholder="…")}"' if title.strip() else "an untitled paper"


def _cited_by_similar(paper: RankedPaper) -> str:
    fact = paper.facts.cited_by_similar(paper.row)
    if fact is None:
        return ""
    if fact.neighbours == 1:
        return f"cited by the most similar paper, {_quoted(fact.closest)}"
    such_as = "," if fact.count == 1 else ", such as"
    return f"cited by {fact.count} of the {fact.neighbours} most similar papers{such_as} {_quoted(fact.closest)}"


def _co_cited(paper: RankedPaper) -> str:
    fact = paper.facts.co_citation(paper.row)
    if fact is None:
        return ""
    others = "" if not fact.others else f" and {plural(fact.others, 'other')}"
    return f"cited together with {_quoted(fact.partner)} by {_quoted(fact.citing)}{others}"


def _coupled(paper: RankedPaper) -> str:
    fact = paper.facts.shared_references(paper.row)
    if fact is None:
        return ""
    what = "the same paper" if fact.count == 1 else f"the same {fact.count:,} papers"
    return f"cites {what} as {_quoted(fact.with_paper)}"


def _coupling(paper: RankedPaper) -> str:
    fact = paper.facts.own_references(paper.row)
    if fact is None:
        return ""
    such_as = "," if fact.count == 1 else ", such as"
    return f"cites {plural(fact.count, 'paper')} that you cite{such_as} {_quoted(fact.with_paper)}"


def _semantic(paper: RankedPaper) -> str:
    dense = paper.item.stages.get("dense")
    return semantic(dense.rank) if dense else ""


def _counted(feature: str, noun: str, prefix: str, suffix: str) -> Callable[[RankedPaper], str]:
    def describe(paper: RankedPaper) -> str:
        count = paper.number(feature)
        return f"{prefix} {plural(count, noun)} {suffix}" if count else ""

    return describe


# the features that contribute to each reason, and its text; empty if it does not apply
REASONS: tuple[tuple[tuple[str, ...], Callable[[RankedPaper], str]], ...] = (
    (
        (
            *("bm25", "bm25_rank", "rrf", "title_overlap"),
            *("sentence_bm25", "sentence_bm25_rank", "title_found"),
        ),
        lambda paper: matching(paper.matched),
    ),
    (("dense", "dense_rank", "linked_similarity", "sentence", "sentences_near"), _semantic),
    (("rerank",), lambda paper: reranked(paper.features["rerank"])),
    (("cited_by_similar", "cited_by_closest", "cited_by_similar_count", "walk"), _cited_by_similar),
    (("co_cited",), _co_cited),
    (("coupled",), _coupled),
    (("coupling",), _coupling),
    (("citations",), _counted("citations", "time", "cited", "in this corpus")),
    (
        ("citations_3y",),
        _counted("citations_3y", "time", "cited", f"in the last {RECENT_YEARS} years"),
    ),
    (("age",), lambda p: "" if p.item.paper.year is None else f"published {p.item.paper.year}"),
    (
        ("author_overlap",),
        lambda p: "shares an author with you" if p.features["author_overlap"] > 0 else "",
    ),
    (("self_cited",), _counted("self_cited", "earlier paper", "cited by", "of your authors")),
    (
        ("venue_match",),
        lambda p: (
            f"in the same venue: {p.item.paper.venue}" if p.features["venue_match"] > 0 else ""
        ),
    ),
)


def reasons(
    paper: RankedPaper, contributions: npt.NDArray[np.floating], added: Sequence[Feature] = ()
) -> tuple[str, ...]:
    """Return the reasons that raised a paper's score, largest contribution first.

    Args:
        paper: The paper.
        contributions: The contribution of each feature to the score, in the order of `NAMES` and `added`.
        added: The features that are not citerec's own; the reason of one is its meaning and its value.
    """
    names = (*NAMES, *(feature.name for feature in added))
    by_name = dict(zip(names, contributions.tolist(), strict=False))
    weighted = [(sum(by_name[name] for name in read), text) for read, text in REASONS]
    weighted += [(by_name[one.name], _added(one)) for one in added]
    weighted.sort(key=lambda pair: -pair[0])
    texts = (describe(paper) for weight, describe in weighted if weight > 0)
    return tuple(islice(filter(None, texts), MOST))  # facts of further reasons are not looked up


def _added(feature: Feature) -> Callable[[RankedPaper], str]:
    def describe(paper: RankedPaper) -> str:
        value = paper.features[feature.name]
        return f"{feature.meaning}: {value:g}" if np.isfinite(value) else ""

    return describe


def with_reasons(
    query: Query,
    candidates: CandidateSet,
    result: tuple[Recommendation, ...],
    *,
    graph: TemporalGraph,
    bm25: Bm25Retriever | None,
    ranker: LtrModel | None,
    reranker: OpenReranker | None,
) -> tuple[Recommendation, ...]:
    """Add its reasons to each recommended paper.

    Args:
        query: The query; if it has a context, that sentence alone is searched for matching words.
        candidates: The papers of `result`, in the order of the last stage.
        result: The recommended papers.
        graph: The citation graph.
        bm25: Finds the matching words; None for none.
        ranker: The learning-to-rank model; None without one.
        reranker: The reranker; None without one.
    """
    rows = candidates.rows.tolist()
    words = bm25.matches(sentence_of(query), rows, most=MOST_WORDS) if bm25 else [[] for _ in rows]
    if not isinstance(candidates, RankedCandidates) or not ranker:
        return tuple(
            replace(item, reasons=tuple(filter(None, _stage_reasons(item, matched, reranker))))
            for item, matched in zip(result, words, strict=True)
        )
    expanded = candidates.expanded
    facts = Facts(graph, expanded.snapshot, expanded.neighbour_scores, candidates.cited)
    matrix = candidates.features_of(candidates.rows)
    contributions = ranker.contributions(matrix)
    if reranker and not reads_probability(ranker, reranker):
        # The reranker follows the model, so its probability is used as its contribution.
        scored = (item.stages.get(RERANK) for item in result)
        column = [reranker.probability(hit.score) if hit else 0.0 for hit in scored]
        matrix[:, NAMES.index(RERANK)] = contributions[:, NAMES.index(RERANK)] = column
    explained: list[Recommendation] = []
    for i, (item, matched, row) in enumerate(zip(result, words, rows, strict=True)):
        features = dict(zip(ranker.columns, matrix[i].tolist(), strict=True))
        paper = RankedPaper(item=item, features=features, matched=matched, row=row, facts=facts)
        texts = reasons(paper, contributions[i], ranker.added)
        explained.append(replace(item, reasons=texts))
    return tuple(explained)


def _stage_reasons(
    item: Recommendation, matched: Sequence[str], reranker: OpenReranker | None
) -> Iterator[str]:
    yield matching(matched)
    if (dense := item.stages.get("dense")) and dense.rank <= MAX_DENSE_RANK:
        yield semantic(dense.rank)
    if (hit := item.stages.get(RERANK)) and reranker:
        yield reranked(reranker.probability(hit.score))
