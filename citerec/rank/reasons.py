"""Reasons of a recommendation as text: the features with the largest contributions to the score of the ranker."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from citerec.rank.facts import Facts
from citerec.rank.features import NAMES
from citerec.rules.known import LATELY
from citerec.text import percentage, plural
from citerec.types import Recommendation

MOST = 4  # reasons per paper
_TITLE = 60  # maximum characters of a title
MIN_PROBABILITY = 0.01  # least probability of the reranker that is a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
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
    describe: Callable[[Case], str]  # its text; empty if the reason does not apply


def reasons(case: Case, contributions: npt.NDArray[np.floating]) -> tuple[str, ...]:
    """Return the reasons that raised a paper's score, largest contribution first.

    Args:
        case: The paper.
        contributions: The contribution of each feature to the score, in the order of `NAMES`.
    """
    added = dict(zip(NAMES, contributions.tolist(), strict=False))
    weighted = [(sum(added[name] for name in one.features), one) for one in REASONS]
    weighted.sort(key=lambda pair: -pair[0])
    texts = _texts(case, [one for weight, one in weighted if weight > 0])
    return tuple(islice(texts, MOST))  # facts of further reasons are not looked up


def _texts(case: Case, best: Sequence[Reason]) -> Iterator[str]:
    for reason in best:
        if words := reason.describe(case):
            yield words


def _cited_by_similar(case: Case) -> str:
    fact = case.facts.cited_by_similar(case.row)
    if fact is None:
        return ""
    if fact.of == 1:
        return f"cited by the most similar paper, {_quoted(fact.closest)}"
    such_as = "," if fact.count == 1 else ", such as"
    return f"cited by {fact.count} of the {fact.of} most similar papers{such_as} {_quoted(fact.closest)}"


def _co_cited(case: Case) -> str:
    fact = case.facts.co_citation(case.row)
    if fact is None:
        return ""
    others = "" if not fact.others else f" and {plural(fact.others, 'other')}"
    return f"cited together with {_quoted(fact.partner)} by {_quoted(fact.citing)}{others}"


def _coupled(case: Case) -> str:
    fact = case.facts.shared_references(case.row)
    if fact is None:
        return ""
    what = "the same paper" if fact.count == 1 else f"the same {fact.count:,} papers"
    return f"cites {what} as {_quoted(fact.with_paper)}"


def _coupling(case: Case) -> str:
    fact = case.facts.own_references(case.row)
    if fact is None:
        return ""
    such_as = "," if fact.count == 1 else ", such as"
    return f"cites {plural(fact.count, 'paper')} that you cite{such_as} {_quoted(fact.with_paper)}"


def _quoted(title: str) -> str:
    return f'"{shorten(title, _TITLE, placeholder="…")}"' if title.strip() else "an untitled paper"


def _matches(case: Case) -> str:
    return matching(case.matched)


def _semantic(case: Case) -> str:
    dense = case.item.stages.get("dense")
    return semantic(dense.rank) if dense else ""


def _reranked(case: Case) -> str:
    return reranked(case.features["rerank"])


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


def _much_cited(case: Case) -> str:
    count = case.number("citations")
    return f"cited {plural(count, 'time')} in this corpus" if count else ""


def _cited_of_late(case: Case) -> str:
    count = case.number("citations_3y")
    return f"cited {plural(count, 'time')} in the last {LATELY} years" if count else ""


def _age(case: Case) -> str:
    year = case.item.paper.year
    return "" if year is None else f"published {year}"


def _shares_author(case: Case) -> str:
    return "shares an author with you" if case.features["author_overlap"] > 0 else ""


def _cited_before(case: Case) -> str:
    count = case.number("self_cited")
    return f"cited by {plural(count, 'earlier paper')} of your authors" if count else ""


def _same_venue(case: Case) -> str:
    is_same = case.features["venue_match"] > 0
    return f"in the same venue: {case.item.paper.venue}" if is_same else ""


REASONS = (
    Reason(("bm25", "bm25_rank", "rrf", "title_overlap"), _matches),
    Reason(("dense", "dense_rank"), _semantic),
    Reason(("rerank",), _reranked),
    Reason(("cited_by_similar", "cited_by_closest", "cited_by_similar_count"), _cited_by_similar),
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
