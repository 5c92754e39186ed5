"""Compares a bibliography with a corpus: retracted papers, other years, DOIs and titles, preprints, duplicates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby

from citerec.bibliography import publication
from citerec.bibliography.bibtex import corrected
from citerec.bibliography.entry import SERVER, Entry, PaperList, is_preprint_doi
from citerec.bibliography.keys import name_key, paper_doi, title_key
from citerec.bibliography.write import bibtex_entry, bibtex_record
from citerec.index.papers import Papers
from citerec.match.papers import (
    LEAST_WORDS,
    contradicts,
    listed_rows,
    rows_of_entry,
    same_title,
    similar_titles,
)
from citerec.types import Paper


def chosen_papers(
    listed: PaperList, papers: Papers
) -> tuple[list[Paper], dict[str, str], list[str]]:
    """Return the papers that a list names, each once, their notes by id, and the entries that are not in the corpus."""
    found = dict[str, Paper]()
    notes = dict[str, str]()
    missing = [*listed.unread]
    for entry, matches in _matched(listed, papers):
        if matches:
            paper = _closest(entry, matches)
            found.setdefault(paper.id, paper)
            notes[paper.id] = notes.get(paper.id) or entry.note
        else:
            missing.append(entry.title or entry.place)
    return [*found.values()], notes, missing


def _matched(listed: PaperList, papers: Papers) -> list[tuple[Entry, list[Paper]]]:
    """Return the entries of a list, each with the papers that it matches."""
    rows = listed_rows(listed, papers)
    by_row = papers.at(row for row_list in rows for row in row_list)
    return [
        (entry, [by_row[row] for row in sorted(of_entry)])
        for entry, of_entry in zip(listed.entries, rows, strict=True)
    ]


def _closest(entry: Entry, matches: Sequence[Paper]) -> Paper:
    """Return the match that agrees best with an entry."""
    return max(
        matches,
        key=lambda match: (
            _has_doi(entry, match),
            _has_title(entry, match),
            match.id in entry.ids,
            match.year == entry.year,
        ),
    )


class Problem(StrEnum):
    """What is wrong with an entry."""

    YEAR = "year"  # the corpus knows the paper under another one
    DOI = "doi"
    TITLE = "title"
    PREPRINT = "preprint"  # the corpus has its published version
    NO_DOI = "no-doi"  # the corpus has one
    DUPLICATE = "duplicate"  # of an earlier entry of the file
    RETRACTED = "retracted"
    UNREADABLE = "unreadable"


_NOT_CORRECTED = {Problem.RETRACTED, Problem.DUPLICATE, Problem.UNREADABLE}
# fields that a problem is about; a preprint that is published has others of all
_FIELDS = {
    Problem.YEAR: ["year"],
    Problem.DOI: ["doi"],
    Problem.NO_DOI: ["doi"],
    Problem.TITLE: ["title", "subtitle"],
    Problem.PREPRINT: (
        "year journal booktitle howpublished volume number pages publisher doi".split()
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of one entry."""

    problem: Problem
    entry: int  # its position among the entries of the file, from 0; -1 for one that cannot be read
    place: str  # where it is in the file
    key: str = ""
    title: str = ""
    file: str = ""  # what the file states
    corpus: str = ""  # what the corpus has; of a duplicate, where the earlier entry is
    id: str = ""  # of the paper in the corpus

    @property
    def described(self) -> str:
        """The problem in words; empty for an entry that cannot be read, whose place says it."""
        if self.entry < 0:
            return ""
        known = f"{self.corpus} ({self.id})".strip()
        name = self.problem.value.replace("doi", "DOI")
        texts = {
            Problem.RETRACTED: f"retracted: {known}",
            Problem.PREPRINT: f"preprint: published in {known}",
            Problem.NO_DOI: f"no DOI: the corpus has {known}",
            Problem.DUPLICATE: f"duplicate of {self.corpus}",
        }
        differs = f"{name}: the file has {self.file}, the corpus {known}"
        return texts.get(self.problem, differs)


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """The problems of a file of references, in the order of its entries."""

    listed: PaperList
    # which the corpus does not have; compared with each other only
    missing: tuple[Entry, ...]
    findings: tuple[Finding, ...]

    @property
    def entries(self) -> int:
        """How many entries the file has, with those that cannot be read."""
        return len(self.listed.entries) + len(self.listed.unread)

    @property
    def found(self) -> int:
        """How many entries the corpus has."""
        return len(self.listed.entries) - len(self.missing)

    @property
    def with_problem(self) -> int:
        """How many entries have a problem."""
        readable = {finding.entry for finding in self.findings if finding.entry >= 0}
        return len(readable) + sum(finding.entry < 0 for finding in self.findings)

    def corrections(self, papers: Papers) -> str:
        """Return the entries that the corpus states otherwise, in BibTeX: as in the file, but for what is corrected.

        Of a file that is not BibTeX, they are as the corpus states them, with the keys of the file. Retracted papers
        are left out, and duplicates: what becomes of them is for their author.
        """
        texts = list[str]()
        for place, group in groupby(self.findings, lambda finding: finding.entry):
            findings = [*group]
            if any(finding.problem in _NOT_CORRECTED for finding in findings):
                continue
            rows = papers.rows_of([finding.id for finding in findings]).tolist()
            by_row = papers.at(rows)
            source = self.listed.entries[place].source
            kind = ""
            values = dict[str, str]()
            for finding, row in zip(findings, rows, strict=True):
                published, fields = bibtex_record(by_row[row])
                if finding.problem is Problem.PREPRINT:
                    kind = published
                fields["subtitle"] = ""  # is in the title
                names = _FIELDS[finding.problem]
                values |= {name: fields[name] for name in names if name in fields}
            texts.append(
                f"{corrected(source, kind, values)}\n"
                if source
                else bibtex_entry(findings[-1].key or findings[-1].id, by_row[rows[-1]])
            )
        return "\n".join(texts)


