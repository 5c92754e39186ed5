"""Lists of papers as a program gives them: ids, DOIs, or a file such as a `.bib`."""

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import PurePath
from typing import Any

from citerec.bibliography.keys import doi_of
from citerec.bibliography.paper_list import PaperList, paper_list_of, read_paper_list
from citerec.corpus.papers import Papers
from citerec.errors import ConfigError, shown
from citerec.matching import listed_rows
from citerec.text import plural
from citerec.types import Log

PaperListLike = str | PathLike[str] | Iterable[str] | PaperList  # a file, or ids, DOIs or titles
SUFFIXES = frozenset({".bib", ".bibtex", ".ris", ".txt", ".json", ".jsonl", ".csl"})


@dataclass(frozen=True, slots=True)
class ListedPapers:
    """What of a list the corpus has."""

    rows: frozenset[int] = frozenset()  # row numbers of the papers
    not_found: tuple[
        str, ...
    ] = ()  # entries that the corpus does not have, or that could not be read


def find_listed(
    papers_listed: PaperListLike | None, name: str, papers: Papers, log: Log | None = None
) -> ListedPapers:
    """Find the papers of a list in a corpus, by id, DOI or title.

    Args:
        papers_listed: A path, or an iterable of ids, DOIs or titles. A single string is a path if it ends with one of
            `SUFFIXES` and is no DOI; else it is one id, DOI or title.
        name: What messages call the list.
        papers: The corpus.
        log: Receives how many papers were found.

    Raises:
        BadInputError: If there is no such file, or it cannot be read as a list.
        ConfigError: If the list holds something other than strings, such as row numbers.
    """
    if papers_listed is None:
        return ListedPapers()
    entries = _entries(papers_listed, name)
    found = listed_rows(entries, papers)
    missing = [
        entry.title or entry.place
        for entry, rows in zip(entries.entries, found, strict=True)
        if not rows
    ]
    listed = ListedPapers(frozenset[int]().union(*found), (*missing, *entries.unread))
    if log:
        entries_missing = plural(len(listed.not_found), "entry", "entries")
        left = f", {entries_missing} not found" if listed.not_found else ""
        log(f"{name}: {plural(len(listed.rows), 'paper')} of this corpus{left}")
    return listed


def _entries(given: Any, name: str) -> PaperList:
    if isinstance(given, PaperList):
        return given
    if isinstance(given, PathLike) or (isinstance(given, str) and _is_path(given)):
        return read_paper_list(fspath(given))
    texts: list[Any] = (
        [given] if isinstance(given, str) or not hasattr(given, "__iter__") else [*given]
    )
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise ConfigError(
            f"{name} must be the path of a .bib, .ris or .txt, or a list of ids or DOIs; found {shown(strange[0])}"
        )
    return paper_list_of(texts)


def _is_path(text: str) -> bool:
    return PurePath(text).suffix.lower() in SUFFIXES and not doi_of(text)
