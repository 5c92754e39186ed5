"""Why the ranker put a paper where it is, in words: what added most to its score."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from citerec.rank.features import NAMES
from citerec.types import Recommendation

MOST = 4  # reasons of a paper
_RECENT = 3  # years
_TITLE = 60  # characters of a title, at most
_LEAST = 0.01  # probability from which on a reranker's word is a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recommended paper, and what is known of it."""

    item: Recommendation
    features: Mapping[str, float]  # by name; NaN where missing
    matched: Sequence[str]  # words of the query that weighed most
    neighbours: int  # close papers that were asked what they cite
    closest: str = ""  # the title of the closest that cites it

    def number(self, feature: str) -> int:
        """Return a feature that is the logarithm of 1 + a count as that count; 0 where missing."""
        value = self.features[feature]
        return round(float(np.expm1(value))) if np.isfinite(value) else 0


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that can be said, and the features whose weight it has."""

    features: tuple[str, ...]
    say: Callable[[Case], str]  # empty where there is nothing to say


def reasons(case: Case, contributions: npt.NDArray[np.floating]) -> tuple[str, ...]:
    """Return what raised a paper's score, what raised it most first.

    Args:
        case: The paper.
        contributions: What each feature added to its score, in the order of `NAMES`.
    """
    added = dict(zip(NAMES, contributions.tolist(), strict=False))
    weighed = [(sum(added[name] for name in one.features), one) for one in REASONS]
    weighed.sort(key=lambda pair: -pair[0])
    return tuple(_said(case, [one for weight, one in weighed if weight > 0]))[:MOST]


def _said(case: Case, best: Sequence[Reason]) -> Iterator[str]:
    for reason in best:
        if words := reason.say(case):
            yield words


def _cited_by_similar(case: Case) -> str:
    count = case.features["cited_by_similar_count"]
    if count <= 0:
        return ""
    first = f', first "{shorten(case.closest, _TITLE, placeholder="…")}"' if case.closest else ""
    return f"cited by {count:.0f} of the {case.neighbours} most similar papers{first}"


def _co_cited(case: Case) -> str:
    return "cited together with similar papers" if case.features["co_cited"] > 0 else ""


def _coupled(case: Case) -> str:
    return "cites what similar papers cite" if case.features["coupled"] > 0 else ""


def _coupling(case: Case) -> str:
    return "cites what you cite" if case.features["coupling"] > 0 else ""


def _matches(case: Case) -> str:
    return f"matches: {', '.join(case.matched)}" if case.matched else ""


def _close(case: Case) -> str:
    found = case.item.stages.get("dense")
    return f"close in meaning: number {found.rank} of all" if found else ""


def _citable(case: Case) -> str:
    likely = case.features["rerank"]
    return f"judged citable: probability {likely:.2f}" if likely >= _LEAST else ""


def _much_cited(case: Case) -> str:
    count = case.number("citations")
    return f"much cited: {count:,} times in this corpus" if count > 1 else ""


def _cited_of_late(case: Case) -> str:
    count = case.number("citations_3y")
    return f"much cited of late: {count:,} times in 3 years" if count > 1 else ""


def _age(case: Case) -> str:
    year, age = case.item.paper.year, case.features["age"]
    if year is None:
        return ""
    return f"recent: of {year}" if age <= _RECENT else ""


def _shares_author(case: Case) -> str:
    return "shares an author" if case.features["author_overlap"] > 0 else ""


def _cited_before(case: Case) -> str:
    return "cited before by the same authors" if case.features["self_cited"] > 0 else ""


def _same_venue(case: Case) -> str:
    return "in the same venue" if case.features["venue_match"] > 0 else ""


REASONS = (
    Reason(("bm25", "bm25_rank", "rrf", "title_overlap"), _matches),
    Reason(("dense", "dense_rank"), _close),
    Reason(("rerank",), _citable),
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
