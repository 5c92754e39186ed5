"""Compares a file of references with a corpus: what they state differently, duplicates, published preprints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from citerec.bibliography.keys import paper_doi, title_key
from citerec.bibliography.paper_list import Entry, PaperList, read_paper_list
from citerec.bibliography.preprint import is_preprint_doi
from citerec.corpus.papers import Papers
from citerec.export.publication import Kind, kind_of
from citerec.matching import listed_rows, rows_of_entry, same_title, similar_titles
from citerec.types import Paper


class Problem(StrEnum):
    """What is wrong with an entry."""

    YEAR = "year"  # the corpus knows the paper under another one
    DOI = "doi"
    TITLE = "title"
    PREPRINT = "preprint"  # the corpus has its published version
    NO_DOI = "no-doi"  # the corpus has one
    DUPLICATE = "duplicate"  # of an earlier entry of the file
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of one entry."""

    problem: Problem
    entry: int  # its position among the entries of the file, from 0; -1 for one that cannot be read
    place: str  # where it is in the file
    key: str = ""
    title: str = ""
    stated: str = ""  # by the file
    known: str = ""  # by the corpus; of a duplicate, where the earlier entry is
    id: str = ""  # of the paper in the corpus


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """The problems of a file of references, in the order of its entries."""

    entries: int  # those that could be read, and those that could not
    found: int  # entries that the corpus has
    findings: tuple[Finding, ...]

    @property
    def with_problem(self) -> int:
        """How many entries have a problem."""
        readable = {one.entry for one in self.findings if one.entry >= 0}
        return len(readable) + sum(one.entry < 0 for one in self.findings)


def check_references(path: str | Path, papers: Papers) -> ReferenceCheck:
    """Compare a file of references with a corpus.

    Args:
        path: BibTeX, RIS, CSL-JSON, JSONL, or ids, one a line.
        papers: The papers of the corpus.

    Raises:
        BadInputError: If the file cannot be read as a list of papers.
    """
    return check_list(read_paper_list(path), papers)


def check_list(listed: PaperList, papers: Papers) -> ReferenceCheck:
    """Compare a list of references that was read with a corpus, as `check_references` does."""
    rows = listed_rows(listed, papers)
    by_row = papers.at(row for one in rows for row in one)
    matches = [
        [by_row[row] for row in sorted(one) if _is_match(entry, by_row[row])]
        for entry, one in zip(listed.entries, rows, strict=True)
    ]
    findings = [*_unreadable(listed)]
    earlier = _earlier_entries(listed.entries)
    for place, (entry, found) in enumerate(zip(listed.entries, matches, strict=True)):
        of_entry = _OfEntry(place, entry)
        if place in earlier:
            other = listed.entries[earlier[place]].place
            findings.append(of_entry.finding(Problem.DUPLICATE, "", other))
        if found:
            findings += of_entry.differences(found)
    return ReferenceCheck(
        len(listed.entries) + len(listed.unread), sum(map(bool, matches)), tuple(findings)
    )


def _unreadable(listed: PaperList) -> Iterator[Finding]:
    for fault in listed.unread:
        yield Finding(problem=Problem.UNREADABLE, entry=-1, place=fault)


def _is_match(entry: Entry, paper: Paper) -> bool:
    """Whether a match is more than a citation key that happens to be the id of another paper."""
    same_doi = paper_doi(paper).lower() in {doi.lower() for doi in entry.dois}
    by_key_alone = bool(entry.title) and entry.key == paper.id and not same_doi
    return not by_key_alone or not paper.title or same_title(entry.title, paper.title)


@dataclass(frozen=True, slots=True)
class _OfEntry:
    """Makes the findings of one entry."""

    number: int
    entry: Entry

    def finding(self, problem: Problem, stated: str, known: str, id: str = "") -> Finding:
        return Finding(
            problem=problem,
            entry=self.number,
            place=self.entry.place,
            key=self.entry.key,
            title=self.entry.title,
            stated=stated,
            known=known,
            id=id,
        )

    def differences(self, found: Sequence[Paper]) -> Iterator[Finding]:
        """Yield what an entry states differently from the papers of the corpus that it matches."""
        entry = self.entry
        published = next(filter(_is_published, found), None) if entry.is_preprint else None
        if published:
            doi = paper_doi(published)
            where = ", ".join(filter(None, (published.venue, str(published.year or ""), doi)))
            yield self.finding(Problem.PREPRINT, "preprint", where, published.id)
            found = [published]
        paper = self._closest(found)
        if entry.title and paper.title and not any(map(self._has_title, found)):
            yield self.finding(Problem.TITLE, entry.title, paper.title, paper.id)
        if published:
            return
        years = {one.year for one in found}
        if entry.year and entry.year not in years and paper.year:
            yield self.finding(Problem.YEAR, str(entry.year), str(paper.year), paper.id)
        yield from self._dois(paper, found)

    def _dois(self, paper: Paper, found: Sequence[Paper]) -> Iterator[Finding]:
        known = {doi.lower(): one for one in reversed(found) if (doi := paper_doi(one))}
        stated = [doi for doi in self.entry.dois if not is_preprint_doi(doi)]
        if not known or any(doi.lower() in known for doi in self.entry.dois):
            return
        if not self.entry.title and not self.entry.key:  # a plain id
            return
        first = paper if paper_doi(paper) else next(iter(known.values()))
        problem = Problem.DOI if stated else Problem.NO_DOI
        if stated or not self.entry.dois:
            yield self.finding(problem, "".join(stated[:1]), paper_doi(first), first.id)

    def _closest(self, found: Sequence[Paper]) -> Paper:
        """Return the paper that agrees best: by DOI, then title, then year."""
        dois = {doi.lower() for doi in self.entry.dois}
        return max(
            found,
            key=lambda one: (
                paper_doi(one).lower() in dois,
                self._has_title(one),
                one.year == self.entry.year,
            ),
        )

    def _has_title(self, paper: Paper) -> bool:
        """Whether a paper has the title of the entry, up to case, accents, punctuation and hyphens."""
        first, second = title_key(self.entry.title), title_key(paper.title)
        return first.replace(" ", "") == second.replace(" ", "")


def _is_published(paper: Paper) -> bool:
    """Whether a paper of the corpus appeared in a journal, in proceedings or as a book."""
    kind = kind_of(paper)
    return kind is not Kind.PREPRINT and (kind is not Kind.UNKNOWN or bool(paper.venue.strip()))


def _earlier_entries(entries: Sequence[Entry]) -> Mapping[int, int]:
    """Return for each entry that repeats an earlier one the position of the first such: by DOI, key or title."""
    first: dict[str, int] = {}
    earlier: dict[int, int] = {}
    by_place = dict(enumerate(entries))
    similar = similar_titles(
        [entry.title for entry in entries if title_key(entry.title)], [e.title for e in entries]
    )
    for place, entry in by_place.items():
        codes = {f"doi {doi.lower()}" for doi in entry.dois}
        codes |= {f"key {entry.key.lower()}"} if entry.key else {f"id {i}" for i in entry.ids}
        others = [first[code] for code in codes if code in first]
        if titles := similar.get(entry.title):
            others += rows_of_entry(entry, titles.before(place), by_place)
        if others:
            earlier[place] = min(others)
        for code in codes:
            first.setdefault(code, place)
    return earlier
