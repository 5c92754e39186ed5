"""Corpus readers, one module per format; a format is recognised by its content.

A dialect of JSON lines is an entry of `jsonl.FORMATS`; any other format is a module as `files.FileFormat` describes it,
and a line in `formats.FILE_FORMATS`. Other packages add readers by entry points of the group `citerec.readers`: a
module with `matches(keys)` and `read(fields)` for JSON lines, or with `records(stream)`, `read(fields)` and `suffixes`
or `sniff(head, name)` for other files.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.files import Located, head_of, located, read_file
from citerec.corpus.readers.formats import (
    FILE_FORMATS,
    FORMATS,
    file_format,
    format_names,
    registered,
)
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.source import Source
from citerec.errors import BadInputError, CiterecError, ConfigError, InvalidValueError
from citerec.inputs import read_lines, refuse_binary
from citerec.types import Log, Paper, no_log

__all__ = ["FILE_FORMATS", "FORMATS", "Located", "detect_format", "format_names", "read_papers"]


def detect_format(source: Source, *, skip_bad: bool = False) -> str:
    """Return the name of the format of a corpus, by its first file that holds anything.

    Args:
        source: The corpus.
        skip_bad: Whether to skip lines at its beginning that are of no known format.

    Raises:
        BadInputError: If the corpus holds nothing, or nothing of a known format.
    """
    own, canonical = list(FORMATS.items())[:-1], list(FORMATS.items())[-1]
    dialects = [
        *own,
        *((k, r) for k, r in registered().items() if hasattr(r, "matches")),
        canonical,
    ]
    for file in source.files:
        head = head_of(file)
        if not head.removeprefix(b"\xef\xbb\xbf").strip():
            for _ in read_lines(file):  # raises if the file is damaged
                pass
            continue
        if name := file_format(file, head):
            return name
        refuse_binary(file, head, "a corpus: JSON lines, or an export that citerec reads")
        starts = [head, *head.split(b"\n")[1:]] if skip_bad else [head]
        for start in starts:
            keys = dict.fromkeys(first_keys(start))
            if name := next((name for name, reader in dialects if reader.matches(keys)), None):
                return name
        keys = ", ".join(sorted(first_keys(head))[:6])
        found = f"has these fields: {keys}" if keys else f"begins so: {head[:40]!r}"
        raise BadInputError(
            file,
            f"no format that citerec reads {found}; expected one paper a line as JSON with 'id' and 'title', "
            f"or name the format: --format {'|'.join(format_names())}",
            line=1,
        )
    raise BadInputError(source.path, "the corpus is empty; expected one paper a line, as JSON")


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
    reader: Any = FORMATS.get(format_name) or FILE_FORMATS.get(format_name)
    if reader is None:
        records = _plugin_papers(source, format_name, registered()[format_name], read)
    elif hasattr(reader, "papers"):
        records = reader.papers(source, read, log, scratch)
    else:
        records = (
            located(file, line, row, reader.read)
            for file in source.files
            for line, row in read_file(file, reader.records, read)
        )
    papers = 0
    for record in records:
        papers += isinstance(record.paper, Paper)
        yield record
    if papers and (note := getattr(reader, "NOTE", "")):
        log(note)


def _plugin_papers(
    source: Source, name: str, reader: Any, read: Callable[[int], None]
) -> Iterator[Located]:
    """Yield the records of a registered reader; whatever goes wrong in it is an error with its name."""

    def to_paper(fields: Fields) -> Paper:
        try:
            return reader.read(fields)
        except InvalidValueError as error:
            fields.fail(str(error))

    for file in source.files:
        line: int | None = None
        try:
            for line, row in read_file(file, getattr(reader, "records", json_records), read):
                yield located(file, line, row, to_paper)
        except CiterecError:
            raise
        except Exception as error:
            what = f"the reader {name!r} failed: {type(error).__name__}: {error}"
            raise BadInputError(file, what, line=line) from error


def parse_record(path: Path, number: int, line: bytes) -> Fields:
    """Parse one line as a JSON object.

    Raises:
        BadInputError: If it is not one.
    """
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInputError(path, f"not JSON: {error.msg}", line=number) from error
    if not isinstance(record, dict):
        raise BadInputError(path, "expected a JSON object", line=number)
    return Fields(cast("dict[str, Any]", record), path, number)
