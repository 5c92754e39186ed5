r"""An author's file of references: compared with a corpus, and extended by papers that it does not have.

Added entries have the style of the file: its ends of lines, a blank line between entries, its indentation. No former
byte changes, and the former content is kept in `<file>.bak`.
"""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from citerec.bibliography import bibtex, json_entries, publication, ris, write
from citerec.bibliography.entry import Entry, PaperList, is_preprint_doi
from citerec.bibliography.json_entries import Item
from citerec.bibliography.keys import paper_doi, title_key
from citerec.bibliography.paper_list import read_paper_list
from citerec.bibliography.source import Kind, decode, kind_of
from citerec.corpus.papers import Papers
from citerec.errors import BadInputError, OutputError, writing
from citerec.inputs import BOM, read_whole
from citerec.io import replacing
from citerec.matching import listed_papers, listed_rows, rows_of_entry, same_title, similar_titles
from citerec.types import Paper

_KINDS = {
    ".bib": Kind.BIBTEX, ".bibtex": Kind.BIBTEX, ".ris": Kind.RIS,
    ".json": Kind.JSON, ".csl": Kind.JSON,
}  # fmt: skip
_READS = "expected BibTeX, RIS or CSL-JSON"
_ADVICE = "name a .bib, .ris or CSL .json file"
_UNCHANGED = "nothing was added, repair it first"
_HEAD = re.compile(r"@[ \t]*[A-Za-z]+\s*[{(]\s*([^\s,{}()\"=#%\\@]+)")
_KEY_FIELD = re.compile(
    r"\b(?:crossref|xref|xdata|ids|related|entryset)\s*=\s*[{\"]([^{}\"]*)[}\"]", re.IGNORECASE
)
_FIELD_LINE = re.compile(r"^([ \t]{0,8})[A-Za-z][\w-]*[ \t]*=", re.MULTILINE)
_RIS_ID = re.compile(r"^ID {1,2}- ?(.*)$", re.MULTILINE)
_RIS_TAG = re.compile(r"^([A-Z][A-Z0-9])  -", re.MULTILINE)
_RIS_BOUND = re.compile(r"(TY|ER) {1,2}-(?: |$)")
_ITEM = re.compile(rb"\[(\s*)\{(\s*)\"")  # what precedes an item of CSL-JSON, and its first field


# --- Comparing it with a corpus


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
    findings = [
        Finding(problem=Problem.UNREADABLE, entry=-1, place=fault) for fault in listed.unread
    ]
    earlier = _earlier_entries(listed.entries)
    found = 0
    for number, (entry, of_entry) in enumerate(zip(listed.entries, rows, strict=True)):
        finding = partial(
            Finding, entry=number, place=entry.place, key=entry.key, title=entry.title
        )
        if number in earlier:
            place = listed.entries[earlier[number]].place
            findings.append(finding(problem=Problem.DUPLICATE, known=place))
        matches = [by_row[row] for row in sorted(of_entry) if _is_match(entry, by_row[row])]
        if matches:
            found += 1
            findings += [
                finding(problem=problem, stated=stated, known=known, id=paper.id)
                for problem, stated, known, paper in _differences(entry, matches)
            ]
    return ReferenceCheck(len(listed.entries) + len(listed.unread), found, tuple(findings))


def _is_match(entry: Entry, paper: Paper) -> bool:
    """Whether a match is more than a citation key that happens to be the id of another paper."""
    by_key_alone = bool(entry.title) and entry.key == paper.id and not _has_doi(entry, paper)
    return not by_key_alone or not paper.title or same_title(entry.title, paper.title)


