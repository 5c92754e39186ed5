"""Reads queries: papers or drafts without references, one or many, from a file or standard input.

A file is JSON, JSONL, CSL-JSON, BibTeX, RIS or plain text, or a document that holds one draft: LaTeX, Markdown, Word,
PDF or HTML. The format is recognised by its content, not its name. A document may also hold references, cited by key.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from citerec.bibliography.entry import Entry, PaperList
from citerec.errors import BadInputError, ConfigError
from citerec.types import Query

if TYPE_CHECKING:
    from citerec.drafts.document import DocumentFormat

_READS = (
    "citerec reads a query as JSON, JSONL, CSL-JSON, BibTeX, RIS, LaTeX, Markdown, Word (.docx), PDF, HTML "
    "or plain text"
)
_TITLE = re.compile(r"(?:#+\s+)?(title\s*:\s*)?", re.IGNORECASE)
_ABSTRACT = re.compile(r"(?:#+\s+)?abstract(?:\s*[:.\u2014\u2013]\s*|\s+-\s+|\s*$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """The queries of one file: at least one, in file order, with distinct ids."""

    queries: tuple[Query, ...]
    cited: PaperList | None = None  # the references that a document cites by key; None for none
    cited_from: str = ""  # the document and its bibliographies, for messages
    notices: tuple[str, ...] = ()  # for the user: what was recognised, what is missing

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
    """Read the queries of the file `path`, or of standard input if it is `-`; see `parse_queries`."""
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
        BadInputError: If `data` has no known format or is broken, a title is missing, or an id is repeated.
        ConfigError: If `title` or `abstract` is given for several drafts.
        MissingExtraError: If the library for a document is not installed.
    """
    from citerec.bibliography.paper_list import read_entries
    from citerec.bibliography.source import Kind, decode, kind_of
    from citerec.drafts.document import document_format

    stated = {k: v for k, v in (("title", title), ("abstract", abstract)) if v is not None}
    if document := document_format(data, str(name)):
        return _from_document(document, data, str(name), file, stated)
    text = decode(data, name, reads=_READS)
    kind = kind_of(text, name)
    if kind is Kind.TEXT:
        drafts = [_plain(text)]
    else:
        drafts, _ = read_entries(text, kind, name, strict=True)
    if not drafts:
        raise BadInputError(name, f"this {kind} holds no paper; {_READS}")
    batch = len(drafts) > 1
    if stated and batch:
        raise ConfigError(
            f"--title and --abstract are for one draft, but {name} holds {len(drafts):,}; leave them out"
        )
    queries, by_id = list[Query](), dict[str, Entry]()
    for number, draft in enumerate(drafts, start=1):
        default_id = f"q{draft.line or number}" if batch else "query"
        query = replace(draft, **stated).to_query(name, default_id)
        if first := by_id.get(query.id):
            where = f"line {first.line}" if first.line else first.label
            raise draft.error(
                name, f"the id {query.id!r} is already used by {where}; give it another"
            )
        by_id[query.id] = draft
        queries.append(query)
    return QueryFile(tuple(queries))


def _plain(text: str) -> Entry:
    """Return the draft of a plain text: the first line that is not blank is the title, the rest the abstract.

    Labels `Title:` and `Abstract:` are recognised; with both, the title may take several lines.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    label = _TITLE.match(lines[0])
    first = lines[0][label.end() :] if label else lines[0]
    title, rest = first, lines[1:]
    if _ABSTRACT.match(first):
        title, rest = "", lines
    elif label and label[1]:
        starts = [i for i, line in enumerate(lines) if i and _ABSTRACT.match(line)]
        end = starts[0] if starts else (1 if first else 2)
        title, rest = " ".join([first, *lines[1:end]]), lines[end:]
    if rest:
        rest[0] = _ABSTRACT.sub("", rest[0], count=1) if _ABSTRACT.match(rest[0]) else rest[0]
    return Entry(title=title, abstract=" ".join(rest), line=1)


def _from_document(
    kind: "DocumentFormat", data: bytes, name: str, file: Path | None, stated: dict[str, str]
) -> QueryFile:
    """Return the draft of a document with its references; only the reader of its format is imported."""
    from citerec.drafts.document import NO_TITLE, DocumentFormat, short

    if kind is DocumentFormat.PDF:
        from citerec.drafts import pdf

        document = pdf.read(data, name)
    else:
        from citerec.drafts import pandoc

        document = pandoc.read(data, kind, name, file)
    document = replace(document, **stated)
    if not document.title.strip():
        raise BadInputError(name, f"this draft ({kind}) has no title that was found; {NO_TITLE}")
    abstract, shortened = document.shortened()
    draft = Entry(
        title=document.title,
        abstract=abstract,
        year=document.year,
        authors=document.authors,
        dois=(document.doi,) if document.doi else (),
    )
    read = [f"title {short(document.title, 100)!r}"]
    if abstract:
        read.append(f"abstract {short(abstract, 60)!r} ({len(abstract):,} characters)")
    if count := len(document.authors):
        read.append("1 author" if count == 1 else f"{count} authors")
    if document.year:
        read.append(f"year {document.year} (papers of later years are left out)")
    lines = [f"{name} ({kind}): {', '.join(read)}"]
    lines += [f"{name}: {notice}" for notice in (shortened, *document.notices) if notice]
    others = ", ".join(source for source in document.sources if source != name)
    return QueryFile(
        (draft.to_query(name, "query"),),
        document.cited if document.cited.entries else None,
        f"{name} ({others})" if others else name if document.cited.entries else "",
        tuple(lines),
    )
