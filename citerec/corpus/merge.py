"""Merges corpora: joins the records of one paper, takes the most complete value of each field, remaps citations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from citerec.bibliography.keys import doi_of, name_key, paper_doi, title_key
from citerec.corpus.collector import Collector
from citerec.corpus.tools import Corpus, canonical_line, write_lines
from citerec.types import BIBLIOGRAPHIC, Log, Paper, Progress, no_log, no_progress

SHORT = 4  # words; shorter titles, such as "Editorial", join only with the same first author
_LONGEST = ("abstract", "venue", "pages", "publisher")  # fields of which the longest value is kept


@dataclass(slots=True)
class _Group:
    """Records that are the same paper, each with the number of its corpus."""

    id: str  # that of its first record, unless another paper has it
    doi: str = ""
    records: list[tuple[int, Paper]] = field(default_factory=list[tuple[int, Paper]])


class _Groups:
    """Records grouped by paper: by DOI, by id and title, else by title and year; never two different DOIs."""

    def __init__(self) -> None:
        self.by_id: dict[str, _Group] = {}  # in the order of their first records
        self.counts: Counter[str] = Counter()
        self._by_doi: dict[str, _Group] = {}
        self._by_title: dict[tuple[object, ...], _Group] = {}
        self._by_stated_id: dict[tuple[int, str], _Group] = {}  # by corpus and id

    def add(self, corpus: int, paper: Paper) -> None:
        """Add a record of a corpus."""
        doi, dated = paper_doi(paper).lower(), _title_and_year(paper)
        same_id = self.by_id.get(paper.id)
        if same_id and title_key(same_id.records[0][1].title) != title_key(paper.title):
            same_id = None
        group = None
        for rule, candidate in (
            ("by_doi", self._by_doi.get(doi)),
            ("by_id", same_id),
            ("by_title", self._by_title.get(dated)),
        ):
            if candidate and (not doi or candidate.doi in {"", doi}):
                self.counts[rule] += 1
                group = candidate
                break
        if group is None:
            docid, number = paper.id, corpus + 1
            while docid in self.by_id:  # another paper's, such as a key that two libraries use
                docid, number = f"{paper.id}#{number}", number + 1
            self.counts["renamed"] += docid != paper.id
            group = self.by_id[docid] = _Group(docid)
        group.records.append((corpus, paper))
        if doi and not group.doi:
            group.doi = doi
            self._by_doi.setdefault(doi, group)
        if dated:
            self._by_title.setdefault(dated, group)
        self._by_stated_id[corpus, paper.id] = group
        self.counts["records"] += 1

    def cited(self, corpus: int, docid: str, corpora: int) -> _Group | None:
        """Return the group to which a citation of a record refers: by the ids of its corpus, by DOI, by other ids."""
        own = self._by_stated_id.get((corpus, docid)) or self._by_doi.get(doi_of(docid).lower())
        others = (self._by_stated_id.get((number, docid)) for number in range(corpora))
        return own or next(filter(None, others), None)


def _title_and_year(paper: Paper) -> tuple[object, ...]:
    """Return title and year, and the family name of the first author if the title is short; empty without a title."""
    key = title_key(paper.title)
    if key.count(" ") + 1 >= SHORT:
        return key, paper.year
    family = name_key(paper.authors[0]).rpartition(" ")[2] if paper.authors else ""
    return (key, paper.year, family) if key and family else ()


def merge(
    corpora: Sequence[Corpus], output: Path, progress: Progress = no_progress, log: Log = no_log
) -> tuple[Counter[str], list[str]]:
    """Join the papers of corpora, in order of precedence, into one file of canonical JSON lines.

    Memory holds the papers of all corpora. Errors are those of reading and writing.

    Returns:
        The counts (papers, citations and outside of the result; records, by_doi, by_id, by_title, renamed), and
        examples of records that were skipped.
    """
    groups, examples = _Groups(), list[str]()
    for number, corpus in enumerate(corpora):
        collector = Collector(corpus.skip_bad)
        for paper in corpus.papers(collector, f"reading {corpus.path.name}", progress, log):
            groups.add(number, paper)
        examples += collector.examples
    counts = groups.counts
    with write_lines(output) as write:
        for group in groups.by_id.values():
            cited: dict[str, None] = {}
            for number, paper in group.records:
                for docid in paper.citations:
                    other = groups.cited(number, docid, len(corpora))
                    if other is not group:
                        cited[other.id if other else docid] = None
            merged = merged_paper([paper for _, paper in group.records])
            write(canonical_line(replace(merged, id=group.id, citations=tuple(cited))))
            counts["papers"] += 1
            counts["citations"] += (inside := sum(docid in groups.by_id for docid in cited))
            counts["outside"] += len(cited) - inside
    return counts, examples


def merged_paper(records: Sequence[Paper]) -> Paper:
    """Return one paper with the most complete value of each field; equal ones are of the first record.

    The title is the first that is not in capitals, the authors are the most and the longest names, citations are all.
    """
    titles = [paper.title for paper in records if paper.title]
    values: dict[str, Any] = {
        name: next(filter(None, (getattr(paper, name) for paper in records)), "")
        for name in BIBLIOGRAPHIC
    }
    for name in _LONGEST:
        values[name] = max((getattr(paper, name) for paper in records), key=len)
    return replace(
        records[0],
        title=next((title for title in titles if not title.isupper()), titles[0] if titles else ""),
        year=next((paper.year for paper in records if paper.year is not None), None),
        authors=max((p.authors for p in records), key=lambda a: (len(a), sum(map(len, a)))),
        citations=tuple(dict.fromkeys(cited for paper in records for cited in paper.citations)),
        **values,
    )
