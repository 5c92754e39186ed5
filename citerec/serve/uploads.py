"""Reads drafts that clients send, within limits; and the files of the page: a draft, bibliographies, archives of both.

Both run in processes of their own; nothing of the server is imported.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile
from zlib import error

from citerec.bibliography.bibtex import read_records
from citerec.bibliography.entry import PaperList
from citerec.bibliography.fields import Fields
from citerec.corpus.contents import Content, ContentKind, DocumentFormat
from citerec.corpus.lists import read_paper_list
from citerec.corpus.readers import recognise
from citerec.corpus.readers.libraries import BIBTEX
from citerec.display import plural, visible
from citerec.drafts import NO_TITLE, QueryFile, parse_queries
from citerec.drafts.latex import main_file
from citerec.drafts.sentences import paragraphs
from citerec.errors import BadInputError, ConfigError
from citerec.files.isolated import isolated
from citerec.types import BODY_SENTENCES, Json, Paper

MAX_QUERIES = 64  # of a request; of the sentences of a draft, as many are answered
MAX_SENTENCES = 1_000  # of a draft without a reference, from which these are chosen; of bodies that are searched
# characters of a draft; of all of a request together
MAX_DRAFT = 200_000
MAX_DRAFTS = 1_000_000
# of a .zip; parts of a path
MOST_FILES = 2_000
MOST_UNPACKED = 64 * 2**20
MOST_DEPTH = 20
LISTS = frozenset({ContentKind.RECORDS, ContentKind.IDS, ContentKind.PRINTED})
# between JSON records, or before those of a page of an API
_RECORDS = re.compile(rb'\}\s*\n\s*\{|"(?:results?|items|data)"\s*:\s*\[')
# files of a LaTeX draft that are no draft
AROUND = frozenset({".bbl", ".sty", ".cls", ".bst"})


def read_drafts(
    data: bytes,
    *,
    title: str | None,
    abstract: str | None,
    year: int | None,
    context: str | None,
) -> QueryFile:
    """Read the drafts that `data` holds, or the sentences of one; errors as of `parse_queries` and `within_limits`."""
    return within_limits(
        parse_queries(data, title=title, abstract=abstract).stated(
            year=year, context=context
        )
    )


def within_limits(drafts: QueryFile) -> QueryFile:
    """Return drafts, or the sentences of one; ConfigError if it would take too long to search for all of them."""
    sizes = [len(query.title) + len(query.abstract) for query in drafts.queries]
    if drafts.by_sentence:
        counts = [(len(sizes), MAX_SENTENCES, "sentences without a reference")]
    else:
        counts = [
            (len(sizes), MAX_QUERIES, "queries"),
            (max(sizes), MAX_DRAFT, "characters of title and abstract in one draft"),
            (sum(sizes), MAX_DRAFTS, "characters of titles and abstracts"),
            (
                sum(min(len(query.body), BODY_SENTENCES) for query in drafts.queries),
                MAX_SENTENCES,
                "sentences of the texts of drafts",
            ),
        ]
    for found, most, what in counts:
        if found > most:
            raise ConfigError(
                f"there are {found:,} {what}; send at most {most:,} at once"
            )
    return drafts


@dataclass(frozen=True)
class Upload:
    """A file as a browser sends it."""

    name: str
    data: bytes

    @cached_property
    def content(self) -> Content:
        """What it is."""
        return recognise(self.data, self.name)

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def is_list(self) -> bool:
        """Whether it is a list of papers; one record as JSON is a draft."""
        is_record = self.data.lstrip().startswith(b"{") and not _RECORDS.search(
            self.data
        )
        return (
            self.content.kind in LISTS and self.suffix not in AROUND and not is_record
        )

    def path_in(self, folder: str) -> Path:
        """Return where the file is kept in a folder, at its place in the sent one, and nowhere else."""
        parts = self.name.replace("\\", "/").replace("\0", "").split("/")
        names = [
            *filter(None, (part.lstrip(".")[-60:] for part in parts[-MOST_DEPTH:]))
        ]
        return Path(folder, *(names or ["file"]))


def unpacked(file: Upload, unread: list[str]) -> list[Upload]:
    """Return the files of a .zip within limits, or the file itself; `unread` receives what is left out, and why."""
    if (
        not file.data.startswith(b"PK\x03\x04")
        or file.content.kind is ContentKind.DRAFT
    ):
        return [file]
    found = list[Upload]()
    try:
        with ZipFile(BytesIO(file.data)) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            if (
                len(infos) > MOST_FILES
                or sum(info.file_size for info in infos) > MOST_UNPACKED
            ):
                most = f"at most {MOST_FILES:,} files and {MOST_UNPACKED >> 20} MB unpacked"
                unread.append(f"{file.name}: expected {most}")
                return []
            for member in infos:
                found.append(Upload(member.filename, archive.read(member)))
    except (
        BadZipFile,
        RuntimeError,
        NotImplementedError,
        OSError,
        ValueError,
        error,
    ) as fault:
        unread.append(f"{file.name}: this .zip is damaged or encrypted ({fault})")
    return found


class Uploads(NamedTuple):
    """What was read of some files."""

    # as the page shows it; None for lists of references alone
    draft: Json | None
    # what the draft cites, then every other bibliography, with the names of the files
    lists: list[tuple[str, PaperList]]
    notices: list[str]
    unread: list[str]  # files, and why
    faults: list[BadInputError]
    keys: set[str]  # of the bibliographies


def read_sent(files: Sequence[Upload]) -> Uploads:
    """Read files, at least one, as `read_files` does, in a process and a folder of their own."""
    with TemporaryDirectory(prefix="citerec-") as folder:
        return isolated(partial(read_files, files, folder), files[0].name)


def read_files(files: Sequence[Upload], folder: str) -> Uploads:
    """Read the draft among some files, and every bibliography sent with it, or bibliographies alone.

    The files are kept in a folder, at their places.
    """
    read = Uploads(None, [], [], [], [], set())
    files = [member for file in files for member in unpacked(file, read.unread)]
    if not files:
        raise BadInputError(
            "files", "; ".join(read.unread) or "none was sent; choose a draft"
        )
    for file in files:
        path = file.path_in(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
    drafts = {
        file.name: file.data
        for file in files
        if file.content.format == DocumentFormat.LATEX and file.suffix not in AROUND
    }
    first = main_file(drafts) if drafts else ""
    main = min(files, key=lambda file: (file.name != first, *_order(file)))
    lists = [file for file in files if file.is_list]
    if main.content.format != DocumentFormat.LATEX:
        rest = (file for file in files if file is not main and file not in lists)
        beside = f"not read beside {main.name}"
        read.unread.extend(
            f"{file.name}: this is {file.content}; {beside}" for file in rest
        )
    cited = set[str]()  # keys in the draft
    for file in lists if main.is_list else [main, *lists]:
        path = file.path_in(folder)
        try:
            if file.is_list:
                listed = read_paper_list(path)
            else:
                draft, listed, lines = _draft(file, path)
                read = read._replace(draft=draft, notices=lines)
            keys = {entry.key for entry in listed.entries} - {""}
            # the draft names which it cites of a list that has its keys
            if keys.isdisjoint(cited) and (listed.entries or listed.unread):
                read.lists.append((file.name, listed))
            if file.is_list:
                read.keys.update(keys)
            else:
                cited = keys
        except BadInputError as fault:  # its path may be that of the folder
            read.faults.append(BadInputError(file.name, fault.message, line=fault.line))
    if read.draft and not read.lists:
        read.lists.append((main.name, PaperList(())))
    return read


def _order(file: Upload) -> tuple[int, int]:
    """Order the largest document first, then texts, lists and the rest."""
    content = file.content
    is_draft = content.kind is ContentKind.DRAFT and file.suffix not in AROUND
    is_read = content.kind is not ContentKind.UNREAD and file.suffix not in AROUND
    order = 1 if is_read and not file.is_list else 2
    return (0 if is_draft else order, -len(file.data))


def _draft(file: Upload, path: Path) -> tuple[Json, PaperList, list[str]]:
    """Return the draft, its references, and what was read of both."""
    read = parse_queries(file.data, name=file.name, file=path)
    if read.batch:
        count = plural(len(read.queries), "draft")
        raise BadInputError(
            file.name, f"it holds {count}; the page searches for one at a time"
        )
    [query] = read.queries
    draft = {
        name: getattr(query, name) for name in ("abstract", "year", "venue", "doi")
    }
    is_titled = not any(NO_TITLE in notice for notice in read.notices)
    draft |= {
        "title": visible(query.title) if is_titled else "",
        "authors": [*query.authors],
    }
    parts = paragraphs(read.lines)
    draft["text"] = [
        {"section": visible(name), "sentences": part} for name, part in parts
    ]
    return draft, read.cited or PaperList(()), [*map(visible, read.notices)]


def bibtex_papers(text: str) -> list[Paper]:
    """Read papers from BibTeX with all that it states of them; BadInputError names an entry that cannot be read."""
    records, broken = read_records(text)
    if broken:
        line, fault = broken[0]
        raise BadInputError("outside", fault, line=line)
    name = Path("outside")
    return [BIBTEX.read(Fields(fields, name, line)) for line, fields in records]
