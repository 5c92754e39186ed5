"""Reasons of a recommendation as text: the features with the largest contributions to the score of the ranker.

Without a ranker the hits of each stage are the reasons. Only citations that are known at the query's time count.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from citerec.bibliography.keys import same_person, split_name
from citerec.display import percentage, plural, shortened
from citerec.drafts.context import without_markers
from citerec.files.arrays import Floats, Numbers, Rows
from citerec.graph.temporal import RECENT_YEARS, GraphSnapshot, TemporalGraph
from citerec.index.papers import NO_YEAR, Papers
from citerec.rank.contexts import ContextRetriever
from citerec.rank.expand import ExpandedCandidates, NeighbourScores
from citerec.rank.features import FEATURES, NAMES, Feature, written_by
from citerec.rank.ltr import LtrModel, RankedCandidates, reads_probability
from citerec.rerank.reranker import NAME as RERANK
from citerec.rerank.reranker import OpenReranker
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.fuse import ranks_and_scores
from citerec.retrieve.hybrid import sentence_alone
from citerec.types import CandidateSet, Paper, Query, Recommendation

MAX_REASONS = 4  # reasons per paper
MOST_WORDS = 6  # maximum number of matching words in a reason
MIN_PROBABILITY = 0.01  # least probability of the reranker that is a reason
# a rank of dense retrieval is a reason within these bounds
RANK_BOUNDS = (
    3,
    10,
    30,
    100,
)
_TITLE = 60  # maximum characters of a title
_SENTENCE = 200  # of a sentence that cites


class Facts:
    """States the citations that connect papers with one query; an empty text where there is none."""

    def __init__(
        self,
        snapshot: GraphSnapshot,
        neighbour_scores: NeighbourScores,
        cited: Sequence[int] = (),
        authors: Sequence[str] = (),
    ) -> None:
        """Prepare; `neighbour_scores` hold the neighbours of the query, `cited` its known references."""
        self.papers = snapshot.temporal.index.papers
        self._snapshot = snapshot
        self._scores = neighbour_scores
        self._cited = np.array(sorted(cited), np.int32)
        self._authors = authors
        self._written, _ = written_by(self.papers, authors)
        self._title = partial(quoted, self.papers)

    def cited_by_similar(self, row: int) -> str:
        """Count the neighbours that cite a paper, and name the closest of them."""
        neighbours = self._scores.neighbours
        citing = neighbours[np.isin(neighbours, self._snapshot.citing(row))]
        if not len(citing):
            return ""
        if len(neighbours) == 1:
            return f"cited by the paper most like yours, {self._title(citing[0])}"
        of = f"{len(citing)} of the {len(neighbours)} papers most like yours"
        return f"cited by {of}{such_as(len(citing))} {self._title(citing[0])}"

    def co_cited(self, row: int) -> str:
        """Name what a paper is most often cited together with, and by the newest paper that cites both."""
        neighbours = self._scores.cited_neighbours
        best, both = self._largest(row, neighbours, self._snapshot.citing)
        if not len(both):
            return ""
        years = self.papers.years[both]
        newest = both[np.argmax(np.where(years == NO_YEAR, -1, years))]
        others = f" and {plural(len(both) - 1, 'other')}" if len(both) > 1 else ""
        return f"cited together with {best} by {self._title(newest)}{others}"

    def coupled(self, row: int) -> str:
        """Name what shares the most references with a paper."""
        neighbours = self._scores.neighbours
        best, both = self._largest(row, neighbours, self._snapshot.references)
        if not len(both):
            return ""
        what = "the same paper" if len(both) == 1 else f"the same {len(both):,} papers"
        return f"cites {what} as {best}"

    def coupling(self, row: int) -> str:
        """Count the known references of the query that a paper cites, and name one."""
        both = np.intersect1d(self._snapshot.references(row), self._cited)
        if not len(both):
            return ""
        cited = f"{plural(len(both), 'paper')} that you cite{such_as(len(both))}"
        return f"cites {cited} {self._title(both[0])}"

    def author_overlap(self, row: int) -> str:
        """Name an author of a paper who is one of the query, or may be: of whom initials alone are known."""
        names = self.papers[row].authors
        same = {
            name: {same_person(name, author) for author in self._authors}
            for name in names
        }
        if sure := [name for name in names if True in same[name]]:
            return f"shares an author with you: {sure[0]}"
        if likely := [name for name in names if None in same[name]]:
            return f"may share an author with you, by initials alone: {likely[0]}"
        return ""

    def self_cited(self, row: int) -> str:
        """Count the papers by authors with the names of the query's that cite a paper."""
        count = len(np.intersect1d(self._snapshot.citing(row), self._written))
        return (
            f"cited by {plural(count, 'earlier paper')} of your authors, by name"
            if count
            else ""
        )

    def _largest(
        self, row: int, neighbours: Rows, links: Callable[[int], Rows]
    ) -> tuple[str, Rows]:
        """Return the title of what has the most links in common with a paper, and these links; the first of equal ones.

        That is a known reference of the query, else a neighbour.
        """
        own = links(row)
        for others, which in ((self._cited, "your reference "), (neighbours, "")):
            common = [
                (i, np.intersect1d(own, links(i))) for i in others.tolist() if i != row
            ]
            best, both = max(
                common, key=lambda found: len(found[1]), default=(row, own[:0])
            )
            if len(both):
                return f"{which}{self._title(best)}", both
        return "", own[:0]


