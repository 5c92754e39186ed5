r"""An author's file of references: compared with a corpus, and extended by papers that it does not have.

Entries are added at the end of the file, with its ends of lines: no former byte changes, and the former content is kept
in `<file>.bak`. What another program saves meanwhile is read again.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from citerec.bibliography import publication, write
from citerec.bibliography.entry import SERVER, Entry, PaperList, is_preprint_doi
from citerec.bibliography.keys import dois_of, paper_doi, title_key
from citerec.bibliography.paper_list import Kind, decode, kind_of, read_entries
from citerec.corpus.papers import Papers
from citerec.errors import BadInputError, FileChangedError, OutputError, writing
from citerec.inputs import BOM, read_whole
from citerec.io import check_parent, locked, replacing
from citerec.matching import contradicts, listed_rows, rows_of_entry, similar_titles
from citerec.types import Paper

_KINDS = {".bib": Kind.BIBTEX, ".bibtex": Kind.BIBTEX, ".ris": Kind.RIS}
_READS = "expected BibTeX or RIS"
_SECONDS = 60  # that one waits for others; of a file of 2,000 entries each needs one
_TRIES = 5  # while other programs save the file


# --- Its papers in a corpus


def chosen_papers(
    listed: PaperList, papers: Papers
) -> tuple[list[Paper], dict[str, str], list[str]]:
    """Return the papers that a list names, each once, their notes by id, and the entries that are not in the corpus."""
    rows = listed_rows(listed, papers)
    by_row = papers.at(row for row_list in rows for row in row_list)
    found = dict[str, Paper]()
    notes = dict[str, str]()
    missing = [*listed.unread]
    for entry, of_entry in zip(listed.entries, rows, strict=True):
        if of_entry:
            paper = _closest(entry, [by_row[row] for row in sorted(of_entry)])
            found.setdefault(paper.id, paper)
            notes[paper.id] = notes.get(paper.id) or entry.note
        else:
            missing.append(entry.title or entry.place)
    return [*found.values()], notes, missing


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


# --- Comparing it with a corpus


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


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """The problems of a file of references, in the order of its entries."""

    entries: int  # those that could be read, and those that could not
    found: int  # entries that the corpus has
    findings: tuple[Finding, ...]

    @property
    def with_problem(self) -> int:
        """How many entries have a problem."""
        readable = {finding.entry for finding in self.findings if finding.entry >= 0}
        return len(readable) + sum(finding.entry < 0 for finding in self.findings)


def check_references(listed: PaperList, papers: Papers) -> ReferenceCheck:
    """Compare a list of references with a corpus."""
    rows = listed_rows(listed, papers)
    by_row = papers.at(row for row_list in rows for row in row_list)
    findings = [Finding(problem=Problem.UNREADABLE, entry=-1, place=at) for at in listed.unread]
    earlier = _earlier_entries(listed.entries)
    found = 0
    for number, (entry, of_entry) in enumerate(zip(listed.entries, rows, strict=True)):
        fault = partial(Finding, entry=number, place=entry.place, key=entry.key, title=entry.title)
        if number in earlier:
            findings.append(
                fault(problem=Problem.DUPLICATE, corpus=listed.entries[earlier[number]].place)
            )
        if of_entry:
            found += 1
            matches = [by_row[row] for row in sorted(of_entry)]
            findings += [
                fault(problem=problem, file=stated, corpus=known, id=paper.id)
                for problem, stated, known, paper in _differences(entry, matches)
            ]
    return ReferenceCheck(len(listed.entries) + len(listed.unread), found, tuple(findings))


def _differences(
    entry: Entry, matches: Sequence[Paper]
) -> Iterator[tuple[Problem, str, str, Paper]]:
    """Yield what an entry and the papers that it matches state differently: problem, entry, corpus, paper."""
    # one with the DOI of a publication is that, without its venue
    others = (match for match in matches if _is_published(match) and not _has_doi(entry, match))
    published = next(others, None) if entry.is_preprint else None
    if published:
        yield Problem.PREPRINT, "preprint", _published_in(published), published
        matches = [published]
    paper = _closest(entry, matches)
    # a paper may have been published anew under another DOI
    meant = [paper] if _has_doi(entry, paper) else matches
    if retracted := next((match for match in meant if match.retracted), None):
        yield Problem.RETRACTED, "", _published_in(retracted), retracted
    if entry.title and paper.title and not any(_has_title(entry, match) for match in matches):
        yield Problem.TITLE, entry.title, paper.title, paper
    if published:
        return
    if entry.year and paper.year and not any(_has_year(entry, match) for match in matches):
        yield Problem.YEAR, str(entry.year), str(paper.year), paper
    records = [paper] if paper.id in entry.ids else [paper, *matches]
    with_doi = next((record for record in records if paper_doi(record)), None)
    is_plain_id = not entry.title and not entry.key
    if with_doi and not is_plain_id and not any(_has_doi(entry, match) for match in matches):
        stated = [doi for doi in entry.dois if not is_preprint_doi(doi)]
        if stated or not entry.dois:
            problem = Problem.DOI if stated else Problem.NO_DOI
            yield problem, "".join(stated[:1]), paper_doi(with_doi), with_doi


def _published_in(paper: Paper) -> str:
    """Return venue, year and DOI of a paper, as far as they are known."""
    return ", ".join(filter(None, (paper.venue, str(paper.year or ""), paper_doi(paper))))


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


def _has_title(entry: Entry, paper: Paper) -> bool:
    """Whether a paper has the title of an entry, up to case, accents, punctuation and hyphens."""
    return title_key(entry.title).replace(" ", "") == title_key(paper.title).replace(" ", "")


def _is_published(paper: Paper) -> bool:
    """Whether a paper of the corpus appeared somewhere, and not on a preprint server."""
    if not paper.venue.strip() or SERVER.search(paper.venue):
        return False
    return publication.kind_of(paper) is not publication.Kind.PREPRINT


def _earlier_entries(entries: Sequence[Entry]) -> Mapping[int, int]:
    """Return for each entry that repeats an earlier one the position of the first such: by DOI, key or title."""
    first: dict[str, int] = {}
    earlier: dict[int, int] = {}
    by_place = dict(enumerate(entries))
    similar = similar_titles(
        [entry.title for entry in entries if title_key(entry.title)],
        enumerate(entry.title for entry in entries),
    )
    for place, entry in by_place.items():
        codes = {f"doi {doi.lower()}" for doi in (*entry.dois, *entry.preprints)}
        codes |= {f"key {entry.key.lower()}"} if entry.key else {f"id {i}" for i in entry.ids}
        others = [first[code] for code in codes if code in first]
        if titles := similar.get(entry.title):
            same = rows_of_entry(entry, titles.before(place), by_place)
            others += [row for row in same if not contradicts(entry, by_place[row])]
        if others:
            earlier[place] = min(others)
        for code in codes:
            first.setdefault(code, place)
    return earlier


# --- Adding papers to it


@dataclass(frozen=True, slots=True)
class Appended:
    """What was added to a file of references."""

    path: Path
    keys: tuple[str, ...] = ()  # of the new entries, in their order
    skipped: tuple[Paper, ...] = ()  # papers that the file has already
    backup: Path | None = None  # the former content; None if there was none, or nothing was added


def append_papers(path: str | Path, papers: Sequence[Paper]) -> Appended:
    """Add papers to a BibTeX or RIS file; a file that does not exist is made, in the format of its suffix.

    Papers that the file has already, by DOI or title, are skipped; so are repeated ones. BadInputError if the file is
    of another format, or has a broken entry; OutputError if it cannot be written; FileChangedError if other programs
    save it again and again, LockedError if others of this function take minutes.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))  # a link stays one
    check_parent(target)
    with locked(path, seconds=_SECONDS):
        for _ in range(_TRIES - 1):
            with suppress(FileChangedError):
                return _append(path, target, papers)
        return _append(path, target, papers)


