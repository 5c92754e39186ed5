"""Counts a corpus: papers, what they have, citations inside and outside, years, duplicates."""

from array import array
from collections import Counter
from dataclasses import dataclass

import numpy as np

from citerec.bibliography.doi import paper_doi
from citerec.bibliography.keys import title_key
from citerec.corpus.collector import Collector
from citerec.corpus.tools.reading import Corpus
from citerec.types import Log, Paper, Progress, no_log, no_progress


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a corpus."""

    format: str
    files: int
    counts: Counter[str]
    years: tuple[int, int] | None  # first and last
    examples: tuple[str, ...]  # the first faults, each with file and line


def summarise(corpus: Corpus, progress: Progress = no_progress, log: Log = no_log) -> Summary:
    """Read a corpus once and count it; invalid records are counted, not refused.

    Memory holds a hash of each id, title and citation, not their texts.
    """
    collector = Collector(skip_bad=True)
    citations, counts = array("q"), collector.counts
    dois, titles = set[int](), set[int]()
    years = Counter[int]()
    for paper in corpus.papers(collector, progress=progress, log=log):
        citations.extend(map(hash, set(paper.citations)))
        if paper.year is not None:
            years[paper.year] += 1
        counts["with_doi"] += _count(dois, paper_doi(paper).lower(), counts, "same_doi")
        _count(titles, _title(paper), counts, "same_title")
    ids = np.fromiter(map(hash, collector.rows), np.int64, len(collector.rows))
    inside = int(np.isin(np.frombuffer(citations, np.int64), ids).sum()) if citations else 0
    counts["citations_inside"], counts["citations_outside"] = inside, len(citations) - inside
    span = (min(years), max(years)) if years else None
    return Summary(corpus.format, len(corpus.source.files), counts, span, tuple(collector.examples))


def _title(paper: Paper) -> str:
    return f"{key} {paper.year}" if (key := title_key(paper.title)) else ""


def _count(seen: set[int], key: str, counts: Counter[str], name: str) -> bool:
    """Count a paper whose key another one has; return whether it has a key."""
    if not key:
        return False
    counts[name] += hash(key) in seen
    seen.add(hash(key))
    return True
