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
from citerec.rank.features import NAMES
from citerec.rank.ltr import LtrModel, RankedCandidates, reads_probability
from citerec.rerank.reranker import NAME as RERANK
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.hybrid import sentence_of
from citerec.rules.known import RECENT_YEARS, GraphSnapshot, Rows, TemporalGraph
from citerec.text import percentage, plural
from citerec.types import CandidateSet, Query, Recommendation


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
    with_paper: (
        str  # the title of the other paper; if that is the query, the title of a shared reference
    )


class Facts:
    """Looks up the citations that connect papers with one query."""

    def __init__(
        self,
        graph: TemporalGraph,
        snapshot: GraphSnapshot,
        neighbour_scores: NeighbourScores,
        cited: Sequence[int] = (),
    ) -> None:
        """Prepare.

        Args:
            graph: The citation graph.
            snapshot: The citations that are known for the query.
            neighbour_scores: The neighbours of the query.
            cited: Rows of the known references of the query.
        """
        self._graph, self._snapshot, self._neighbour_scores = graph, snapshot, neighbour_scores
        self._cited = np.array(sorted(cited), np.int32)

    def cited_by_similar(self, row: int) -> CitedBy | None:
        """Return the neighbours that cite a paper; None if there is none."""
        neighbours = self._neighbour_scores.neighbours
        citing = neighbours[np.isin(neighbours, self._citing(row))]
        if not len(citing):
            return None
        return CitedBy(len(citing), len(neighbours), self._title(citing[0]))

    def co_citation(self, row: int) -> CoCitation | None:
        """Return the neighbour with the most co-citations of a paper; None without a co-citation."""
        citing = self._citing(row)
        neighbours = self._neighbour_scores.cited_neighbours
        both = [np.intersect1d(citing, self._citing(other)) for other in neighbours.tolist()]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        years = self._graph.index.papers.years[both[best]]
        newest = both[best][np.argmax(np.where(years == NO_YEAR, -1, years))]
        return CoCitation(self._title(neighbours[best]), self._title(newest), len(both[best]) - 1)

    def shared_references(self, row: int) -> SharedReferences | None:
        """Return the neighbour that shares the most references with a paper; None if no reference is shared."""
        references, neighbours = self._references(row), self._neighbour_scores.neighbours
        both = [
            np.intersect1d(references, self._references(other)) for other in neighbours.tolist()
        ]
        best = self._largest(row, neighbours, both)
        if best is None:
            return None
        return SharedReferences(len(both[best]), self._title(neighbours[best]))

    def own_references(self, row: int) -> SharedReferences | None:
        """Return the known references of the query that a paper cites; None if there is none."""
        both = np.intersect1d(self._references(row), self._cited)
        return SharedReferences(len(both), self._title(both[0])) if len(both) else None

    @staticmethod
    def _largest(row: int, neighbours: Rows, both: Sequence[Rows]) -> int | None:
        """Return the position of the neighbour with the most shared papers; None if there is none.

        Ties go to the closest neighbour. The paper itself does not count.
        """
        sizes = [
            0 if other == row else len(rows)
            for other, rows in zip(neighbours.tolist(), both, strict=True)
        ]
        best = int(np.argmax(sizes)) if sizes else 0
        return best if sizes and sizes[best] else None

    def _citing(self, row: int) -> Rows:
        rows = self._graph.citers.citers(row)
        return rows[self._snapshot.is_citing(rows)]

    def _references(self, row: int) -> Rows:
        citations = self._graph.index.graph
        [is_known] = self._snapshot.is_citing(np.array([row], np.int32))
        return citations.references(row) if is_known else citations.indices[:0]

    def _title(self, row: int) -> str:
        (title,) = self._graph.index.papers.texts("title", np.array([row], np.int32)).to_pylist()
        return title


