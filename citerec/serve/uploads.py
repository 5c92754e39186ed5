"""Reads drafts that clients send, within limits; and the files of the page: a draft, bibliographies, archives of both.

It runs in a process of its own, and imports nothing of the server.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path, PurePosixPath
from stat import S_ISLNK
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile
from zlib import error

from citerec.bibliography.entry import PaperList
from citerec.bibliography.paper_list import read_paper_list
from citerec.drafts import NO_TITLE, DocumentFormat, QueryFile, document_format, parse_queries
from citerec.drafts.sentences import paragraphs
from citerec.errors import BadInputError, ConfigError
from citerec.text import plural, visible

MAX_QUERIES = 64  # of a request; of the sentences of a draft, as many are answered
MAX_SENTENCES = 1_000  # of a draft without a reference, from which these are chosen
MAX_DRAFT, MAX_DRAFTS = 200_000, 1_000_000  # characters of a draft; of all of a request together
MOST_FILES, MOST_UNPACKED, MOST_DEPTH = 2_000, 64 * 2**20, 20  # of a .zip; parts of a path
REFERENCES = frozenset({".bib", ".bibtex", ".ris"})  # lists, unless a document is with them
_MAIN = re.compile(rb"\\documentclass(?![^{]{0,500}\{\s*(?:subfiles|standalone)\b)")  # no chapter
AROUND = frozenset({".bbl", ".sty", ".cls", ".bst"})  # files of a LaTeX draft that are no draft


def read_drafts(
    data: bytes, context: str | None, *, title: str | None, abstract: str | None
) -> QueryFile:
    """Read the drafts that `data` holds, or the sentences of one; errors as of `parse_queries` and `within_limits`."""
    drafts = parse_queries(data, title=title, abstract=abstract)
    return within_limits(drafts.with_context(context))


def within_limits(drafts: QueryFile) -> QueryFile:
    """Return drafts, or the sentences of one; ConfigError if it would take too long to search for all of them."""
    sizes = [len(one.title) + len(one.abstract) for one in drafts.queries]
    if drafts.by_sentence:
        counts = [(len(sizes), MAX_SENTENCES, "sentences without a reference")]
    else:
        counts = [
            (len(sizes), MAX_QUERIES, "queries"),
            (max(sizes), MAX_DRAFT, "characters of title and abstract in one draft"),
            (sum(sizes), MAX_DRAFTS, "characters of titles and abstracts"),
        ]
    for found, most, what in counts:
        if found > most:
            raise ConfigError(f"there are {found:,} {what}; send at most {most:,} at once")
    return drafts


class Upload(NamedTuple):
    """A file as a browser sends it."""

    name: str
    data: bytes

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_list(self) -> bool:
        """Whether it is a bibliography; JSON is one if it is a list."""
        is_json = self.suffix == ".json" and self.data.lstrip().startswith(b"[")
        return self.suffix in REFERENCES or is_json

    def path_in(self, folder: str) -> Path:
        """Return where the file is kept in a folder, at its place in the sent one, and nowhere else."""
        parts = self.name.replace("\\", "/").replace("\0", "").split("/")
        names = [*filter(None, (part.lstrip(".")[-60:] for part in parts[-MOST_DEPTH:]))]
        return Path(folder, *(names or ["file"]))


def unpacked(file: Upload, unread: list[str]) -> list[Upload]:
    """Return the files of a .zip within limits, or the file itself; `unread` receives what is left out, and why."""
    if not file.data.startswith(b"PK\x03\x04") or document_format(file.data, file.name):
        return [file]
    found = list[Upload]()
    try:
        with ZipFile(BytesIO(file.data)) as archive:
            infos = [one for one in archive.infolist() if not one.is_dir()]
            if len(infos) > MOST_FILES or sum(one.file_size for one in infos) > MOST_UNPACKED:
                most = f"at most {MOST_FILES:,} files and {MOST_UNPACKED >> 20} MB unpacked"
                unread.append(f"{file.name}: expected {most}")
                return []
            for one in infos:
                place = PurePosixPath(one.filename.replace("\\", "/"))
                if S_ISLNK(one.external_attr >> 16) or place.is_absolute() or ".." in place.parts:
                    unread.append(f"{file.name}: {place} is a link or outside the folder")
                else:
                    found.append(Upload(str(place), archive.read(one)))
    except (BadZipFile, RuntimeError, NotImplementedError, OSError, ValueError, error) as fault:
        unread.append(f"{file.name}: this .zip is damaged or encrypted ({fault})")
    return found


class Uploads(NamedTuple):
    """What was read of some files."""

    draft: dict[str, Any] | None  # as the page shows it; None for lists of references alone
    # what the draft cites, then every other bibliography, with the names of the files
    lists: list[tuple[str, PaperList]]
    notices: list[str]
    unread: list[str]  # files, and why
    faults: list[BadInputError]
    keys: set[str]  # of the bibliographies


def read_files(files: Sequence[Upload], folder: str) -> Uploads:
    """Read the draft among some files, and every bibliography sent with it, or bibliographies alone.

    The files are kept in a folder, at their places.
    """
    read = Uploads(None, [], [], [], [], set())
    files = [one for file in files for one in unpacked(file, read.unread)]
    if not files:
        raise BadInputError("files", "; ".join(read.unread) or "none was sent; choose a draft")
    for file in files:
        try:
            file.path_in(folder).parent.mkdir(parents=True, exist_ok=True)
            file.path_in(folder).write_bytes(file.data)
        except OSError:
            read.unread.append(f"{file.name}: another file has its name")
    main, lists = min(files, key=_order), [file for file in files if file.is_list]
    if document_format(main.data, main.name) is not DocumentFormat.LATEX:
        rest = (one.name for one in files if one is not main and one not in lists)
        read.unread.extend(f"{name}: not read beside {main.name}" for name in rest)
    keys = set[str]()  # that the draft cites
    for file in lists if main.is_list else [main, *lists]:
        try:
            if not file.is_list:
                draft, listed, lines = _draft(file, file.path_in(folder))
                read = read._replace(draft=draft, notices=lines)
                keys = {one.key for one in listed.entries} - {""}
            else:
                listed = read_paper_list(file.path_in(folder))
                read.keys.update({one.key for one in listed.entries} - {""})
            # the draft names which it cites of a list that has its keys
            is_its = file.is_list and keys & {one.key for one in listed.entries}
            if not is_its and (listed.entries or listed.unread):
                read.lists.append((file.name, listed))
        except BadInputError as fault:  # its path may be that of the folder
            read.faults.append(BadInputError(file.name, fault.message, line=fault.line))
    if read.draft and not read.lists:
        read.lists.append((main.name, PaperList(())))
    return read


def _order(file: Upload) -> tuple[int, int]:
    """Order the document first: the largest LaTeX file with a preamble, then other documents, lists and the rest."""
    document = document_format(file.data, file.name)
    if document is DocumentFormat.LATEX and file.suffix not in AROUND:
        return (0 if _MAIN.search(file.data) else 1, -len(file.data))
    is_draft = not file.is_list and file.suffix not in AROUND
    return (2 if document else 3 if is_draft else 4, -len(file.data))


def _draft(file: Upload, path: Path) -> tuple[dict[str, Any], PaperList, list[str]]:
    """Return the draft, its references, and what was read of both."""
    read = parse_queries(file.data, name=file.name, file=path)
    if read.batch:
        count = plural(len(read.queries), "draft")
        raise BadInputError(file.name, f"it holds {count}; the page searches for one at a time")
    [query] = read.queries
    draft = {name: getattr(query, name) for name in ("abstract", "year", "venue", "doi")}
    is_titled = not any(NO_TITLE in notice for notice in read.notices)
    draft |= {"title": visible(query.title) if is_titled else "", "authors": [*query.authors]}
    parts = paragraphs(read.lines)
    draft["text"] = [{"section": visible(name), "sentences": part} for name, part in parts]
    return draft, read.cited or PaperList(()), [*map(visible, read.notices)]
