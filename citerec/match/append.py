"""Adds papers to a bibliography in BibTeX or RIS."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from citerec.bibliography import write
from citerec.bibliography.entry import Entry
from citerec.bibliography.keys import dois_of, paper_doi
from citerec.bibliography.paper_list import Kind, decode, kind_of, read_entries
from citerec.errors import BadInputError, FileChangedError, OutputError
from citerec.files.atomic import check_parent, locked, replacing
from citerec.files.reading import BOM, read_whole
from citerec.match.check import earlier_entries
from citerec.types import Paper

_KINDS = {".bib": Kind.BIBTEX, ".bibtex": Kind.BIBTEX, ".ris": Kind.RIS}
_READS = "expected BibTeX or RIS"
_SECONDS = 60  # that one waits for others; of a file of 2,000 entries each needs one
_TRIES = 5  # while other programs save the file


@dataclass(frozen=True, slots=True)
class Appended:
    """What was added to a file of references."""

    path: Path
    keys: tuple[str, ...] = ()  # of the new entries, in their order
    skipped: tuple[Paper, ...] = ()  # papers that the file has already
    # the former content; None if there was none, or nothing was added
    backup: Path | None = None


def append_papers(
    path: str | Path,
    papers: Sequence[Paper],
    notes: Mapping[str, str] = write.NO_NOTES,
) -> Appended:
    """Add papers to a BibTeX or RIS file; a file that does not exist is made, in the format of its suffix.

    `notes` are by id, for the papers that are added.


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
                return _append(path, target, papers, notes)
        return _append(path, target, papers, notes)


def _append(
    path: Path, target: Path, papers: Sequence[Paper], notes: Mapping[str, str]
) -> Appended:
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
    repeated = earlier_entries([*entries, *own])
    new = list[Paper]()
    skipped = list[Paper]()
    for place, paper in enumerate(papers, start=count):
        (skipped if place in repeated else new).append(paper)
    if not new:
        return Appended(path, skipped=tuple(skipped))
    taken = [entry.key for entry in entries]
    keys = tuple(write.citation_keys(new, taken))
    text = (
        write.bibtex(new, notes, taken)
        if kind is Kind.BIBTEX
        else write.ris(new, keys, notes)
    )
    added = text.strip("\n").encode() + b"\n"
    end = b"\r\n" if b"\r\n" in old else b"\n"
    is_empty = not old.removeprefix(BOM).strip()
    gap = b"" if is_empty else end if old.endswith((b"\n", b"\r")) else 2 * end
    data = old + gap + added.replace(b"\n", end)
    try:
        after, _ = read_entries(
            decode(data, path, reads=_READS), kind, path, strict=True
        )
    except BadInputError:
        after = []
    if after[:count] != entries or len(after) != count + len(new):
        raise BadInputError(
            path,
            "entries added at its end would not be read; repair its last lines first",
        )
    backup = target.with_name(f"{target.name}.bak") if target.exists() else None
    former = replacing(backup) if backup else nullcontext()
    with replacing(target) as temporary, former as saved:
        temporary.write_bytes(data)
        if saved:
            saved.write_bytes(old)
            shutil.copystat(target, saved)
            shutil.copymode(target, temporary)
        if (read_whole(target) if target.exists() else b"") != old:
            raise FileChangedError(
                f"{path} is saved by another program again and again, and was left alone; "
                "close it there, then run this again"
            )
    return Appended(path, keys, tuple(skipped), backup)


def read_reference_file(path: Path) -> tuple[Kind, bytes, list[Entry]]:
    """Read a file of references that is to be extended: format, content and entries.

    Its content decides the format, else the suffix does; one that does not exist is empty. BadInputError if it cannot
    be read, or one of its entries is broken; OutputError if it is read-only or no file, or its format is not known.
    """
    exists = path.exists()
    if exists and not (
        path.is_file() and path.stat().st_mode & 0o222 and os.access(path, os.W_OK)
    ):
        raise OutputError(f"cannot write {path}: it is read-only, or no regular file")
    data = read_whole(path) if exists else b""
    text = decode(data, path, reads=_READS) if data.removeprefix(BOM).strip() else ""
    kind = kind_of(text, path) if text else Kind.TEXT
    if kind is Kind.JSON:
        raise BadInputError(
            path,
            f"this is JSON or YAML, {_READS}; --format csl writes a file of its own",
        )
    if kind is Kind.TEXT:  # comments alone, or nothing
        # a link may lead to ~/.bashrc
        suffix = Path(os.path.realpath(path)).suffix.lower()
        if suffix not in _KINDS:
            raise OutputError(
                f"cannot write {path}: its format is unknown; name a .bib or .ris file"
            )
        kind = _KINDS[suffix]
    # not lenient: what is added after a broken entry might be lost
    return kind, data, read_entries(text, kind, path, strict=True)[0]