def check_references(listed: PaperList, papers: Papers) -> ReferenceCheck:
    """Compare a list of references with a corpus."""
    findings = [
        Finding(problem=Problem.UNREADABLE, entry=-1, place=at) for at in listed.unread
    ]
    earlier = earlier_entries(listed.entries)
    missing = list[Entry]()
    for number, (entry, matches) in enumerate(_matched(listed, papers)):
        fault = partial(
            Finding, entry=number, place=entry.place, key=entry.key, title=entry.title
        )
        if number in earlier:
            findings.append(
                fault(
                    problem=Problem.DUPLICATE,
                    corpus=listed.entries[earlier[number]].place,
                )
            )
        if not matches:
            missing.append(entry)
            continue
        findings += [
            fault(problem=problem, file=stated, corpus=known, id=paper.id)
            for problem, stated, known, paper in _differences(entry, matches)
        ]
    return ReferenceCheck(listed, tuple(missing), tuple(findings))


def _differences(
    entry: Entry, matches: Sequence[Paper]
) -> Iterator[tuple[Problem, str, str, Paper]]:
    """Yield what an entry and the papers that it matches state differently: problem, entry, corpus, paper."""
    # one with the DOI of a publication is that, without its venue
    others = (
        match
        for match in matches
        if _is_published(match) and not _has_doi(entry, match)
    )
    published = next(others, None) if entry.is_preprint else None
    if published:
        yield Problem.PREPRINT, "preprint", _published_in(published), published
        matches = [published]
    paper = _closest(entry, matches)
    # a paper may have been published anew under another DOI
    meant = [paper] if _has_doi(entry, paper) else matches
    if retracted := next((match for match in meant if match.retracted), None):
        yield Problem.RETRACTED, "", _published_in(retracted), retracted
    if (
        entry.title
        and paper.title
        and not any(_has_title(entry, match) for match in matches)
    ):
        yield Problem.TITLE, entry.title, paper.title, paper
    if published:
        return
    if (
        entry.year
        and paper.year
        and not any(_has_year(entry, match) for match in matches)
    ):
        yield Problem.YEAR, str(entry.year), str(paper.year), paper
    records = [paper] if paper.id in entry.ids else [paper, *matches]
    with_doi = next((record for record in records if paper_doi(record)), None)
    is_plain_id = not entry.title and not entry.key
    if (
        with_doi
        and not is_plain_id
        and not any(_has_doi(entry, match) for match in matches)
    ):
        stated = [doi for doi in entry.dois if not is_preprint_doi(doi)]
        if stated or not entry.dois:
            problem = Problem.DOI if stated else Problem.NO_DOI
            yield problem, "".join(stated[:1]), paper_doi(with_doi), with_doi


