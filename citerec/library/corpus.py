"""Finds the records and the whole texts of a library, and yields its papers; one table tells what was read."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from citerec.corpus.contents import ContentKind
from citerec.corpus.readers import read_papers, recognise
from citerec.corpus.readers.files import (
    BytesRead,
    Located,
    Source,
    first_record,
    head_of,
)
from citerec.display import plural
from citerec.library.attached import (
    FIELDS,
    attachments,
    folders_of,
    found_file,
    is_text,
)
from citerec.library.graph import Text, add_text, add_works, linked
from citerec.library.jsonlines import is_full_text, is_item, read_lines
from citerec.library.latex import read_latex
from citerec.library.lookup import Records
from citerec.library.reading import Reader, read_texts, reader_of
from citerec.library.zotero import DATABASE, Listed, read_items, read_zotero
from citerec.types import Log, Paper

_LEAST_SOURCES = 2  # LaTeX sources that are a library; a single one is a draft
_SHOWN = 5  # files that the table names


def files_of_library(files: Sequence[Path], formats: Mapping[Path, str]) -> list[Path]:
    """Return the files that are a library; none if they are a corpus of another format, or no whole text is among them.

    `formats` are those of files that are a corpus by themselves.
    """
    if not FIELDS.keys() >= {*formats.values()}:
        return []
    databases = [file for file in files if file.name == DATABASE]
    readers = {file: _reader(file) for file in files if file not in formats}
    texts = [file for file, reader in readers.items() if reader]
    if databases or any(attachments(file, name) for file, name in formats.items()):
        return [*databases, *formats, *texts]
    sources = [file for file in texts if readers[file] is read_latex]
    if texts == sources and len(sources) < _LEAST_SOURCES:
        return []
    # a bibliography beside a source is a part of it
    folders = {file.parent for file in sources}
    return [*(file for file in formats if file.parent not in folders), *texts]


def _reader(file: Path) -> Reader | None:
    return reader_of(head_of(file), file.name)


def _listed(file: Path) -> Listed:
    """Yield the records of a list with the files that they name; nothing of another file."""
    if file.name == DATABASE:
        yield from read_zotero(file)
        return
    if is_item(first_record(head_of(file))):
        yield from read_items(file)
        return
    content = recognise(head_of(file), file.name)
    if content.kind is ContentKind.RECORDS and content.format != "json":
        names = attachments(file, content.format)
        for located in read_papers(Source(file, (file,)), content.format):
            yield located, names.get(located.line, [])


class _Library:
    """The records of a library, and its whole texts."""

    def __init__(self) -> None:
        self.records = Records()
        self.rows: dict[Path, int | None] = {}  # by text; None if no record names it
        self.dumps: list[Path] = []  # JSON lines of whole texts
        self.missing: list[str] = []
        self.faults: list[Located] = []  # and repeated ids: the collector counts them

    def add(self, file: Path) -> None:
        """Add a file: a whole text, or the records of a list with the texts that they name."""
        if is_full_text(first_record(head_of(file))):
            self.dumps.append(file)
        elif _reader(file):
            self.rows.setdefault(file.resolve(), None)
        else:
            folders = folders_of(file)
            for located, names in _listed(file):
                paper = located.paper if located else None
                row = None
                if isinstance(paper, Paper) and not self.records.of_ids([paper.id]):
                    row = self.records.add(paper)
                elif located:
                    self.faults.append(located)
                for name in filter(is_text, names):
                    if found := found_file(name, folders):
                        self.rows[found.resolve()] = row
                    else:
                        self.missing.append(name)


def library_papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the papers of a library with their citations and the sentences that cite; `log` receives the table.

    Memory holds all records and texts. BadInputError if a list or a database cannot be read; a text that cannot be read
    is named in the table.
    """
    library = _Library()
    # a database knows its texts; others were removed from the library
    databases = [file for file in source.files if file.name == DATABASE]
    for file in databases or [*source.files, *filter(_reader, source.ignored)]:
        library.add(file)
    records = library.records
    rows = library.rows
    stated = len(records.papers)
    size = sum(file.stat().st_size for file in source.files)
    dumped = ((file, text) for file in library.dumps for text in read_lines(file))
    texts: list[Text] = []
    unread: list[str] = []
    for file, text in chain(read_texts([*rows], source.workers), dumped):
        read(size // len(rows) if file in rows else 0)
        if isinstance(text, str):
            unread.append(text)
        else:
            row = rows.get(file)
            row = add_text(records, text, file) if row is None else row
            texts.append((row, text))
    became = len(records.papers) - stated
    if source.add_cited:
        add_works(records, texts, source.add_cited)
    papers = linked(records, texts)
    of_texts = [papers[row] for row in {row for row, _ in texts}]
    counts = {
        "texts that are the paper of a record": len(texts) - became,
        "texts that became records themselves": became,
        "references found in them": sum(len(text.references) for _, text in texts),
        "citations of papers of this library": sum(
            len(paper.citations) for paper in of_texts
        ),
        "sentences that cite these papers": sum(
            len(paper.contexts) for paper in of_texts
        ),
        "works added that several papers cite": len(papers) - stated - became,
    }
    if texts or unread:
        log(f"{plural(len(texts) + len(unread), 'whole text')}:")
    for label, count in counts.items():
        if count:
            log(f"{count:>9,}  {label}")
    _log_first(log, "not read", unread)
    _log_first(log, "named in the library, but missing", library.missing)
    yield from library.faults
    for row, paper in enumerate(papers, start=1):
        yield Located(source.path, row, paper)


def _log_first(log: Log, label: str, lines: Sequence[str]) -> None:
    """Log how many files there are of a kind, and the first of them."""
    if lines:
        log(f"{len(lines):>9,}  {label}:")
    for line in lines[:_SHOWN]:
        log(f"           {line}")
    if len(lines) > _SHOWN:
        log(f"           … and {len(lines) - _SHOWN:,} more")
