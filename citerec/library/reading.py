"""Reads whole texts in processes of their own; what was read is kept in the user's cache by the checksum of the file.

An interrupted run therefore goes on where it stopped, and another run reads only what is new. A file that crashes its
reader, or takes too long, costs itself.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from citerec.bibliography.fields import Fields
from citerec.corpus.readers.files import first_record, head_of, json_records, read_file
from citerec.errors import BadInputError, BadRecordError, CiterecError, OutputError
from citerec.files.atomic import replacing
from citerec.files.cache import (
    cache_folder,
    is_private,
    private_folder,
    sha256_of_files,
)
from citerec.files.isolated import isolated
from citerec.files.reading import BOM, open_unpacked, read_stream
from citerec.library.jsonlines import full_text, is_full_text
from citerec.library.latex import MAIN, read_latex
from citerec.library.pdf import read_pdf
from citerec.library.texts import FullText
from citerec.library.xml import read_xml, xml_kind

VERSION = 1  # of what the readers find: another one reads all files again
_BATCH = 8  # files for one process, which takes half a second to start
_TEXT = TypeAdapter(FullText)
_NO_TEXT = "is no PDF, JATS, TEI or LaTeX source, or is damaged"
_BESIDE = ("*.tex", "*.bbl", "*.bib")  # what belongs to a LaTeX source


class TextKind(StrEnum):
    """The formats of whole texts."""

    PDF = "PDF"
    XML = "JATS or TEI"
    LATEX = "LaTeX"
    JSON = "JSON lines of whole texts"


def text_kind(head: bytes, name: str) -> TextKind | None:
    """Return the format of a whole text by its first bytes; None for anything else."""
    start = head.removeprefix(BOM).lstrip()
    if b"%PDF-" in start[:1024] and not start.startswith((b"{", b"[")):
        return TextKind.PDF
    if xml_kind(start):
        return TextKind.XML
    if name.lower().endswith((".tex", ".ltx")):
        return TextKind.LATEX if MAIN.search(start) else None
    return TextKind.JSON if is_full_text(first_record(head)) else None


def read_texts(
    files: Sequence[Path], workers: int, done: Callable[[int], None]
) -> Iterator[tuple[Path, FullText | str]]:
    """Yield each file with its text, or why it cannot be read, in their order; of JSON lines each text.

    `workers` processes read at once; `done` receives how many files more were read.
    """
    kinds = {file: text_kind(head_of(file), file.name) for file in files}
    lines = {file for file in files if kinds[file] is TextKind.JSON}
    known: dict[Path, FullText | str] = {}
    for file in files:
        if file not in lines and (text := _cached(file, kinds[file])):
            known[file] = text
    done(len(known))
    unread = [file for file in files if file not in known and file not in lines]
    batches = [unread[n : n + _BATCH] for n in range(0, len(unread), _BATCH)]
    with ThreadPoolExecutor(max_workers=workers) as pool:
        reading = pool.map(partial(_read_and_keep, kinds=kinds), batches)
        for batch, texts in zip(batches, reading, strict=True):
            known |= dict(zip(batch, texts, strict=True))
            done(len(batch))
    for file in files:
        if file in lines:
            yield from ((file, text) for text in _of_lines(file))
            done(1)
        else:
            yield file, known[file]


def _of_lines(file: Path) -> Iterator[FullText | str]:
    for line, row in read_file(file, json_records):
        try:
            yield row if isinstance(row, str) else full_text(Fields(row, file, line))
        except (BadRecordError, ValueError) as error:
            yield str(error)


def _read_and_keep(
    files: list[Path], kinds: dict[Path, TextKind | None]
) -> list[FullText | str]:
    """Read files in another process, and keep what they hold in the cache; a batch that fails is read one by one."""
    jobs = [(file, kinds[file]) for file in files]
    try:
        texts = isolated(partial(_read_files, jobs), files[0].name, "it is left out")
    except BadInputError as error:
        if len(files) == 1:
            return [error.message]
        return [text for file in files for text in _read_and_keep([file], kinds)]
    for file, text in zip(files, texts, strict=True):
        if isinstance(text, FullText):
            _keep(file, kinds[file], text)
    return texts


def _read_files(
    jobs: Iterable[tuple[Path, TextKind | None]],
) -> list[FullText | str]:
    return [_read(file, kind) for file, kind in jobs]


def _read(file: Path, kind: TextKind | None) -> FullText | str:
    try:
        with open_unpacked(file) as (stream, _):
            data = read_stream(stream, file)
        if data.strip():
            readers = {
                TextKind.PDF: read_pdf,
                TextKind.LATEX: partial(read_latex, path=file),
                TextKind.XML: read_xml,
            }
            return readers[kind](data, file.name) if kind else _NO_TEXT
    except CiterecError as error:
        return error.message if isinstance(error, BadInputError) else str(error)
    except (OSError, EOFError) as error:
        return f"cannot be read: {error}"
    return "is empty"


# --- the cache


def _entry(file: Path, kind: TextKind | None) -> Path | None:
    """Return the file of the cache for a text; None without a cache."""
    cache = cache_folder()
    if not cache:
        return None
    files = [file]
    if kind is TextKind.LATEX:
        files += sorted(part for end in _BESIDE for part in file.parent.rglob(end))
    try:
        digest = sha256_of_files(files)
    except OSError:
        return None
    name = hashlib.sha256(f"{VERSION} {kind} {digest}".encode()).hexdigest()
    return cache / "texts" / name[:2] / f"{name}.json"


def _cached(file: Path, kind: TextKind | None) -> FullText | None:
    entry = _entry(file, kind)
    if entry is None or not is_private(entry):
        return None
    with suppress(OSError, ValueError):
        return _TEXT.validate_json(entry.read_bytes())
    return None


def _keep(file: Path, kind: TextKind | None, text: FullText) -> None:
    entry = _entry(file, kind)
    if entry and private_folder(entry.parent):
        with suppress(OSError, OutputError), replacing(entry) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_bytes(orjson.dumps(text))
