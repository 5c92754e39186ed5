"""Finds the works of a service that the entries of a reference list are: by DOI or arXiv id, else by title."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import doi_of, title_key
from citerec.collect.openalex import work_id
from citerec.collect.semanticscholar import is_paper_id
from citerec.collect.work import Source, Work
from citerec.matching import rows_of_entry, similar_titles
from citerec.types import Progress

HEADER = ("reference", "title", "ids", "reason", "closest title found", "similarity %")
_ARXIV = re.compile(
    r"(?:arxiv:\s*|https?://(?:www\.)?arxiv\.org/(?:abs|pdf)/|(?:https?://doi\.org/)?10\.48550/arxiv\.)"
    r"([0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[a-z]{2})?/[0-9]{7})(?:v[0-9]{1,3})?(?:\.pdf)?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A reference that no work of the service is."""

    entry: Entry
    reason: str
    closest: str = ""  # the most similar title that was found
    similarity: float = 0.0  # of that title, in percent

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of `HEADER`."""
        ids = " ".join(identifiers(self.entry))
        score = f"{self.similarity:.0f}" if self.closest else ""
        return (self.entry.place, self.entry.title, ids, self.reason, self.closest, score)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The works of a reference list."""

    ids: tuple[str, ...]  # of the works, each once, in the order of the list
    unresolved: tuple[Unresolved, ...]
    references: int  # entries of the list


def identifier(text: str) -> str:
    """Return `doi:…`, `arxiv:…` or `id:…` for an id that a service knows; empty for others, such as BibTeX keys."""
    text = text.strip()
    if match := _ARXIV.fullmatch(text):
        return f"arxiv:{match[1].lower()}"
    if doi := doi_of(text):
        return f"doi:{doi.lower()}"
    return f"id:{work_id(text) or text}" if work_id(text) or is_paper_id(text) else ""


def identifiers(entry: Entry) -> list[str]:
    """Return the ids of an entry that a service knows."""
    return list(dict.fromkeys(filter(None, map(identifier, entry.ids))))


def resolve(entries: Sequence[Entry], source: Source, progress: Progress) -> Resolved:
    """Find the works of the entries.

    An id is preferred. A title must match as in `citerec recommend --cited`: over small differences, unless year or
    authors contradict it. Of several works with the same title, the most cited one is chosen.

    Raises:
        CollectError: If the service fails.
    """
    by_id = source.find_ids(list(dict.fromkeys(i for entry in entries for i in identifiers(entry))))
    found: list[str] = []
    unresolved: list[Unresolved] = []
    for number, entry in enumerate(entries, start=1):
        progress("resolving", number, len(entries))
        outcome = _resolve(entry, by_id, source)
        if isinstance(outcome, str):
            found.append(outcome)
        else:
            unresolved.append(outcome)
    return Resolved(tuple(dict.fromkeys(found)), tuple(unresolved), len(entries))


def _resolve(entry: Entry, by_id: Mapping[str, str], source: Source) -> str | Unresolved:
    ids = identifiers(entry)
    if known := next((by_id[i] for i in ids if i in by_id), ""):
        return known
    if not title_key(entry.title):
        reason = f"unknown to {source.title}" if ids else "neither a DOI, an arXiv id nor a title"
        return Unresolved(entry, reason)
    works = source.find_title(entry.title)
    if matching := _matching(entry, works):
        return min(matching, key=lambda work: (-work.times_cited, work.id)).id
    if not works:
        return Unresolved(entry, f"unknown to {source.title}")
    scores = [
        (fuzz.ratio(title_key(entry.title), title_key(w.paper.title)), w.paper.title) for w in works
    ]
    similarity, closest = max(scores)
    return Unresolved(entry, "title, year or authors differ", closest, similarity)


def _matching(entry: Entry, works: Sequence[Work]) -> list[Work]:
    papers = {row: work.paper for row, work in enumerate(works)}
    similar = similar_titles([entry.title], (paper.title for paper in papers.values()))
    return [works[row] for row in rows_of_entry(entry, similar[entry.title], papers)]
