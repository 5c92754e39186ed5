"""Finds the records and the whole texts of a library, and yields its papers; one table tells what was read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from citerec.corpus.contents import ContentKind
from citerec.corpus.readers import read_papers, recognise
from citerec.corpus.readers.files import BytesRead, Located, Source, head_of
from citerec.display import plural
from citerec.library.attached import attachments, resolver
from citerec.library.graph import LibraryGraph
from citerec.library.lookup import Records
from citerec.library.reading import TextKind, read_texts, text_kind
from citerec.library.zotero import DATABASE, read_zotero
from citerec.types import Log, Paper

LISTS = frozenset({"bibtex", "ris", "csl"})  # formats whose records name files
_LEAST_SOURCES = 2  # LaTeX sources that are a library; a single one is a draft
_SHOWN = 5  # files that the table names


def files_of_library(files: Sequence[Path], formats: Mapping[Path, str]) -> list[Path]:
    """Return the files that are a library; none if they are a corpus of another format, or no whole text is among them.

    `formats` are those of files that are a corpus by themselves.
    """
    if not LISTS.issuperset(formats.values()):
        return []
    databases = [file for file in files if file.name == DATABASE]
    kinds = {file: _kind(file) for file in files if file not in formats}
    texts = [file for file, kind in kinds.items() if kind]
    sources = [file for file in texts if kinds[file] is TextKind.LATEX]
    is_draft = texts == sources and len(sources) < _LEAST_SOURCES
    if databases:
        return [*databases, *texts]
    if any(attachments(file, name) for file, name in formats.items()):
        return [*formats, *texts]
    # a bibliography beside a source is a part of it
    folders = {file.parent for file in sources}
    lists = [file for file in formats if file.parent not in folders]
    return [] if is_draft else [*lists, *texts]


def _kind(file: Path) -> TextKind | None:
    return text_kind(head_of(file), file.name)


class _Library:
    """The records of a library, and its files: those that records name, and others."""

    def __init__(self) -> None:
        self.records = Records()
        self.located: list[Located] = []  # one for each record, and the faults
        self.rows: dict[Path, int] = {}  # of the records that name a file
        self.loose: list[Path] = []
        self.missing: list[Path | str] = []

    def add(self, located: Located, files: Sequence[Path] = ()) -> None:
        """Add a record with the texts that it names; a fault and a repeated id stay for the collector of records."""
        paper = located.paper
        if isinstance(paper, Paper) and not self.records.of_ids([paper.id]):
            row = self.records.add(paper)
            self.rows.update((file, row) for file in files)
        else:
            self.located.append(located)

    def read(self, file: Path) -> None:
        """Read a file of the library: records, a database of Zotero, or a text."""
        if file.name == DATABASE:
            items, loose = read_zotero(file)
            for located, files in items:
                self.missing += [path for path in files if not path.is_file()]
                self.add(located, [path for path in files if path.is_file()])
            self.loose += [path for path in loose if path.is_file()]
        elif _kind(file):
            self.loose.append(file)
        elif (
            content := recognise(head_of(file), file.name)
        ).kind is ContentKind.RECORDS:
            named = attachments(file, content.format)
            resolve = resolver(file, content.format)
            records = read_papers(Source(file, (file,)), content.format)
            for located in records:
                names = named.get(located.line, [])
                found = {name: resolve(name) for name in names}
                self.missing += [name for name in names if not found[name]]
                self.add(located, [path for path in found.values() if path])


def library_papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the papers of a library with their citations and the sentences that cite; `log` receives the table.

    Memory holds all records and texts. BadInputError if a list or a database cannot be read; a text that cannot be read
    is named in the table.
    """
    library = _Library()
    every_file = (*source.files, *source.ignored)
    # a database knows its texts; others were removed from the library
    databases = [file for file in every_file if file.name == DATABASE]
    for file in databases or every_file:
        library.read(file)
    graph = LibraryGraph(library.records)
    named = {file.resolve() for file in library.rows}
    loose = [file for file in library.loose if file.resolve() not in named]
    files = [*library.rows, *loose]
    total = sum(file.stat().st_size for file in source.files)
    unread: dict[Path, str] = {}
    texts = read_texts(
        files, source.workers, lambda count: read(total * count // max(len(files), 1))
    )
    for file, text in texts:
        if isinstance(text, str):
            unread[file] = text
        else:
            graph.add_text(text, file, library.rows.get(file))
    graph.link(source.add_cited)
    for line in _table(graph, len(files), unread, library.missing):
        log(line)
    yield from library.located
    for row in range(len(library.records.papers)):
        yield Located(source.path, row + 1, graph.paper(row))


def _table(
    graph: LibraryGraph,
    files: int,
    unread: Mapping[Path, str],
    missing: Sequence[Path | str],
) -> Iterator[str]:
    """Yield the lines of the table of what was read; only the first files that were not are named."""
    counts = graph.counts
    yield f"{plural(files, 'whole text')}:"
    rows = (
        ("matched to records", "texts that are the paper of a record"),
        ("records from texts", "texts that became records themselves"),
        ("references", "references found in them"),
        ("citations", "citations of papers of this library"),
        ("contexts", "sentences that cite these papers"),
        ("works added", "works added that several papers cite"),
    )
    for name, label in rows:
        if counts[name]:
            yield f"{counts[name]:>9,}  {label}"
    if unread:
        yield f"{len(unread):>9,}  not read:"
        yield from _first([f"{file}: {fault}" for file, fault in unread.items()])
    if missing:
        yield f"{len(missing):>9,}  named in the library, but missing:"
        yield from _first([*map(str, missing)])


def _first(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"           {line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"           … and {len(lines) - _SHOWN:,} more"