def _differences(
    entry: Entry, matches: Sequence[Paper]
) -> Iterator[tuple[Problem, str, str, Paper]]:
    """Yield what an entry and the papers that it matches state differently: problem, entry, corpus, paper."""
    published = next(filter(_is_published, matches), None) if entry.is_preprint else None
    if published:
        doi = paper_doi(published)
        where = ", ".join(filter(None, (published.venue, str(published.year or ""), doi)))
        yield Problem.PREPRINT, "preprint", where, published
        matches = [published]
    paper = max(  # the one that agrees best
        matches,
        key=lambda one: (_has_doi(entry, one), _has_title(entry, one), one.year == entry.year),
    )
    if entry.title and paper.title and not any(_has_title(entry, one) for one in matches):
        yield Problem.TITLE, entry.title, paper.title, paper
    if published:
        return
    if entry.year and paper.year and entry.year not in {one.year for one in matches}:
        yield Problem.YEAR, str(entry.year), str(paper.year), paper
    with_doi = next((one for one in (paper, *matches) if paper_doi(one)), None)
    is_plain_id = not entry.title and not entry.key
    if with_doi and not is_plain_id and not any(_has_doi(entry, one) for one in matches):
        stated = [doi for doi in entry.dois if not is_preprint_doi(doi)]
        if stated or not entry.dois:
            problem = Problem.DOI if stated else Problem.NO_DOI
            yield problem, "".join(stated[:1]), paper_doi(with_doi), with_doi


def _has_doi(entry: Entry, paper: Paper) -> bool:
    return paper_doi(paper).lower() in {doi.lower() for doi in entry.dois}


def _has_title(entry: Entry, paper: Paper) -> bool:
    """Whether a paper has the title of an entry, up to case, accents, punctuation and hyphens."""
    first, second = title_key(entry.title), title_key(paper.title)
    return first.replace(" ", "") == second.replace(" ", "")


def _is_published(paper: Paper) -> bool:
    """Whether a paper of the corpus appeared in a journal, in proceedings or as a book."""
    kind = publication.kind_of(paper)
    return kind is not publication.Kind.PREPRINT and (
        kind is not publication.Kind.UNKNOWN or bool(paper.venue.strip())
    )


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


# --- Adding papers to it


