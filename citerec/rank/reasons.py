"""Reasons of a recommendation as text: the features with the largest contributions to the score of the ranker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from citerec.rank.facts import Facts
from citerec.rank.features import NAMES
from citerec.rules.known import RECENT_YEARS
from citerec.text import percentage, plural
from citerec.types import Recommendation

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