def _append(path: Path, target: Path, papers: Sequence[Paper]) -> Appended:
    """Add papers to the file as it is; FileChangedError if another program saves it before it is replaced."""
    kind, old, entries = read_reference_file(path)
    count = len(entries)
    own = [
        Entry(
            ids=(paper.id,),
            title=paper.title,
            year=paper.year,
            authors=paper.authors,
            dois=dois_of(f"{paper_doi(paper)} {paper.id}"),
        )
        for paper in papers
    ]
    repeated = _earlier_entries([*entries, *own])
    new = list[Paper]()
    skipped = list[Paper]()
    for place, paper in enumerate(papers, start=count):
        (skipped if place in repeated else new).append(paper)
    if not new:
        return Appended(path, skipped=tuple(skipped))
    taken = [entry.key for entry in entries]
    keys = tuple(write.citation_keys(new, taken))
    text = write.bibtex(new, taken=taken) if kind is Kind.BIBTEX else write.ris(new, keys)
    added = text.strip("\n").encode() + b"\n"
    end = b"\r\n" if b"\r\n" in old else b"\n"
    is_empty = not old.removeprefix(BOM).strip()
    gap = b"" if is_empty else end if old.endswith((b"\n", b"\r")) else 2 * end
    data = old + gap + added.replace(b"\n", end)
    try:
        after, _ = read_entries(decode(data, path, reads=_READS), kind, path, strict=True)
    except BadInputError:
        after = []
    if after[:count] != entries or len(after) != count + len(new):
        raise BadInputError(
            path, "entries added at its end would not be read; repair its last lines first"
        )
    backup = target.with_name(f"{target.name}.bak") if target.exists() else None
    former = replacing(backup) if backup else nullcontext()
    with writing(target), replacing(target) as temporary, former as saved:
        temporary.write_bytes(data)
        if saved:
            saved.write_bytes(old)
            shutil.copystat(target, saved)
            shutil.copymode(target, temporary)
        if (read_whole(target) if target.exists() else b"") != old:
            raise FileChangedError(path)
    return Appended(path, keys, tuple(skipped), backup)


def read_reference_file(path: Path) -> tuple[Kind, bytes, list[Entry]]:
    """Read a file of references that is to be extended: format, content and entries.

    Its content decides the format, else the suffix does; one that does not exist is empty. BadInputError if it cannot
    be read, or one of its entries is broken; OutputError if it is read-only or no file, or its format is not known.
    """
    exists = path.exists()
    if exists and not (path.is_file() and path.stat().st_mode & 0o222 and os.access(path, os.W_OK)):
        raise OutputError(f"cannot write {path}: it is read-only, or no regular file")
    data = read_whole(path) if exists else b""
    text = decode(data, path, reads=_READS) if data.removeprefix(BOM).strip() else ""
    kind = kind_of(text, path) if text else Kind.TEXT
    if kind is Kind.JSON:
        raise BadInputError(path, f"this is JSON, {_READS}; --format csl writes a file of its own")
    if kind is Kind.TEXT:  # comments alone, or nothing
        suffix = Path(os.path.realpath(path)).suffix.lower()  # a link may lead to ~/.bashrc
        if suffix not in _KINDS:
            raise OutputError(
                f"cannot write {path}: its format is unknown; name a .bib or .ris file"
            )
        kind = _KINDS[suffix]
    # not lenient: what is added after a broken entry might be lost
    return kind, data, read_entries(text, kind, path, strict=True)[0]
