"""Reads queries: papers or drafts without references, one or many, from a file or standard input.

A file is JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text; the format is recognised by its content, not its name.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from citerec.errors import BadInputError
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.bibliography.record import Draft, Record
    from citerec.bibliography.source import Kind

__all__ = ["QueryFile", "parse_queries", "read_queries"]

_READS = "citerec reads a query as JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text"
_READERS = {
    "JSON": "citerec.bibliography.json_records",
    "BIBTEX": "citerec.bibliography.bibtex",
    "RIS": "citerec.bibliography.ris",
    "TEXT": "citerec.drafts.plain",
}  # modules, by kind


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of one file: at least one, in file order, with distinct ids."""

    queries: tuple[Query, ...]

    @property
    def batch(self) -> bool:
        """Whether there is more than one query; a JSONL file of one line is not a batch."""
        return len(self.queries) > 1


def read_queries(path: str | Path, *, stdin: BinaryIO | None = None) -> QueryFile:
    """Read the queries of the file `path`, or of standard input if it is `-`.

    Args:
        path: A file of UTF-8 text in any format that `parse_queries` reads.
        stdin: The stream to read for `-`; None for `sys.stdin.buffer`.

    Raises:
        BadInputError: If the file cannot be read as queries; the message names the line if possible.
    """
    from citerec.bibliography.source import read_bytes

    hint = "to pass a text directly: citerec recommend --title T --abstract A"
    data, name = read_bytes(path, stdin, hint=hint)
    return parse_queries(data, name=name)


def parse_queries(data: bytes, *, name: Path | str = "query") -> QueryFile:
    """Read the queries that `data` holds.

    A query without an id gets the id `query`; in a batch, `q` and its line, or its position in a list.

    Args:
        data: UTF-8 text: JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text.
        name: The name of the source in messages.

    Raises:
        BadInputError: If `data` has no known format or is broken, a title is missing, or an id is repeated; the message
            states what was found and where.
    """
    from citerec.bibliography.record import to_query
    from citerec.bibliography.source import decode, kind_of, refuse_long

    text = decode(data, name, reads=_READS)
    kind = kind_of(text)
    refuse_long(text, kind, name)
    drafts = _drafts(kind, text, name)
    if not drafts:
        raise BadInputError(name, f"this {kind} holds no paper; {_READS}")
    batch = len(drafts) > 1
    queries = [to_query(d, name, f"q{d.record.number}" if batch else "query") for d in drafts]
    _refuse_repeated_ids(queries, [d.record for d in drafts], name)
    return QueryFile(tuple(queries))


def _drafts(kind: "Kind", text: str, name: Path | str) -> "list[Draft]":
    """Return the drafts of a text; only the reader of its format is imported."""
    return import_module(_READERS[kind.name]).read_drafts(text, name)


def _refuse_repeated_ids(queries: list[Query], records: "list[Record]", name: Path | str) -> None:
    """Raise if two queries have the same id: their results could not be distinguished."""
    seen: dict[str, Record] = {}
    for query, record in zip(queries, records, strict=True):
        if first := seen.get(query.id):
            where = f"line {first.line}" if first.line else first.label
            raise record.error(
                name, f"the id {query.id!r} is already used by {where}; give it another"
            )
        seen[query.id] = record
