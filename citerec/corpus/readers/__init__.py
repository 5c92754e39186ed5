"""Corpus readers, one module per format; a format is recognised by its content.

A new format of JSON lines is a module with `matches(keys)` and `read(fields) -> Paper`, and a line in `FORMATS`; a new
format of other files is a module as `files.FileFormat` describes it, and a line in `FILE_FORMATS`. Other packages add
readers by entry points (`registered.py`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import orjson

from citerec.corpus.readers import arxiv, beir, canonical, citeomatic, openresearch, registered
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.files import FILE_FORMATS, file_papers
from citerec.corpus.readers.source import Source, file_format
from citerec.corpus.readers.streams import Located
from citerec.errors import BadInputError, BadRecordError, ConfigError
from citerec.inputs import MAX_LINE, read_lines
from citerec.types import Log, Paper, no_log

__all__ = [
    "FILE_FORMATS",
    "FORMATS",
    "Located",
    "detect_format",
    "format_names",
    "parse_record",
    "read_papers",
]

# The first match wins: canonical is last, since other formats have its keys, too; registered readers come before it.
FORMATS: Mapping[str, ModuleType] = {
    "arxiv": arxiv,
    "openresearch": openresearch,
    "citeomatic": citeomatic,
    "beir": beir,
    "canonical": canonical,
}
ARRAY = "a JSON array; expected one paper a line (convert it: jq -c '.[]')"
_CONVERT = "export it as JSON with an id and a title for each paper, one paper a line"
_NOT_LINES = "leave --format out, or name another format"
_OTHER_FORMATS = (  # how the first line of other formats begins, the format's name and what to do
    (re.compile(rb"\s*@[A-Za-z]+\s*[{(]"), f"BibTeX: {_NOT_LINES}"),
    (re.compile(rb"TY {1,2}-"), f"RIS: {_NOT_LINES}"),
    (re.compile(rb"\s*(?:\\|%)"), f"LaTeX: {_CONVERT}"),
    (re.compile(rb"\s*<"), f"XML or HTML: {_CONVERT}"),
    (re.compile(rb"[^\s{\[\",;\t]+(?:[,;\t][^{\[]*)+$"), f"a table (CSV): {_CONVERT}"),
)


def format_names() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered readers."""
    own = (*FORMATS, *FILE_FORMATS)
    return (*own, *registered.names(own))


def detect_format(source: Source, *, skip_bad: bool = False) -> str:
    """Return the name of the format of a corpus, by its first file: its beginning, or its first record.

    A file with the suffix of a registered reader is in that reader's format.

    Args:
        source: The corpus.
        skip_bad: Whether to skip records that are of no known format.

    Raises:
        BadInputError: If the corpus holds no record, or one of no known format.
    """
    first: BadInputError | None = None
    for file in source.files:
        if name := file_format(file):
            return name
        for number, line in read_lines(file):
            try:
                return _format_of(file, number, line)
            except BadInputError as fault:
                if not skip_bad:
                    raise
                first = first or fault
    raise first or BadInputError(
        source.path, "the corpus is empty; expected one paper a line, as JSON"
    )


def _format_of(file: Path, number: int, line: bytes) -> str:
    record = parse_record(file, number, line)
    if name := next((name for name, reader in _matchers() if reader.matches(record)), None):
        return name
    keys = ", ".join(list(record)[:6]) or "none"
    raise BadInputError(
        file,
        f"no format that citerec reads has these fields: {keys}; expected 'id' and "
        f"'title', or name the format: --format {'|'.join(format_names())}",
        line=number,
    )


def _matchers() -> Iterator[tuple[str, Any]]:
    """Yield the readers of JSON lines with their names, in the order in which they are tried."""
    *special, canonical_last = FORMATS.items()
    yield from special
    added = ((name, registered.load(name)) for name in registered.names((*FORMATS, *FILE_FORMATS)))
    yield from ((name, reader) for name, reader in added if hasattr(reader, "matches"))
    yield canonical_last


def read_papers(
    source: Source,
    format_name: str,
    read: Callable[[int], None] = lambda _: None,
    log: Log = no_log,
    scratch: Path | None = None,
) -> Iterator[Located]:
    """Yield every record of a corpus, in order, as a paper or as the fault of the record.

    Args:
        source: The corpus.
        format_name: One of `format_names()`.
        read: Receives from time to time how many more bytes have been read.
        log: Receives what the format lacks, and how many references were linked.
        scratch: The folder for temporary files of large dumps; the system's by default.

    Raises:
        BadInputError: If a file cannot be read to its end: truncated, damaged, or not text.
        ConfigError: If there is no such format.
    """
    if format_name not in format_names():
        raise ConfigError(f"no format {format_name!r}; there are: {', '.join(format_names())}")
    own = FORMATS.get(format_name) or FILE_FORMATS.get(format_name)
    reader: Any = own or registered.load(format_name)
    if format_name in FILE_FORMATS:
        records = file_papers(source, reader, read, log, scratch)
    else:
        to_paper = own.read if own else registered.paper_reader(format_name, reader)
        records = _line_papers(source, format_name, reader, to_paper, read)
    papers = 0
    for located in records:
        papers += isinstance(located.paper, Paper)
        yield located
    if papers and (note := getattr(reader, "NOTE", "")):
        log(note)


def _line_papers(
    source: Source,
    format_name: str,
    reader: Any,
    to_paper: Callable[[Fields], Paper],
    read: Callable[[int], None],
) -> Iterator[Located]:
    for file in source.files:
        for number, row in _rows(file, format_name, reader, read):
            try:
                record = parse_record(file, number, row) if isinstance(row, bytes) else row
                paper = to_paper(Fields(record, file, number))
            except BadRecordError as error:
                yield Located(file, number, error)
            else:
                yield Located(file, number, paper)


def _rows(
    file: Path, format_name: str, reader: Any, read: Callable[[int], None]
) -> Iterator[tuple[int, bytes | Mapping[str, Any]]]:
    """Yield the lines of a file of JSON lines, or the records of a file that a registered reader parses."""
    if hasattr(reader, "records"):
        return registered.records(format_name, reader, file, read)
    return read_lines(file, read)


def parse_record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Parse one line as a JSON object.

    Raises:
        BadRecordError: If it is not one.
    """
    if len(line) > MAX_LINE:
        message = f"a line of over {MAX_LINE:,} bytes; expected one paper a line"
        raise BadRecordError(path, number, message, kind="broken_lines")
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at column {error.colno}"
        if number == 1:
            expected = f"a corpus is JSON lines ({', '.join(FORMATS)})"
            found = next(
                (other_format for pattern, other_format in _OTHER_FORMATS if pattern.match(line)),
                "",
            )
            message = f"this is {found}; {expected}" if found else f"{message}; {expected}"
        if number == 1 and line.lstrip().startswith(b"["):
            message = ARRAY
        raise BadRecordError(path, number, message, kind="broken_lines") from error
    if not isinstance(record, dict):
        found = type(record).__name__
        message = ARRAY if found == "list" else f"expected a JSON object, found {found}"
        raise BadRecordError(path, number, message, kind="broken_lines")
    return cast("dict[str, Any]", record)