def quoted(papers: Papers, row: int) -> str:
    """Return the title of a paper for a reason."""
    [title] = papers.texts("title", np.array([row], np.int32)).to_pylist()
    short = shortened(title, _TITLE)
    return f'"{short}"' if title.strip() else "an untitled paper"


def such_as(count: int) -> str:
    """Return what stands between a count of papers and the title of one."""
    return "," if count == 1 else ", such as"


def matching(words: Sequence[str]) -> str:
    """Return the reason of words that a paper shares with the query; empty without any."""
    return f"matches: {', '.join(words)}" if words else ""


def semantic(item: Recommendation, papers: int) -> str:
    """Return the reason of a paper's rank by dense retrieval; empty for a low one, and without one.

    A bound beyond half of the `papers` of the corpus says nothing, and is no reason.
    """
    hit = item.stages.get("dense")
    bounds = (bound for bound in RANK_BOUNDS if hit and hit.rank <= bound)
    within = next(bounds, papers)
    if within > papers / 2:
        return ""
    return f"its text is among the {within} closest to yours"


def reranked(probability: float) -> str:
    """Return the reason of a reranker's probability; empty if it is too low for one."""
    if not probability >= MIN_PROBABILITY:
        return ""
    return f"a model that read both texts: {percentage(probability)} likely to be cited"


def reasons(
    item: Recommendation,
    features: Mapping[str, float],
    contributions: Numbers,
    *,
    matched: Sequence[str],
    row: int,
    facts: Facts,
    added: Sequence[Feature] = (),
) -> tuple[str, ...]:
    """Return the reasons that raised a paper's score, largest contribution first.

    `features` are the values by name, NaN where missing. `contributions` are those of the features, in the order of
    `FEATURES` and `added`. `matched` are words that the paper shares with the query, highest BM25 weight first, and
    `row` is its row.
    """
    table = {feature.name: feature for feature in (*FEATURES, *added)}
    # by the feature that a reason is named after
    weights = defaultdict[str, float](float)
    for feature, contribution in zip(
        table.values(), contributions.tolist(), strict=False
    ):
        weights[feature.name if feature.reason == "value" else feature.reason] += (
            contribution
        )
    del weights["none"]

    def text(name: str) -> str:  # empty if it does not apply to the paper
        value = features[name]
        text = ""
        # of log(1 + count)
        count = round(float(np.expm1(value))) if np.isfinite(value) else 0
        match table[name].reason:
            case "bm25":
                text = matching(matched)
            case "dense":
                text = semantic(item, len(facts.papers))
            case "rerank":
                text = reranked(value)
            case (
                "cited_by_similar" | "co_cited" | "coupled" | "coupling" | "self_cited"
            ):
                text = getattr(facts, name)(row)
            case "citations":
                text = f"cited {plural(count, 'time')} in this corpus" if count else ""
            case "citations_3y":
                recent = f"in the last {RECENT_YEARS} years"
                text = f"cited {plural(count, 'time')} {recent}" if count else ""
            case "author_overlap":
                text = facts.author_overlap(row) if value > 0 else ""
            case "venue_match":
                text = f"in the same venue: {item.paper.venue}" if value > 0 else ""
            case "value":
                text = f"{table[name].meaning}: {value:g}" if np.isfinite(value) else ""
            case "none":
                pass
        return text

    raising = [
        name
        for name in sorted(weights, key=lambda name: -weights[name])
        if weights[name] > 0
    ]
    # facts of further reasons are not looked up
    return tuple(islice(filter(None, map(text, raising)), MAX_REASONS))


