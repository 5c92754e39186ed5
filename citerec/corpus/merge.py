"""Merges corpora: joins the records of one paper, takes the most complete value of each field, remaps citations.

The corpora are read twice: for their keys, and for their texts. Records that wait for others of the same paper lie on
disk, so that memory does not hold texts.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import orjson

from citerec.bibliography.keys import doi_of, name_key, paper_doi, title_key
from citerec.corpus.collector import Collector
from citerec.corpus.tools import Corpus, canonical_line, write_lines
from citerec.errors import ConfigError, writing
from citerec.io import destination
from citerec.types import BIBLIOGRAPHIC, Log, Paper, Progress, no_log, no_progress

SHORT = 4  # words; shorter titles, such as "Editorial", join only with the same first author
_LONGEST = ("abstract", "venue", "pages", "publisher")  # fields of which the longest value is kept


@dataclass(slots=True)
class _Group:
    """Records that are the same paper."""

    id: str  # that of its first record
    title: int  # hash of the title of its first record
    doi: str = ""
    size: int = 0  # records


class Groups:
    """Records grouped by paper: by DOI, by id and title, else by title and year.

    Two records with different DOIs are never joined. Memory holds keys, not texts.
    """

    def __init__(self) -> None:
        self.groups: list[_Group] = []  # in the order of their first records
        self.counts = Counter[str]()
        self._by_doi = dict[str, int]()
        self._by_title = dict[int, int]()
        self._by_id: list[dict[str, int]] = []  # one per corpus
        self.by_final_id = dict[str, int]()

    def start_corpus(self) -> None:
        """Begin with the records of the next corpus, which has ids of its own."""
        self._by_id.append({})

    def add(self, paper: Paper) -> int:
        """Add a record of the current corpus; return the number of its group."""
        doi, title = paper_doi(paper).lower(), hash(title_key(paper.title))
        dated = _title_and_year(paper)
        number = self._joined(paper, doi, title, dated)
        if number is None:
            number = self._new(paper.id, title)
        group = self.groups[number]
        group.size += 1
        if doi and not group.doi:
            group.doi = doi
            self._by_doi.setdefault(doi, number)
        if dated:
            self._by_title.setdefault(dated, number)
        self._by_id[-1][paper.id] = number
        self.counts["records"] += 1
        return number

    def _joined(self, paper: Paper, doi: str, title: int, dated: int) -> int | None:
        same_id = self.by_final_id.get(paper.id)
        if same_id is not None and self.groups[same_id].title != title:
            same_id = None
        rules = (
            ("by_doi", self._by_doi.get(doi) if doi else None),
            ("by_id", same_id),
            ("by_title", self._by_title.get(dated)),
        )
        for rule, number in rules:
            if number is not None and (not doi or self.groups[number].doi in {"", doi}):
                self.counts[rule] += 1
                return number
        return None

    def _new(self, docid: str, title: int) -> int:
        if docid in self.by_final_id:  # another paper, such as of a key that two libraries use
            self.counts["renamed"] += 1
            number = len(self._by_id)
            while f"{docid}#{number}" in self.by_final_id:
                number += 1
            docid = f"{docid}#{number}"
        self.by_final_id[docid] = len(self.groups)
        self.groups.append(_Group(docid, title))
        return len(self.groups) - 1

    def cited(self, corpus: int, docid: str) -> int | None:
        """Return the group to which a citation of a record refers: by the ids of its corpus, by DOI, by other ids."""
        if (group := self._by_id[corpus].get(docid)) is not None:
            return group
        if (doi := doi_of(docid)) and (group := self._by_doi.get(doi.lower())) is not None:
            return group
        return next((ids[docid] for ids in self._by_id if docid in ids), None)


def _title_and_year(paper: Paper) -> int:
    """Return a hash of title and year, and of the first author if the title is short; 0 without a title."""
    key = title_key(paper.title)
    if not key:
        return 0
    if key.count(" ") + 1 >= SHORT:
        return hash((key, paper.year))
    author = paper.authors[0] if paper.authors else ""
    family = name_key(author).rpartition(" ")[2]
    return hash((key, paper.year, family)) if family else 0


@dataclass(frozen=True, slots=True)
class MergeReport:
    """What was merged."""

    papers: int
    citations: int  # among the merged papers
    counts: Counter[str]  # records, by_doi, by_id, by_title, renamed, outside
    collectors: tuple[Collector, ...]  # one per corpus: what was skipped


def merge(
    corpora: Sequence[Corpus], output: Path, progress: Progress = no_progress, log: Log = no_log
) -> MergeReport:
    """Join the papers of corpora, in order of precedence, into one file of canonical JSON lines.

    Raises:
        BadInputError: If a record is invalid and is not skipped.
        ConfigError: If there is no valid paper.
        OutputError: If the file cannot be written.
    """
    groups, of_record = Groups(), array("i")
    collectors = tuple(Collector(corpus.skip_bad) for corpus in corpora)
    for corpus, collector in zip(corpora, collectors, strict=True):
        groups.start_corpus()
        for paper in corpus.papers(collector, f"keys of {corpus.path.name}", progress, log):
            of_record.append(groups.add(paper))
    if not of_record:
        raise ConfigError(f"there is no valid paper in the corpora; {output} was not made")
    numbers, citations = iter(of_record), 0
    waiting = defaultdict[int, list[int]](list)  # places of the records in a file, by group
    with ExitStack() as stack:
        write = stack.enter_context(write_lines(output))
        with writing(output):  # without a name: no end of the process leaves it behind
            file = stack.enter_context(TemporaryFile(dir=destination(output).parent))
        for place, corpus in enumerate(corpora):
            task = f"texts of {corpus.path.name}"
            for paper in corpus.papers(Collector(corpus.skip_bad), task, progress):
                number = next(numbers)
                group = groups.groups[number]
                linked = ((docid, groups.cited(place, docid)) for docid in paper.citations)
                ids = (c if n is None else groups.groups[n].id for c, n in linked if n != number)
                record = replace(paper, citations=tuple(dict.fromkeys(ids)))
                if len(waiting[number]) + 1 < group.size:
                    with writing(output):
                        waiting[number].append(file.seek(0, 2))
                        file.write(canonical_line(record))
                    continue
                earlier = (_read(file, at) for at in waiting.pop(number))
                merged = replace(merged_paper([*earlier, record]), id=group.id)
                inside = sum(cited in groups.by_final_id for cited in merged.citations)
                citations += inside
                groups.counts["outside"] += len(merged.citations) - inside
                write(canonical_line(merged))
    return MergeReport(len(groups.groups), citations, groups.counts, collectors)


def _read(file: Any, place: int) -> Paper:
    file.seek(place)
    record: dict[str, Any] = orjson.loads(file.readline())
    for name in ("authors", "citations"):
        record[name] = tuple(record.get(name, ()))
    return Paper(**record)


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
