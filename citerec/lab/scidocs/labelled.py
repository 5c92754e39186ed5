"""Classification tasks from an index: the venue and the period of a paper."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR, Papers
from citerec.lab.scidocs.ranking import Rows

VENUES = 20  # classes at most
PAPERS_OF_VENUE = 50  # at least
PERIODS = 5
PAPERS = 25_000  # per task at most, about as many as for MAG; more if a rare class would vanish
SHARES = (0.6, 0.8)  # of each class: start of validation and of test

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Papers of one split of a classification task."""

    rows: Rows
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTask:
    """Papers and their classes by split; every class is in every split."""

    train: Part
    validation: Part
    test: Part

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """The splits: train, validation, test."""
        return self.train, self.validation, self.test


class TooSmallError(ValueError):
    """An index is too small for a task; the message has the reason."""


def venue_task(papers: Papers, *, seed: int = 0) -> LabelledTask:
    """Build the task to predict the venue of a paper, in place of MAG's topics.

    Venues that differ only in case and punctuation are equal. The classes are the 20 most common venues with at least
    50 papers each.

    Raises:
        TooSmallError: If there are fewer than two.
    """
    topics = venue_topics(papers)
    rows = np.array([row for row, topic in enumerate(topics) if topic], np.int32)
    labels = [topic for topic in topics if topic]
    if len(set(labels)) < 2:
        raise TooSmallError(f"fewer than 2 venues have {PAPERS_OF_VENUE} papers")
    return _split(rows, labels, np.random.default_rng([seed, 0]))


def venue_topics(papers: Papers) -> list[str]:
    """Return the class of each paper, see `venue_task`; empty if it has none."""
    keys = venue_keys(papers)
    counts = Counter(key for key in keys if key)
    common = sorted(counts, key=lambda key: (-counts[key], key))[:VENUES]
    classes = {key for key in common if counts[key] >= PAPERS_OF_VENUE}
    return [key if key in classes else "" for key in keys]


def venue_keys(papers: Papers) -> list[str]:
    """Return the normalised venue of each paper: its words in lower case; empty if it has none."""
    seen: dict[str, str] = {}
    for venue in (venues := papers.column("venue").to_pylist()):
        if venue not in seen:
            seen[venue] = " ".join(_WORD.findall(venue.casefold()))
    return [seen[venue] for venue in venues]


def period_task(papers: Papers, *, seed: int = 0) -> LabelledTask:
    """Build the task to predict the period of a paper, one of five ranges of years, in place of MeSH's classes.

    Raises:
        TooSmallError: If there are no five periods with 50 papers each.
    """
    rows = np.flatnonzero(papers.years != NO_YEAR).astype(np.int32)
    years = papers.years[rows]
    periods = _periods(years)
    counts = Counter(periods)
    if len(counts) < PERIODS or min(counts.values()) < PAPERS_OF_VENUE:
        raise TooSmallError(f"years do not make {PERIODS} periods of {PAPERS_OF_VENUE} papers")
    return _split(rows, periods, np.random.default_rng([seed, 1]))


def _periods(years: npt.NDArray[np.int32]) -> list[str]:
    """Return the period of each year; the middle of a year in the cumulative distribution decides its fifth."""
    each, where, counts = np.unique(years, return_inverse=True, return_counts=True)
    if not len(each):
        return []
    middle = (np.cumsum(counts) - counts / 2) / len(years)
    number = (middle * PERIODS).astype(int)
    names = [f"{each[number == n].min()}-{each[number == n].max()}" for n in number]
    return [names[i] for i in where.tolist()]


def _split(rows: Rows, labels: list[str], rng: np.random.Generator) -> LabelledTask:
    """Split each class 60/20/20 at random: its share of `PAPERS` papers, but at least `PAPERS_OF_VENUE`."""
    order = rng.permutation(len(rows))
    names, of_row = np.unique(np.array(labels, np.object_), return_inverse=True)
    share = min(1.0, PAPERS / len(rows))
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for number in range(len(names)):
        members = order[of_row[order] == number]
        sample = members[: max(round(len(members) * share), PAPERS_OF_VENUE)].tolist()
        validation, test = (int(len(sample) * share) for share in SHARES)
        parts[0].extend(sample[:validation])
        parts[1].extend(sample[validation:test])
        parts[2].extend(sample[test:])
    train, validation, test = (Part(rows[part], tuple(labels[i] for i in part)) for part in parts)
    return LabelledTask(train, validation, test)