def with_reasons(
    query: Query,
    candidates: CandidateSet,
    result: tuple[Recommendation, ...],
    *,
    graph: TemporalGraph,
    bm25: Bm25Retriever | None,
    ranker: LtrModel | None,
    reranker: OpenReranker | None,
    contexts: ContextRetriever | None,
) -> tuple[Recommendation, ...]:
    """Add its reasons to each recommended paper; the first is the nearest known sentence that cites it, if any.

    `candidates` are the papers of `result`, in the order of the last stage. If the query has a context, that sentence
    alone is searched for matching words.
    """
    rows = candidates.rows.tolist()
    words = (
        bm25.matches(sentence_alone(query), rows, most=MOST_WORDS)
        if bm25
        else [[] for _ in rows]
    )
    explained: list[Recommendation] = []
    if not isinstance(candidates, RankedCandidates) or not ranker:
        for item, matched in zip(result, words, strict=True):
            hit = item.stages.get(RERANK)
            of_stages = (
                matching(matched),
                semantic(item, len(graph.index.papers)),
                reranked(reranker.probability(hit.score)) if hit and reranker else "",
            )
            explained.append(replace(item, reasons=tuple(filter(None, of_stages))))
        return tuple(explained)
    expanded = candidates.expanded
    known = expanded.snapshot, expanded.neighbour_scores
    facts = Facts(*known, candidates.cited, query.authors)
    matrix = candidates.matrix[ranks_and_scores(expanded.hits, candidates.rows)[0] - 1]
    of_models = [model.contributions(matrix) for model in candidates.models]
    contributions: Floats = np.sum(of_models, axis=0)
    if reranker and not reads_probability(ranker, reranker):
        # The reranker follows the model, so its probability is used as its contribution.
        scored = (item.stages.get(RERANK) for item in result)
        column = [reranker.probability(hit.score) if hit else 0.0 for hit in scored]
        matrix[:, NAMES.index(RERANK)] = contributions[:, NAMES.index(RERANK)] = column
    citing = cited_as(query, expanded, rows, contexts) if contexts else {}
    for i, (item, matched, row) in enumerate(zip(result, words, rows, strict=True)):
        features = dict(zip(ranker.columns, matrix[i].tolist(), strict=True))
        of_paper = item, features, contributions[i]
        texts = reasons(
            *of_paper, matched=matched, row=row, facts=facts, added=ranker.added
        )
        first = [citing[row]] if row in citing else []
        explained.append(replace(item, reasons=(*first, *texts)))
    return tuple(explained)


def cited_as(
    query: Query,
    expanded: ExpandedCandidates,
    rows: Sequence[int],
    contexts: ContextRetriever,
) -> dict[int, str]:
    """Return, for each paper that a known sentence cites, the one nearest to the query, with its paper."""
    alone = sentence_alone(query)
    vector = expanded.query_vector
    numbers = contexts.nearest(alone, vector, expanded.snapshot, rows)
    found = contexts.contexts
    citing = found.citing[[*numbers.values()]].tolist()
    papers = contexts.graph.index.papers.at(citing)
    texts = found.texts(np.array([*numbers.values()], np.int32))
    reasons: dict[int, str] = {}
    for row, citer, text in zip(numbers, citing, texts, strict=True):
        sentence = without_markers(text).removesuffix(".")
        short = shortened(sentence, _SENTENCE)
        reasons[row] = f"cited by {_named(papers[citer])} as: '{short}'"
    return reasons


def _named(paper: Paper) -> str:
    """Return the first author and the year of a paper, or its title."""
    family = split_name(paper.authors[0]).family if paper.authors else ""
    if not family:
        return f'"{shortened(paper.title, _TITLE)}"'
    return f"{family} {paper.year}" if paper.year else family