MOST = 4  # reasons per paper
MOST_WORDS = 6  # maximum number of matching words in a reason
_TITLE = 60  # maximum characters of a title
MIN_PROBABILITY = 0.01  # least probability of the reranker that is a reason


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


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason and the features that contribute to it."""

    features: tuple[str, ...]
    describe: Callable[[RankedPaper], str]  # its text; empty if the reason does not apply


def reasons(paper: RankedPaper, contributions: npt.NDArray[np.floating]) -> tuple[str, ...]:
    """Return the reasons that raised a paper's score, largest contribution first.

    Args:
        paper: The paper.
        contributions: The contribution of each feature to the score, in the order of `NAMES`.
    """
    added = dict(zip(NAMES, contributions.tolist(), strict=False))
    weighted = [(sum(added[name] for name in reason.features), reason) for reason in REASONS]
    weighted.sort(key=lambda pair: -pair[0])
    texts = _texts(paper, [reason for weight, reason in weighted if weight > 0])
    return tuple(islice(texts, MOST))  # facts of further reasons are not looked up


def _texts(paper: RankedPaper, best: Sequence[Reason]) -> Iterator[str]:
    for reason in best:
        if words := reason.describe(paper):
            yield words


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


def _quoted(title: str) -> str:
    return f'"{shorten(title, _TITLE, placeholder="…")}"' if title.strip() else "an untitled paper"


def _matches(paper: RankedPaper) -> str:
    return matching(paper.matched)


def _semantic(paper: RankedPaper) -> str:
    dense = paper.item.stages.get("dense")
    return semantic(dense.rank) if dense else ""


def _reranked(paper: RankedPaper) -> str:
    return reranked(paper.features["rerank"])


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


def _much_cited(paper: RankedPaper) -> str:
    count = paper.number("citations")
    return f"cited {plural(count, 'time')} in this corpus" if count else ""


def _cited_of_late(paper: RankedPaper) -> str:
    count = paper.number("citations_3y")
    return f"cited {plural(count, 'time')} in the last {RECENT_YEARS} years" if count else ""


def _age(paper: RankedPaper) -> str:
    year = paper.item.paper.year
    return "" if year is None else f"published {year}"


def _shares_author(paper: RankedPaper) -> str:
    return "shares an author with you" if paper.features["author_overlap"] > 0 else ""


def _cited_before(paper: RankedPaper) -> str:
    count = paper.number("self_cited")
    return f"cited by {plural(count, 'earlier paper')} of your authors" if count else ""


def _same_venue(paper: RankedPaper) -> str:
    is_same = paper.features["venue_match"] > 0
    return f"in the same venue: {paper.item.paper.venue}" if is_same else ""


_OF_PARTS = ("sentence_bm25", "sentence_bm25_rank", "title_found")

REASONS = (
    Reason(("bm25", "bm25_rank", "rrf", "title_overlap", *_OF_PARTS), _matches),
    Reason(("dense", "dense_rank", "linked_similarity", "sentence", "sentences_near"), _semantic),
    Reason(("rerank",), _reranked),
    Reason(
        ("cited_by_similar", "cited_by_closest", "cited_by_similar_count", "walk"),
        _cited_by_similar,
    ),
    Reason(("co_cited",), _co_cited),
    Reason(("coupled",), _coupled),
    Reason(("coupling",), _coupling),
    Reason(("citations",), _much_cited),
    Reason(("citations_3y",), _cited_of_late),
    Reason(("age",), _age),
    Reason(("author_overlap",), _shares_author),
    Reason(("self_cited",), _cited_before),
    Reason(("venue_match",), _same_venue),
)


MAX_DENSE_RANK = 100  # the last rank of dense retrieval that is a reason where no model weighs it


def with_reasons(
    query: Query,
    candidates: CandidateSet,
    result: tuple[Recommendation, ...],
    *,
    graph: TemporalGraph,
    bm25: Bm25Retriever | None,
    ranker: LtrModel | None,
    cascade: OpenReranker | None,
) -> tuple[Recommendation, ...]:
    """Add its reasons to each recommended paper.

    Args:
        query: The query; if it has a context, that sentence alone is searched for matching words.
        candidates: The papers of `result`, in the order of the last stage.
        result: The recommended papers.
        graph: The citation graph.
        bm25: Finds the matching words; None for none.
        ranker: The learning-to-rank model; None without one.
        cascade: The reranker; None without one.
    """
    rows = candidates.rows.tolist()
    words = bm25.matches(sentence_of(query), rows, most=MOST_WORDS) if bm25 else [[] for _ in rows]
    if isinstance(candidates, RankedCandidates) and ranker:
        return _ranker_reasons(graph, ranker, candidates, result, words, cascade)
    return tuple(
        replace(item, reasons=tuple(_stage_reasons(item, matched, cascade)))
        for item, matched in zip(result, words, strict=True)
    )


def _ranker_reasons(
    graph: TemporalGraph,
    ranker: LtrModel,
    candidates: RankedCandidates,
    result: tuple[Recommendation, ...],
    words: Sequence[Sequence[str]],
    cascade: OpenReranker | None,
) -> tuple[Recommendation, ...]:
    """Add to each paper the reasons with the largest contributions to its score.

    Args:
        graph: The citation graph.
        ranker: The learning-to-rank model.
        candidates: The papers of `result` in the order of the model.
        result: The recommended papers.
        words: For each paper, the matching words of the query, highest BM25 weight first.
        cascade: The reranker; None without one.
    """
    expanded = candidates.expanded
    facts = Facts(graph, expanded.snapshot, expanded.neighbour_scores, candidates.cited)
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
        RankedPaper(
            item=item,
            features=dict(zip(NAMES, features.tolist(), strict=True)),
            matched=matched,
            row=row,
            facts=facts,
        )
        for item, features, matched, row in zip(
            result, matrix, words, candidates.hits.rows.tolist(), strict=True
        )
    ]
    return tuple(
        replace(paper.item, reasons=reasons(paper, of_paper))
        for paper, of_paper in zip(papers, contributions, strict=True)
    )


def _stage_reasons(
    item: Recommendation, matched: Sequence[str], cascade: OpenReranker | None
) -> Iterator[str]:
    if matched:
        yield matching(matched)
    if (dense := item.stages.get("dense")) and dense.rank <= MAX_DENSE_RANK:
        yield semantic(dense.rank)
    by_reranker = item.stages.get(RERANK)
    if by_reranker and cascade:
        yield from filter(None, [reranked(cascade.probability(by_reranker.score))])
