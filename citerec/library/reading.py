"""Reads whole texts in processes of their own; what was read is kept in the user's cache by the checksum of the file.

An interrupted run therefore goes on where it stopped, and another run reads only what is new. A file that crashes its
reader, or takes too long, costs itself.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from citerec.corpus.readers.files import HEAD
from citerec.errors import BadInputError, CiterecError
from citerec.files.arrays import batched
from citerec.files.cache import keep, kept, sha256_of_files
from citerec.files.isolated import isolated
from citerec.files.reading import BOM, open_unpacked, read_stream, reading
from citerec.library.latex import MAIN, read_latex
from citerec.library.pdf import read_pdf
from citerec.library.texts import FullText
from citerec.library.xml import is_xml_text, read_xml

VERSION = 1  # of what the readers find: another one reads all files again
_BATCH = 8  # files for one process, which takes half a second to start
_TEXT = TypeAdapter(FullText)
_PARTS = ("*.tex", "*.bbl", "*.bib")  # what belongs to a LaTeX source

Reader = Callable[[bytes, Path], FullText]


def reader_of(head: bytes, name: str) -> Reader | None:
    """Return what reads a whole text, by its first bytes and the name of a LaTeX source; None for anything else."""
    start = head.removeprefix(BOM).lstrip()
    if b"%PDF-" in start[:1024] and not start.startswith((b"{", b"[")):
        return read_pdf
    if is_xml_text(start):
        return read_xml
    is_latex = name.lower().endswith((".tex", ".ltx")) and MAIN.search(start)
    return read_latex if is_latex else None


def read_texts(
    files: Sequence[Path], workers: int
) -> Iterator[tuple[Path, FullText | str]]:
    """Yield each file with its text, or why it cannot be read, in their order; `workers` processes read at once."""
    batches = batched(files, _BATCH)
    with ThreadPoolExecutor(max_workers=workers) as pool:
        texts = chain.from_iterable(pool.map(_known_or_read, batches))
        yield from zip(files, texts, strict=True)


def _known_or_read(files: Sequence[Path]) -> list[FullText | str]:
    """Return texts that the cache has; the others are read in another process, and kept."""
    entries = {file: _entry(file) for file in files}
    texts: dict[Path, FullText | str] = {}
    for file, entry in entries.items():
        with suppress(ValueError):  # there is none, or it is damaged
            texts[file] = _TEXT.validate_json(kept(entry))
    unread = [file for file in files if file not in texts]
    for file, text in zip(unread, _read_in_process(unread), strict=True):
        texts[file] = text
        if isinstance(text, FullText):
            keep(entries[file], orjson.dumps(text))
    return [texts[file] for file in files]


def _entry(file: Path) -> str:
    """Return the file of the cache for a text."""
    files = [file]
    if file.suffix.lower() in {".tex", ".ltx"}:
        files += sorted(part for end in _PARTS for part in file.parent.rglob(end))
    with reading(file):
        return f"texts/{sha256_of_files(files)}.{VERSION}.json"


def _read_in_process(files: Sequence[Path]) -> list[FullText | str]:
    """Read files in another process; if that fails, each in one of its own."""
    if not files:
        return []
    try:
        return isolated(partial(_read_files, files), f"{files[0]}", "it is left out")
    except BadInputError as error:
        if len(files) == 1:
            return [f"{error}"]
        return [text for file in files for text in _read_in_process([file])]


def _read_files(files: Sequence[Path]) -> list[FullText | str]:
    return [_read(file) for file in files]


def _read(file: Path) -> FullText | str:
    try:
        with reading(file), open_unpacked(file) as (stream, _):
            data = read_stream(stream, file)
        if reader := reader_of(data[:HEAD], file.name):
            return reader(data, file)
        return f"{file}: is no PDF, JATS, TEI or LaTeX source, or is damaged"
    except CiterecError as error:
        return f"{error}"
