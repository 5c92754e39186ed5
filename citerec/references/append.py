"""Adds papers to a file of references, except those that it has already."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from citerec.bibliography.keys import paper_doi
from citerec.bibliography.paper_list import Entry, PaperList, parse_paper_list
from citerec.export.keys import unique_keys
from citerec.matching import listed_papers
from citerec.references.compose import extended, keys_in_use
from citerec.references.file import ReferenceFile, read_reference_file
from citerec.types import Paper


@dataclass(frozen=True, slots=True)
class Appended:
    """What was added to a file of references."""

    path: Path
    keys: tuple[str, ...] = ()  # of the new entries, in their order
    skipped: tuple[Paper, ...] = ()  # papers that the file has already
    backup: Path | None = (
        None  # the file with the former content; None if there was none, or nothing was added
    )


def append_papers(path: str | Path, papers: Sequence[Paper]) -> Appended:
    """Add papers to a BibTeX, RIS or CSL-JSON file; none of its former bytes changes.

    The former content is kept in `<file>.bak`. A file that does not exist is made, in the format of its suffix.

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
    keys = tuple(unique_keys(new, keys_in_use(file)))
    file.replace(extended(file, keys, new))
    return Appended(file.name, keys, skipped, file.backup if file.exists else None)


def _known(file: ReferenceFile, papers: Sequence[Paper]) -> set[int]:
    """Return the positions of papers that a file has, or that are the same as an earlier one of `papers`."""
    listed = PaperList(())
    if file.text:
        listed = parse_paper_list(file.text, str(file.name))
    known = {place for places in listed_papers(listed, papers) for place in places}
    itself = listed_papers(PaperList(tuple(map(_entry, papers))), papers)
    for place, same in enumerate(itself):
        if place not in known:
            known.update(other for other in same if other > place)
    return known


def _entry(paper: Paper) -> Entry:
    ids = tuple(filter(None, (paper.id, paper_doi(paper))))
    return Entry(ids=ids, title=paper.title, year=paper.year, authors=paper.authors)
