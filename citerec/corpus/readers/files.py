"""Readers of files that are not recognised by the keys of JSON lines: bibliographies, exports, dumps, databases.

A new format is a module with the names of `FileFormat`, and a line in `FILE_FORMATS`.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from citerec.corpus.readers import (
    aminer,
    bibtex,
    crossref,
    csl,
    openalex,
    pubmed,
    ris,
    s2ag,
    scopus,
    wos,
    zotero,
)
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.streams import Located, Rows, head_of, located, read_file
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source


class FileFormat(Protocol):
    """What a module of `FILE_FORMATS` has.

    It may have two more names. `NOTE` is a line for the user, such as what the format lacks.
    `papers(source, read, log)` takes the place of `records` if a format needs several passes or files: it yields a
    `Located` for each record of all `source.files`, calls `read` with the number of further bytes read, and `log` with
    lines for the user.
    `streams.read_file` and `streams.located` do most of it.
    A format that needs room on disk has `papers_on_disk(source, read, log, scratch)` instead; `scratch` is the folder
    for its temporary files, or None.
    """

    def sniff(self, head: bytes, name: str) -> bool:
        """Whether a file is of this format, by its first 64 KiB, unpacked; `name` is without .gz and the like."""
        ...

    def records(self, stream: BinaryIO) -> Rows:
        """Yield the records of one unpacked file, each with its line (or number), from 1; broken ones as `Broken`.

        Raises:
            StreamFaultError: If the rest of the stream cannot be read.
        """
        ...

    def read(self, fields: Fields) -> Paper:
        """Make a paper of one record.

        Raises:
            BadRecordError: If the record cannot be read; the methods of `fields` raise it with file and line.
        """
        ...


# The first match wins.
FILE_FORMATS: Mapping[str, Any] = {
    "bibtex": bibtex,
    "scopus": scopus,  # before RIS, in which it exports, too
    "ris": ris,
    "openalex": openalex,
    "s2ag": s2ag,
    "crossref": crossref,  # before CSL-JSON, whose keys it has
    "csl": csl,
    "wos": wos,
    "zotero": zotero,
    "pubmed": pubmed,
    "aminer": aminer,
}


def sniffed(file: Path, name: str, more: Mapping[str, Any] | None = None) -> str | None:
    """Return the name of the format of a file by its first bytes; None if it is of no such format.

    Args:
        file: The file.
        name: Its name without the suffix of its compression.
        more: Further readers that have `sniff`, tried after those of `FILE_FORMATS`.

    Raises:
        BadInputError: If the file cannot be opened.
    """
    head = head_of(file)
    readers = {**FILE_FORMATS, **(more or {})}
    return next((key for key, reader in readers.items() if reader.sniff(head, name)), None)


def file_papers(
    source: "Source",
    reader: Any,
    read: Callable[[int], None],
    log: Log,
    scratch: Path | None = None,
) -> Iterator[Located]:
    """Yield every record of a corpus in one of `FILE_FORMATS`, as a paper or as its fault.

    Raises:
        BadInputError: If a file cannot be read to its end.
    """
    if hasattr(reader, "papers_on_disk"):
        yield from reader.papers_on_disk(source, read, log, scratch)
        return
    if hasattr(reader, "papers"):
        yield from reader.papers(source, read, log)
        return
    for file in source.files:
        for line, row in read_file(file, reader.records, read):
            yield located(file, line, row, reader.read)