def _published_in(paper: Paper) -> str:
    """Return venue, year and DOI of a paper, as far as they are known."""
    return ", ".join(
        filter(None, (paper.venue, str(paper.year or ""), paper_doi(paper)))
    )


def _has_year(entry: Entry, paper: Paper) -> bool:
    """Whether a paper has the year of an entry; a conference and the journal that prints it may differ by one."""
    difference = abs((entry.year or 0) - (paper.year or 0))
    if difference != 1 or not entry.venue or not paper.venue:
        return difference == 0
    stated = publication.kind_of(Paper(id="-", title="-", venue=entry.venue))
    both = {stated, publication.kind_of(paper)}
    return both == {publication.Kind.CONFERENCE, publication.Kind.JOURNAL}


def _has_doi(entry: Entry, paper: Paper) -> bool:
    return paper_doi(paper).lower() in {doi.lower() for doi in entry.dois}


def _has_title(entry: Entry, paper: Paper | Entry) -> bool:
    """Whether a paper or another entry has the title of an entry, up to case, accents, punctuation and hyphens."""
    return title_key(entry.title).replace(" ", "") == title_key(paper.title).replace(
        " ", ""
    )


def _is_published(paper: Paper) -> bool:
    """Whether a paper of the corpus appeared somewhere, and not on a preprint server."""
    if not paper.venue.strip() or SERVER.search(paper.venue):
        return False
    return publication.kind_of(paper) is not publication.Kind.PREPRINT


def earlier_entries(entries: Sequence[Entry]) -> Mapping[int, int]:
    """Return for each entry that repeats an earlier one the position of the first such: by DOI, key or title.

    A DOI or arXiv number counts unless title and authors show another work: programs write wrong ones into many
    entries. With a short or similar title the first author must be the same, too: a book may have the main title of
    an article.
    """
    first: dict[str, int] = {}
    earlier: dict[int, int] = {}
    by_place = dict(enumerate(entries))
    similar = similar_titles(
        [entry.title for entry in entries if title_key(entry.title)],
        enumerate(entry.title for entry in entries),
    )
    for place, entry in by_place.items():
        dois = {f"doi {doi.lower()}" for doi in (*entry.dois, *entry.preprints)}
        keys = (
            {f"key {entry.key.lower()}"}
            if entry.key
            else {f"id {i}" for i in entry.ids}
        )
        others = [first[key] for key in keys if key in first]
        for row in {first[doi] for doi in dois if doi in first}:
            other = by_place[row]
            if same_title(entry.title, other.title) or not contradicts(entry, other):
                others.append(row)
        if titles := similar.get(entry.title):
            is_long = len(title_key(entry.title).split()) >= LEAST_WORDS
            others += [
                row
                for row in rows_of_entry(entry, titles.before(place), by_place)
                if not contradicts(entry, by_place[row])
                and (
                    (is_long and _has_title(entry, by_place[row]))
                    or _has_first_author(entry, by_place[row])
                )
            ]
        if others:
            earlier[place] = min(others)
        for code in dois | keys:
            first.setdefault(code, place)
    return earlier


def _has_first_author(entry: Entry, other: Entry) -> bool:
    """Whether two entries have the same first author, or one has no authors."""
    last_names = {
        name_key(described.authors[0]).rpartition(" ")[2]
        for described in (entry, other)
        if described.authors
    }
    return len(last_names) < 2