@dataclass(frozen=True, slots=True)
class Appended:
    """What was added to a file of references."""

    path: Path
    keys: tuple[str, ...] = ()  # of the new entries, in their order
    skipped: tuple[Paper, ...] = ()  # papers that the file has already
    backup: Path | None = None  # the former content; None if there was none, or nothing was added


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A file of references as it was read; its content decides the format, for an empty one the suffix does."""

    name: Path  # as the user gave it
    path: Path  # where it is: links are followed
    kind: Kind  # JSON is CSL-JSON
    data: bytes = b""
    mode: int | None = None  # permissions; None if there is no such file yet
    text: str = ""  # with lines ended by `\n`
    records: Sequence[Any] = ()  # as the parser of its format reads them


def append_papers(path: str | Path, papers: Sequence[Paper]) -> Appended:
    """Add papers to a BibTeX, RIS or CSL-JSON file; a file that does not exist is made, in the format of its suffix.

    Args:
        path: The file.
        papers: The papers. Those that the file has already are skipped, by id, DOI or title.

    Raises:
        BadInputError: If the file is of another format, or has a broken entry.
        OutputError: If it cannot be written, or was changed meanwhile.
    """
    file = read_reference_file(Path(path))
    known = _known(file, papers)
    new = [paper for place, paper in enumerate(papers) if place not in known]
    skipped = tuple(paper for place, paper in enumerate(papers) if place in known)
    if not new:
        return Appended(file.name, skipped=skipped)
    keys = tuple(write.citation_keys(new, _keys_in_use(file)))
    data = _extended(file, keys, new)
    try:
        after = _records(file.kind, _text(data, file.name), file.name)
    except BadInputError:
        after = []
    before = [*file.records]
    if after[: len(before)] != before or len(after) != len(before) + len(new):
        message = "entries added at its end would not be read; repair its last lines first"
        raise BadInputError(file.name, message, line=file.text.rstrip("\n").count("\n") + 1)
    return Appended(file.name, keys, skipped, _replace(file, data))


def read_reference_file(name: Path) -> ReferenceFile:
    """Read a file of references that is to be extended; one that does not exist is empty.

    Raises:
        BadInputError: If it cannot be read, is of another format, or one of its entries is broken.
        OutputError: If it cannot be written: read-only, a folder, a device, in no folder.
    """
    path, status = Path(os.path.realpath(name)), None
    with writing(name), suppress(FileNotFoundError):
        status = path.stat()
    by_suffix = _KINDS.get(name.suffix.lower())
    if status is None:
        if not path.parent.is_dir():
            raise OutputError(f"cannot write {name}: there is no folder {path.parent}")
    elif not stat.S_ISREG(status.st_mode):
        raise OutputError(f"cannot write {name}: it is not a regular file; {_ADVICE}")
    elif not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise OutputError(f"cannot write {name}: it is read-only; allow it: chmod u+w {name}")
    data = read_whole(path) if status else b""
    text = _text(data, name)
    kind = kind_of(text, name) if text else by_suffix
    lines = (line.strip() for line in text.split("\n"))
    if kind is Kind.TEXT and all(not line or line.startswith("%") for line in lines):
        kind = by_suffix  # comments alone
    if kind is None:
        raise OutputError(f"cannot write {name}: its format is not known; {_ADVICE}")
    if kind is Kind.TEXT:
        raise BadInputError(name, f"this is plain text, {_READS}; {_ADVICE}")
    mode = stat.S_IMODE(status.st_mode) if status else None
    return ReferenceFile(name, path, kind, data, mode, text, _records(kind, text, name))


def _text(data: bytes, name: Path) -> str:
    return decode(data, name, reads=_READS) if data.removeprefix(BOM).strip() else ""


def _records(kind: Kind, text: str, name: Path) -> list[Any]:
    """Return what a file holds, as the parser of its format reads it.

    Raises:
        BadInputError: If something of it is broken: what is added after it might be lost.
    """
    if kind is Kind.BIBTEX:
        records, broken = bibtex.read_records(text)
        if broken:
            line, fault = broken[0]
            raise BadInputError(name, f"{fault}; {_UNCHANGED}", line=line)
        return [*records]
    if kind is Kind.RIS:
        begun = 0
        for number, line in enumerate([*text.split("\n"), "TY  -"], start=1):
            if tag := _RIS_BOUND.match(line):
                if tag[1] == "TY" and begun:
                    fault = f"this record has no end, a line 'ER  - '; {_UNCHANGED}"
                    raise BadInputError(name, fault, line=begun)
                begun = number if tag[1] == "TY" else 0
        return [*ris.read_records(text)]
    items: Any = json_entries.loads(text, name) if text else []
    if not isinstance(items, list):
        raise BadInputError(name, "this is JSON, but not a list; CSL-JSON is a list of items")
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            fault = f"item {number} of the list has no type, so this is not CSL-JSON"
            raise BadInputError(name, f"{fault}; {_UNCHANGED}")
    return items


def _known(file: ReferenceFile, papers: Sequence[Paper]) -> set[int]:
    """Return the positions of papers that a file has, or that are the same as an earlier one of `papers`."""
    match file.kind:
        case Kind.BIBTEX:
            entries = [bibtex.to_entry(record) for record in file.records]
        case Kind.RIS:
            entries = [ris.to_entry(record) for record in file.records]
        case _:
            items = (Item(number, None, value) for number, value in enumerate(file.records))
            entries = [json_entries.to_entry(item, file.name, strict=False) for item in items]
    named = tuple(entry for entry in entries if entry.ids or title_key(entry.title))
    known = {place for places in listed_papers(PaperList(named), papers) for place in places}
    own = tuple(
        Entry(
            ids=tuple(filter(None, (paper.id, paper_doi(paper)))),
            title=paper.title,
            year=paper.year,
            authors=paper.authors,
        )
        for paper in papers
    )
    for place, same in enumerate(listed_papers(PaperList(own), papers)):
        if place not in known:
            known.update(other for other in same if other > place)
    return known


def _keys_in_use(file: ReferenceFile) -> set[str]:
    """Return the keys of a file, also those in comments and those that fields such as `crossref` name."""
    if file.kind is Kind.JSON:
        return {str(item.get("id", "")) for item in file.records}
    if file.kind is Kind.RIS:
        return {key.strip() for key in _RIS_ID.findall(file.text)}
    named = (key for field in _KEY_FIELD.findall(file.text) for key in field.split(","))
    return {key.strip() for key in (*_HEAD.findall(file.text), *named)}


def _extended(file: ReferenceFile, keys: Sequence[str], papers: Sequence[Paper]) -> bytes:
    """Return the content of a file with some papers added; `keys` are theirs."""
    pairs = list(zip(keys, papers, strict=True))
    if file.kind is Kind.JSON:
        return _with_items(file.data, [write.csl_item(key, paper) for key, paper in pairs])
    if file.kind is Kind.BIBTEX:
        indents = Counter(_FIELD_LINE.findall(file.text)).most_common(1)
        indent = indents[0][0] if indents else write.INDENT
        entries = [write.bibtex_entry(key, paper, indent) for key, paper in pairs]
    else:
        entries = [write.ris_records([key], [paper]) for key, paper in pairs]
        if file.text and not _RIS_TAG.search(
            file.text
        ):  # some programs write one space before the dash
            entries = [_RIS_TAG.sub(r"\1 -", entry) for entry in entries]
    end = _end_of_line(file.data)
    texts = [(entry.strip("\n") + "\n").encode().replace(b"\n", end) for entry in entries]
    blank_lines = len(file.text) - len(file.text.rstrip("\n"))
    gap = end * max(0, 2 - blank_lines) if file.text else b""
    return file.data + gap + end.join(texts)


def _end_of_line(data: bytes) -> bytes:
    r"""Return the most frequent end of line: `\n`, `\r\n` or `\r`."""
    crlf = data.count(b"\r\n")
    counts = {b"\n": data.count(b"\n") - crlf, b"\r\n": crlf, b"\r": data.count(b"\r") - crlf}
    return max(counts, key=lambda end: counts[end])


def _with_items(data: bytes, items: Sequence[dict[str, Any]]) -> bytes:
    """Return a JSON list with items before its closing bracket, each indented like the first one."""
    end = _end_of_line(data)
    head, bracket, tail = (data if data.removeprefix(BOM).strip() else data + b"[]\n").rpartition(
        b"]"
    )
    style = _ITEM.search(head)
    lead, inner = (style[1], style[2]) if style else (end + b"  ", end + b"    ")
    outer = lead.splitlines()[-1] if lead.splitlines()[1:] else b""
    if inner.splitlines()[1:]:
        step = inner.splitlines()[-1].removeprefix(outer).decode() or "  "
        texts = [json.dumps(item, ensure_ascii=False, indent=step) for item in items]
    else:  # an item on one line
        texts = [json.dumps(item, ensure_ascii=False) for item in items]
    separator = b"," + (lead or b" ")
    added = separator.join(text.encode().replace(b"\n", end + outer) for text in texts)
    content = head.rstrip()
    gap = head[len(content) :] or (end if lead else b"")
    first = lead if content.endswith(b"[") else separator
    return content + first + added + gap + bracket + tail


def _replace(file: ReferenceFile, data: bytes) -> Path | None:
    """Write new content with the permissions of the file; return the backup of the former content, if there was any.

    Raises:
        OutputError: If the file was changed since it was read, or it or its backup cannot be written.
    """
    backup = None if file.mode is None else file.path.with_name(f"{file.path.name}.bak")
    for path, content in ((backup, file.data), (file.path, data)):
        if path is None:
            continue
        with writing(path), replacing(path) as temporary:
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if file.mode is not None:
                temporary.chmod(file.mode)
            if (file.path.read_bytes() if file.path.exists() else b"") != file.data:
                raise OutputError(
                    f"{file.name} was changed meanwhile; nothing was added, run this again"
                )
    return backup
