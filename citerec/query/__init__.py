"""What a user wants references for: one paper or many, from a file or standard input.

A file is JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text; which, its content says, not its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from citerec.errors import BadInputError
from citerec.query import bibtex, objects, plain, ris
from citerec.query.record import Draft, Record, to_query
from citerec.query.source import Kind, decode, kind_of, read_bytes, refuse_long
from citerec.types import Query

__all__ = ["QueryFile", "parse_queries", "read_queries"]

_READS = "citerec reads a query as JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text"
_READERS: Mapping[Kind, Callable[[str, Path | str], list[Draft]]] = {
    Kind.JSON: objects.read_drafts,
    Kind.BIBTEX: bibtex.read_drafts,
    Kind.RIS: ris.read_drafts,
    Kind.TEXT: plain.read_drafts,
}


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of one file: at least one, in the file's order, no id twice."""

    queries: tuple[Query, ...]

    @property
    def batch(self) -> bool:
        """Whether there is more than one query; a JSONL file of one line is no batch."""
        return len(self.queries) > 1


def read_queries(path: str | Path, *, stdin: BinaryIO | None = None) -> QueryFile:
    """Read the queries of the file `path`, or of standard input if that is `-`.

    Args:
        path: A file of UTF-8 text in any format that `parse_queries` reads.
        stdin: What to read for `-`; `sys.stdin.buffer` if not given.

    Raises:
        BadInputError: If the file cannot be read as queries; names the line where it can.
    """
    hint = "for a text itself: citerec recommend --title T --abstract A"
    data, name = read_bytes(path, stdin, hint=hint)
    return parse_queries(data, name=name)


def parse_queries(data: bytes, *, name: Path | str = "query") -> QueryFile:
    """Read the queries that `data` holds.

    A query without an id is called `query`; in a batch, `q` and its line, or its place in a list.

    Args:
        data: UTF-8 text: JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text.
        name: What messages call the source.

    Raises:
        BadInputError: If `data` is something else or broken, a title is missing, an id stands
            twice; says what was found and where.
    """
    text = decode(data, name, reads=_READS)
    kind = kind_of(text)
    refuse_long(text, kind, name)
    drafts = _READERS[kind](text, name)
    if not drafts:
        raise BadInputError(name, f"this {kind} holds no paper; {_READS}")
    batch = len(drafts) > 1
    queries = [to_query(d, name, f"q{d.record.number}" if batch else "query") for d in drafts]
    _refuse_twins(queries, [d.record for d in drafts], name)
    return QueryFile(tuple(queries))


def _refuse_twins(queries: list[Query], records: list[Record], name: Path | str) -> None:
    """Raise if two queries have one id: their results could not be told apart."""
    seen: dict[str, Record] = {}
    for query, record in zip(queries, records, strict=True):
        if first := seen.get(query.id):
            where = f"line {first.line}" if first.line else first.label
            raise record.error(name, f"the id {query.id!r} is taken by {where}; give it another")
        seen[query.id] = record
