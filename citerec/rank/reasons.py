"""Why the ranker put a paper where it is, in words: what added most to its score."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from citerec.rank.facts import Facts
from citerec.rank.features import NAMES
from citerec.rank.known import LATELY
from citerec.text import percentage, plural
from citerec.types import Recommendation

MOST = 4  # reasons of a paper
_TITLE = 60  # characters of a title, at most
_LEAST = 0.01  # probability from which on a reranker's word is a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One recommended paper, and what is known of it."""

    item: Recommendation
    features: Mapping[str, float]  # by name; NaN where missing
    matched: Sequence[str]  # words of the query that weighed most
    row: int  # of the paper
    facts: Facts

    def number(self, feature: str) -> int:
        """Return a feature that is the logarithm of 1 + a count as that count; 0 where missing."""
        value = self.features[feature]
        return round(float(np.expm1(value))) if np.isfinite(value) else 0


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that can be said, and the features whose weight it has."""

    features: tuple[str, ...]
    log: Callable[[Case], str]  # empty where there is nothing to say


def reasons(case: Case, contributions: npt.NDArray[np.floating]) -> tuple[str, ...]:
    """Return what raised a paper's score, what raised it most first.

    Args:
        case: The paper.
        contributions: What each feature added to its score, in the order of `NAMES`.
    """
    added = dict(zip(NAMES, contributions.tolist(), strict=False))
    weighed = [(sum(added[name] for name in one.features), one) for one in REASONS]
    weighed.sort(key=lambda pair: -pair[0])
    found = _said(case, [one for weight, one in weighed if weight > 0])
    return tuple(islice(found, MOST))  # what is not shown is not looked up


def _said(case: Case, best: Sequence[Reason]) -> Iterator[str]:
    for reason in best:
        if words := reason.log(case):
            yield words


def _cited_by_similar(case: Case) -> str:
    found = case.facts.cited_by_similar(case.row)
    if found is None:
        return ""
    if found.of == 1:
        return f"cited by the most similar paper, {_quoted(found.closest)}"
    such_as = "," if found.count == 1 else ", such as"
    return f"cited by {found.count} of the {found.of} most similar papers{such_as} {_quoted(found.closest)}"


def _co_cited(case: Case) -> str:
    found = case.facts.co_citation(case.row)
    if found is None:
        return ""
    others = "" if not found.others else f" and {plural(found.others, 'other')}"
    return f"cited together with {_quoted(found.partner)} by {_quoted(found.citing)}{others}"


def _coupled(case: Case) -> str:
    found = case.facts.shared_references(case.row)
    if found is None:
        return ""
    what = "the same paper" if found.count == 1 else f"the same {found.count:,} papers"
    return f"cites {what} as {_quoted(found.with_paper)}"


def _coupling(case: Case) -> str:
    found = case.facts.own_references(case.row)
    if found is None:
        return ""
    such_as = "," if found.count == 1 else ", such as"
    return (
        f"cites {plural(found.count, 'paper')} that you cite{such_as} {_quoted(found.with_paper)}"
    )


def _quoted(title: str) -> str:
    return f'"{shorten(title, _TITLE, placeholder="…")}"' if title.strip() else "an untitled paper"


def _matches(case: Case) -> str:
    return f"matches: {', '.join(case.matched)}" if case.matched else ""


def _close(case: Case) -> str:
    found = case.item.stages.get("dense")
    return f"close in meaning: number {found.rank} of all" if found else ""


def _citable(case: Case) -> str:
    likely = case.features["rerank"]
    return f"judged citable: probability {percentage(likely)}" if likely >= _LEAST else ""


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
