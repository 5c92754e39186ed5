"""Reads queries: papers or drafts without references, one or many, from a file or standard input.

A file is JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text, or a document that holds one draft: LaTeX, Markdown, Word,
PDF or HTML. The format is recognised by its content, not its name. A document may also hold references, cited by key.
"""

from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from citerec.errors import BadInputError, ConfigError
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.bibliography.paper_list import PaperList
    from citerec.bibliography.record import Draft, Record
    from citerec.bibliography.source import Kind
    from citerec.drafts.document import Document, DocumentFormat

__all__ = ["QueryFile", "parse_queries", "read_queries"]

_READS = (
    "citerec reads a query as JSON, JSONL, CSL-JSON, BibTeX, RIS, LaTeX, Markdown, Word (.docx), PDF, HTML "
    "or plain text"
)
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
    cited: "PaperList | None" = None  # the references that a document cites by key; None for none
    cited_from: str = ""  # the document and its bibliographies, for messages
    notices: tuple[str, ...] = field(
        default=()
    )  # for the user: what was recognised, what is missing

    @property
    def batch(self) -> bool:
        """Whether there is more than one query; a JSONL file of one line is not a batch."""
        return len(self.queries) > 1


def read_queries(
    path: str | Path,
    *,
    stdin: BinaryIO | None = None,
    title: str | None = None,
    abstract: str | None = None,
) -> QueryFile:
    """Read the queries of the file `path`, or of standard input if it is `-`.

    Args:
        path: A file in any format that `parse_queries` reads.
        stdin: The stream to read for `-`; None for `sys.stdin.buffer`.
        title: The title of the draft, in place of the one that the file states.
        abstract: The abstract, likewise.

    Raises:
        BadInputError: If the file cannot be read as queries; the message names the line if possible.
    """
    from citerec.bibliography.source import read_bytes

    hint = "to pass a text directly: citerec recommend --title T --abstract A"
    data, name = read_bytes(path, stdin, hint=hint)
    file = None if str(path) == "-" else Path(path)
    return parse_queries(data, name=name, file=file, title=title, abstract=abstract)


def parse_queries(
    data: bytes,
    *,
    name: Path | str = "query",
    file: Path | None = None,
    title: str | None = None,
    abstract: str | None = None,
) -> QueryFile:
    """Read the queries that `data` holds.

    A query without an id gets the id `query`; in a batch, `q` and its line, or its position in a list.

    Args:
        data: UTF-8 text: JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text; or LaTeX, Markdown, .docx, PDF or HTML.
        name: The name of the source in messages.
        file: The file of `data`, from whose folder a document includes others; None to follow nothing.
        title: The title of the only draft, in place of the one that `data` states.
        abstract: The abstract, likewise.

    Raises:
        BadInputError: If `data` has no known format or is broken, a title is missing, or an id is repeated; the message
            states what was found and where.
        ConfigError: If `title` or `abstract` is given for several drafts.
        MissingExtraError: If the library for a document is not installed.
    """
    from citerec.bibliography.record import to_query
    from citerec.bibliography.source import decode, kind_of, refuse_long
    from citerec.drafts.document import document_format

    stated = {k: v for k, v in (("title", title), ("abstract", abstract)) if v is not None}
    if document := document_format(data, str(name)):
        return _from_document(document, data, str(name), file, stated)
    text = decode(data, name, reads=_READS)
    kind = kind_of(text)
    refuse_long(text, kind, name)
    drafts = _drafts(kind, text, name)
    if not drafts:
        raise BadInputError(name, f"this {kind} holds no paper; {_READS}")
    batch = len(drafts) > 1
    if stated and batch:
        raise ConfigError(
            f"--title and --abstract are for one draft, but {name} holds {len(drafts):,}; leave them out"
        )
    drafts = [replace(draft, **stated) for draft in drafts]
    queries = [to_query(d, name, f"q{d.record.number}" if batch else "query") for d in drafts]
    _refuse_repeated_ids(queries, [d.record for d in drafts], name)
    return QueryFile(tuple(queries))


def _from_document(
    document_format: "DocumentFormat",
    data: bytes,
    name: str,
    file: Path | None,
    stated: dict[str, str],
) -> QueryFile:
    """Return the draft of a document with its references; only the reader of its format is imported."""
    from citerec.bibliography.record import to_query
    from citerec.drafts.document import NO_TITLE, DocumentFormat, recognised

    if document_format is DocumentFormat.PDF:
        from citerec.drafts.pdf import read

        document = read(data, name)
    else:
        from citerec.drafts import pandoc

        document = pandoc.read(data, document_format, name, file)
    document: Document = replace(document, **stated)
    if not document.title.strip():
        raise BadInputError(
            name, f"this draft ({document_format}) has no title that was found; {NO_TITLE}"
        )
    abstract, shortened = document.shortened()
    query = to_query(document.draft(), name, "query")
    lines = [recognised(document, abstract, name, document_format)]
    lines += [f"{name}: {notice}" for notice in (shortened, *document.notices) if notice]
    cited = document.cited
    if not cited.papers.entries:
        return QueryFile((query,), notices=tuple(lines))
    others = [source for source in cited.sources if source != name]
    source = f"{name} ({', '.join(others)})" if others else name
    return QueryFile((query,), cited.papers, source, tuple(lines))


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
