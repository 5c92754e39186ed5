"""Corpus readers, one module per format; each is told from the others by the keys of its records.

A new format is a module with `matches(keys)` and `read(fields) -> Paper`, and a line in `FORMATS`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import orjson

from citerec.corpus.readers import beir, canonical, citeomatic, openresearch
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.source import Source, read_lines
from citerec.errors import BadInputError, BadRecordError, ConfigError
from citerec.types import Paper

# The first that matches wins: canonical comes last, since its keys are common to the others.
FORMATS: Mapping[str, ModuleType] = {
    "openresearch": openresearch,
    "citeomatic": citeomatic,
    "beir": beir,
    "canonical": canonical,
}


@dataclass(frozen=True, slots=True)
class Located:
    """What stands at one place of a corpus: a paper, or why there is none."""

    path: Path
    line: int
    paper: Paper | BadRecordError


def detect_format(source: Source, *, skip_bad: bool = False) -> str:
    """Return the name of the format that the first record of a corpus is of.

    Args:
        source: The corpus.
        skip_bad: Whether to look past lines that are no JSON object.

    Raises:
        BadInputError: If the corpus holds no record, or one of no format that is known.
    """
    for file in source.files:
        for number, line in read_lines(file):
            try:
                record = parse_record(file, number, line)
            except BadRecordError:
                if skip_bad:
                    continue
                raise
            if name := next((n for n, f in FORMATS.items() if f.matches(record)), None):
                return name
            keys = ", ".join(list(record)[:6]) or "none"
            raise BadInputError(
                file,
                f"these fields are of no format that citerec reads: {keys}; expected 'id' and "
                f"'title', or name the format: --format {'|'.join(FORMATS)}",
                line=number,
            )
    raise BadInputError(source.path, "the corpus is empty; expected one paper a line, as JSON")


def read_papers(
    source: Source, format_name: str, read: Callable[[int], None] = lambda _: None
) -> Iterator[Located]:
    """Yield every record of a corpus, in order, as a paper or as the fault that it has.

    Args:
        source: The corpus.
        format_name: One of `FORMATS`.
        read: Is told now and then how many more bytes have been read.

    Raises:
        BadInputError: If a file cannot be read on: cut, damaged, not text.
        ConfigError: If there is no such format.
    """
    if format_name not in FORMATS:
        raise ConfigError(f"no format {format_name!r}; there are: {', '.join(FORMATS)}")
    to_paper = FORMATS[format_name].read
    for file in source.files:
        for number, line in read_lines(file, read):
            try:
                paper = to_paper(Fields(parse_record(file, number, line), file, number))
            except BadRecordError as error:
                yield Located(file, number, error)
            else:
                yield Located(file, number, paper)


def parse_record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    """Parse one line as a JSON object.

    Raises:
        BadRecordError: If it is none.
    """
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        if line.strip() in (b"[", b"[]") or (number == 1 and line.lstrip().startswith(b"[")):
            message = "a JSON array; expected one paper a line (convert it: jq -c '.[]')"
        else:
            message = f"not JSON: {error.msg} at column {error.colno}"
        raise BadRecordError(path, number, message, kind="broken_lines") from error
    if isinstance(record, list):
        message = "a JSON array; expected one paper a line (convert it: jq -c '.[]')"
        raise BadRecordError(path, number, message, kind="broken_lines")
    if not isinstance(record, dict):
        message = f"expected a JSON object, found {type(record).__name__}"
        raise BadRecordError(path, number, message, kind="broken_lines")
    return cast("dict[str, Any]", record)
