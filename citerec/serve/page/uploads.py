"""Drafts and lists of references from uploaded files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from citerec.bibliography.paper_list import PaperList, read_paper_list
from citerec.drafts import parse_queries
from citerec.drafts.formats import DocumentFormat, document_format
from citerec.errors import BadInputError
from citerec.export.clean import visible
from citerec.folder import IndexFolder
from citerec.matching.recognise import listed_rows
from citerec.serve.page.messages import in_words_of_the_page
from citerec.text import plural

MOST_FILES = 12
REFERENCES = frozenset(
    {".bib", ".bibtex", ".ris"}
)  # lists of references, unless a document is with them
_AROUND = frozenset({".bbl", ".sty", ".cls", ".bst"})  # files of a LaTeX draft that are no draft
_SHOWN = 5  # references that are not in the corpus and are named
_NO_TITLE = "Untitled"
_INSTEAD = "; paste its text into the fields instead"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as a browser sends it."""

    name: str
    data: bytes


def read_uploads(files: Sequence[Upload], index: IndexFolder) -> dict[str, Any]:
    """Read the draft of some files, or the references of a `.bib` or `.ris` alone.

    Args:
        files: A document, and for LaTeX the files that it includes; or a list of references.
        index: Where references are looked up.

    Returns:
        `draft` (`title`, `abstract`, `year`, `authors`, `venue`, `doi`; None for a list of references), `cited`
        (`id`, `title` and `year` of the papers of the index that are cited) and `notices`.

    Raises:
        BadInputError: If there is no file, or the document cannot be read.
        MissingExtraError: If the library for a document is not installed.
    """
    try:
        return _read(files, index)
    except BadInputError as error:
        message = in_words_of_the_page(error.message, _INSTEAD)
        raise BadInputError(error.path, message, line=error.line) from error


def _read(files: Sequence[Upload], index: IndexFolder) -> dict[str, Any]:
    if not files:
        raise BadInputError("upload", "there is no file; choose a .tex, .bib, .docx, .pdf or .md")
    with TemporaryDirectory(prefix="citerec-") as folder:
        paths = [_saved(file, Path(folder)) for file in files]
        main = _main(files)
        if _suffix(files[main].name) in REFERENCES:
            return _references(files[main].name, paths[main], index)
        return _draft(files[main], paths[main], index)


def _saved(file: Upload, folder: Path) -> Path:
    name = PurePosixPath(file.name.replace("\\", "/")).name.replace("\0", "")
    if name in ("", ".", ".."):
        raise BadInputError("upload", "a file has no name; rename it, and choose it again")
    path = folder / name
    try:
        path.write_bytes(file.data)
    except OSError as error:
        raise BadInputError(
            visible(name), f"its name is no file name ({error.strerror})"
        ) from error
    return path


def _main(files: Sequence[Upload]) -> int:
    """Return the place of the document; the largest LaTeX file that has a preamble comes before other files."""

    def order(i: int) -> tuple[int, int]:
        file = files[i]
        document = document_format(file.data, file.name)
        if document is DocumentFormat.LATEX and _suffix(file.name) not in _AROUND:
            return (0 if b"\\documentclass" in file.data else 1, -len(file.data))
        is_draft = _suffix(file.name) not in REFERENCES | _AROUND
        return (2 if document else 3 if is_draft else 4, -len(file.data))

    return min(range(len(files)), key=order)


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _draft(file: Upload, path: Path, index: IndexFolder) -> dict[str, Any]:
    notices = list[str]()
    try:
        read = parse_queries(file.data, name=file.name, file=path)
    except BadInputError as error:
        if "has no title" not in error.message:
            raise
        read = parse_queries(file.data, name=file.name, file=path, title=_NO_TITLE)
        notices.append(f"{file.name}: no title was found; write it into the field.")
    if read.batch:
        count = plural(len(read.queries), "draft")
        raise BadInputError(file.name, f"it holds {count}; the page searches for one at a time")
    [query] = read.queries
    title = "" if notices else visible(query.title)
    cited, looked_up = _looked_up(read.cited, file.name, index) if read.cited else ([], [])
    return {
        "draft": {
            "title": title,
            "abstract": query.abstract,
            "year": query.year,
            "authors": list(query.authors),
            "venue": query.venue,
            "doi": query.doi,
        },
        "cited": cited,
        "notices": [
            *notices,
            *map(in_words_of_the_page, map(visible, [*read.notices, *looked_up])),
        ],
    }


def _references(name: str, path: Path, index: IndexFolder) -> dict[str, Any]:
    try:
        listed = read_paper_list(path)
    except BadInputError as error:  # the message names the temporary file
        raise BadInputError(name, error.message, line=error.line) from error
    cited, notices = _looked_up(listed, name, index)
    return {"draft": None, "cited": cited, "notices": [*map(visible, notices)]}


def _looked_up(
    listed: PaperList, name: str, index: IndexFolder
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the papers of a list that the index has, and a notice about the others."""
    found = listed_rows(listed, index.papers)
    rows = sorted(frozenset[int]().union(*found))
    missing = [e.title or e.place for e, r in zip(listed.entries, found, strict=True) if not r]
    papers = index.papers.at(rows)
    cited = [
        {"id": papers[row].id, "title": visible(papers[row].title), "year": papers[row].year}
        for row in rows
    ]
    count = plural(len(listed.entries), "reference")
    notices = [f"{name}: {count}, {len(listed.entries) - len(missing)} of them in this corpus."]
    if missing:
        more = len(missing) - _SHOWN
        named = "; ".join(missing[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        notices.append(f"Not in this corpus: {named}.")
    return cited, [*notices, *listed.unread[:_SHOWN]]
