"""Corpus readers, one module per format; a format is recognised by the keys of its records.

A new format is a module with `matches(keys)` and `read(fields) -> Paper`, and a line in `FORMATS`. Other packages add
readers by entry points (`registered.py`), of files that are not JSON lines, too.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import orjson

from citerec.corpus.readers import beir, canonical, citeomatic, openresearch, registered
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.source import Source, plain_name
from citerec.errors import BadInputError, BadRecordError, ConfigError
from citerec.inputs import MAX_LINE, read_lines
from citerec.types import Paper

# The first match wins: canonical is last, since other formats have its keys, too; registered readers come before it.
FORMATS: Mapping[str, ModuleType] = {
    "openresearch": openresearch,
    "citeomatic": citeomatic,
    "beir": beir,
    "canonical": canonical,
}
ARRAY = "a JSON array; expected one paper a line (convert it: jq -c '.[]')"
_CONVERT = "export it as JSON with an id and a title for each paper, one paper a line"
_OTHER_FORMATS = (  # how the first line of other formats begins, the format's name and what to do
    (
        re.compile(rb"\s*@[A-Za-z]+\s*[{(]"),
        f"BibTeX, which citerec reads as a query only: {_CONVERT}",
    ),
    (re.compile(rb"TY {1,2}-"), f"RIS, which citerec reads as a query only: {_CONVERT}"),
    (re.compile(rb"\s*(?:\\|%)"), f"LaTeX: {_CONVERT}"),
    (re.compile(rb"\s*<"), f"XML or HTML: {_CONVERT}"),
    (re.compile(rb"[^\s{\[\",;\t]+(?:[,;\t][^{\[]*)+$"), f"a table (CSV): {_CONVERT}"),
)
_TO_LINES = (
    """jq -c '(arrays[], objects) | {id, title, abstract, year: .issued."date-parts"[0][0], """
    """authors: [.author[]? | [.given, .family] | join(" ")], venue: ."container-title", doi: .DOI}' """
    "FILE > papers.jsonl"
)
_CSL = f"this is CSL-JSON, which citerec reads as a query or a reference list only; convert it: {_TO_LINES}"
_CSL_KEYS = frozenset({"issued", "container-title"})
_CSL_KEY = re.compile(rb'"(?:issued|container-title)"\s*:')
_PEEK = 200  # lines of indented JSON that are searched for a key of CSL


@dataclass(frozen=True, slots=True)
class Located:
    """A record of a corpus with its place: a paper, or the fault of the record."""

    path: Path
    line: int
    paper: Paper | BadRecordError


def format_names() -> tuple[str, ...]:
    """Return the names of all formats: citerec's own, and those of registered readers."""
    return (*FORMATS, *registered.names(FORMATS))


def detect_format(source: Source, *, skip_bad: bool = False) -> str:
    """Return the name of the format of a corpus's first record.

    A file with the suffix of a registered reader is in that reader's format.

    Args:
        source: The corpus.
        skip_bad: Whether to skip records that are of no known format.

    Raises:
        BadInputError: If the corpus holds no record, or one of no known format.
    """
    first: BadInputError | None = None
    for file in source.files:
        if name := registered.by_suffix(Path(plain_name(file)).suffix):
            return name
        lines = read_lines(file)
        for number, line in lines:
            try:
                return _format_of(file, number, line)
            except BadInputError as fault:
                if not skip_bad:
                    _refuse_csl(file, number, line, lines)
                    raise
                first = first or fault
    raise first or BadInputError(
        source.path, "the corpus is empty; expected one paper a line, as JSON"
    )


def _refuse_csl(
    file: Path, number: int, line: bytes, following: Iterator[tuple[int, bytes]]
) -> None:
    """Raise if an invalid line begins CSL-JSON: a list, or an object over several lines."""
    if line.lstrip().startswith((b"[", b"{")):
        more = (text for _, text in islice(following, _PEEK))
        if any(_CSL_KEY.search(text) for text in chain([line], more)):
            raise BadInputError(file, _CSL, line=number)


def _format_of(file: Path, number: int, line: bytes) -> str:
    record = parse_record(file, number, line)
    if record.keys() & _CSL_KEYS and not record.keys() & {"year", "authors"}:
        raise BadInputError(file, _CSL, line=number)
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
    added = ((name, registered.load(name)) for name in registered.names(FORMATS))
    yield from ((name, reader) for name, reader in added if hasattr(reader, "matches"))
    yield canonical_last


def read_papers(
    source: Source, format_name: str, read: Callable[[int], None] = lambda _: None
) -> Iterator[Located]:
    """Yield every record of a corpus, in order, as a paper or as the fault of the record.

    Args:
        source: The corpus.
        format_name: One of `format_names()`.
        read: Receives from time to time how many more bytes have been read.

    Raises:
        BadInputError: If a file cannot be read to its end: truncated, damaged, or not text.
        ConfigError: If there is no such format.
    """
    if format_name not in format_names():
        raise ConfigError(f"no format {format_name!r}; there are: {', '.join(format_names())}")
    own = FORMATS.get(format_name)
    reader: Any = own or registered.load(format_name)
    to_paper = own.read if own else registered.paper_reader(format_name, reader)
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
