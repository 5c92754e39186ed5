"""Corpus readers that other packages add by entry points of the group `citerec.readers`."""

from collections.abc import Callable, Container, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from citerec import plugins
from citerec.corpus.readers.fields import Fields
from citerec.errors import (
    BadInputError,
    CiterecError,
    ConfigError,
    InvalidValueError,
)
from citerec.inputs import open_unpacked
from citerec.types import Paper


class Reader(Protocol):
    """Reads a format of JSON lines. A module with these two functions is one."""

    def matches(self, keys: Mapping[str, object]) -> bool:
        """Whether a record with these keys has this format; `--format auto` reads the first record of a corpus."""
        ...

    def read(self, fields: Fields) -> Paper:
        """Make a paper of one record.

        Raises:
            BadRecordError: If the record cannot be read; the methods of `fields` raise it with file and line.
        """
        ...


class FileReader(Protocol):
    """Reads files of any other kind, such as tables. A module with these names is one.

    In place of `suffixes` it may have `sniff(head, name) -> bool`, as `files.FileFormat` describes it.
    """

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The file names that `--format auto` recognises, such as `(".csv",)`; before .gz, .zst or .bz2."""
        ...

    def records(self, stream: BinaryIO) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield the records of one file, unpacked, each with its line number (or its number), from 1.

        The stream may be closed in it, as a `TextIOWrapper` around it does.
        """
        ...

    def read(self, fields: Fields) -> Paper:
        """Make a paper of one record, as a `Reader` does."""
        ...


def names(own: Container[str] = ()) -> tuple[str, ...]:
    """Return the names of the registered readers that are not in `own`, in alphabetical order."""
    return tuple(name for name in plugins.names(plugins.READERS) if name not in own)


def load(name: str) -> Any:
    """Return a registered reader.

    Raises:
        ConfigError: If it cannot be loaded, or is neither a `Reader` nor a `FileReader`.
    """
    reader = plugins.load(plugins.READERS, name)
    recognised_by = "sniff" if hasattr(reader, "sniff") else "suffixes"
    needed = (
        ("read", "records", recognised_by) if hasattr(reader, "records") else ("read", "matches")
    )
    if missing := [part for part in needed if not hasattr(reader, part)]:
        raise ConfigError(
            f"the reader {name!r} has no {missing[0]!r}; expected read and matches (for JSON lines), "
            "or read, records and suffixes or sniff (for other files)"
        )
    return reader


def by_suffix(suffix: str) -> str | None:
    """Return the name of the registered reader of files with a suffix such as ".csv"; None if there is none."""
    return next((name for name in names() if suffix in getattr(load(name), "suffixes", ())), None)


def sniffers(own: Container[str]) -> dict[str, Any]:
    """Return the registered readers that recognise files by their first bytes, by name, without those in `own`."""
    readers = {name: load(name) for name in names(own)}
    return {name: reader for name, reader in readers.items() if hasattr(reader, "sniff")}


def paper_reader(name: str, reader: Reader | FileReader) -> Callable[[Fields], Paper]:
    """Return the `read` of a registered reader; whatever goes wrong in it is an error with file and line."""

    def read(fields: Fields) -> Paper:
        try:
            with _failures_named(name, fields.path, fields.line):
                return reader.read(fields)
        except InvalidValueError as error:
            fields.fail(str(error))

    return read


def records(
    name: str, reader: FileReader, file: Path, read: Callable[[int], None]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the records of a file with their numbers, as a registered reader parses it.

    Args:
        name: The reader's name, for messages.
        reader: The reader.
        file: Plain, or packed by gzip, zstd or bz2.
        read: Called at the end of the file with its bytes.

    Raises:
        BadInputError: If the file cannot be read, or the reader fails.
    """
    with _failures_named(name, file):
        with open_unpacked(file) as (stream, _):
            yield from reader.records(stream)
        read(file.stat().st_size)


@contextmanager
def _failures_named(name: str, path: Path, line: int | None = None) -> Generator[None]:
    """Turn an unexpected exception of a reader into a `BadInputError` that names the reader."""
    try:
        yield
    except CiterecError:
        raise
    except Exception as error:
        what = f"the reader {name!r} failed: {type(error).__name__}: {error}"
        raise BadInputError(path, what, line=line) from error
