"""Estimates the requests, the time and the price of a collection before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from citerec.bibliography.entry import Entry
from citerec.collect import openalex, semanticscholar
from citerec.collect.resolve import identifiers
from citerec.collect.snowball import EXPANDED, LEAST_CITING, citing_each
from citerec.text import plural

REFERENCES = 40  # of a paper, about
LATENCY = 0.4  # seconds from a request to its answer, about
MAX_DOLLARS, MAX_MINUTES = openalex.ALLOWANCE, 120.0  # beyond these --yes is needed


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a collection takes, about."""

    requests: int
    minutes: float
    dollars: float | None = None  # None for a service without prices

    def __str__(self) -> str:
        duration = "under a minute" if self.minutes < 1 else plural(round(self.minutes), "minute")
        price = (
            ""
            if self.dollars is None
            else f", ${self.dollars:.2f} of the ${openalex.ALLOWANCE:.0f} that is free each day"
        )
        return f"about {self.requests:,} requests, {duration}{price}"

    @property
    def is_large(self) -> bool:
        """Whether it is beyond `MAX_DOLLARS` or `MAX_MINUTES`."""
        return (self.dollars or 0) > MAX_DOLLARS or self.minutes > MAX_MINUTES


def estimate(
    entries: Sequence[Entry], papers: int, rate: float, *, is_openalex: bool, search_seeds: int = 0
) -> Estimate:
    """Estimate a collection from the length of its list.

    Args:
        entries: The references.
        papers: How many papers are wanted.
        rate: Requests per second.
        is_openalex: Whether OpenAlex is used, otherwise Semantic Scholar.
        search_seeds: How many seeds a search gives, in place of entries.
    """
    with_id = sum(bool(identifiers(entry)) for entry in entries)
    searches = len(entries) - with_id + bool(search_seeds)
    seeds = len(entries) + search_seeds
    rounds = ceil(max(papers - seeds * (REFERENCES + LEAST_CITING), 0) / (EXPANDED * REFERENCES))
    if is_openalex:
        listed = (
            seeds * min(citing_each(papers, seeds), 2 * LEAST_CITING)
            + rounds * EXPANDED * LEAST_CITING
        )
        fetched = (seeds + rounds * EXPANDED) * REFERENCES
        lists = ceil(with_id / 50) + ceil(listed / openalex.PAGE) + ceil(fetched / openalex.PAGE)
        dollars = lists * openalex.LIST_DOLLARS + searches * openalex.SEARCH_DOLLARS
        return _estimate(lists + searches, rate, dollars)
    batches = ceil(len(entries) / semanticscholar.BATCH) + ceil(papers / semanticscholar.BATCH) + 1
    return _estimate(batches + searches + seeds + rounds * EXPANDED, rate, None)


def _estimate(requests: int, rate: float, dollars: float | None) -> Estimate:
    return Estimate(requests, requests * max(1 / rate, LATENCY) / 60, dollars)
