"""Reads lists of papers, cited or excluded ones: ids, printed references, bibliographies, exports for an index."""

from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.json_entries import to_entry
from citerec.bibliography.paper_list import (
    READS,
    decode,
    kind_of,
    paper_list_of,
    read_bytes,
    read_entries,
)
from citerec.corpus.contents import (
    ContentKind,
    DocumentFormat,
    split_references,
    stated_lines,
)
from citerec.corpus.readers import Source, read_papers, recognise
from citerec.errors import BadInputError
from citerec.files.reading import other_format
from citerec.types import Paper

# formats of `read_entries`
_ENTRIES = {"bibtex", "ris", "csl", "canonical", "json"}


def read_paper_list(path: str | Path, part: str = "papers") -> PaperList:
    """Read a list of papers, by its content: ids or titles, one a line, printed references, or records in any format.

    `part` is that of a shelf. Blank lines of a text, and lines that start with `#`, are skipped. BadInputError if the
    file is missing, empty, a draft, of a format that is not read, or broken JSON.
    """
    data, name = read_bytes(path)
    return _read(data, name, part)


def parse_paper_list(text: str, name: str, part: str = "papers") -> PaperList:
    """Return the list of papers that a text is, as `read_paper_list` does for a file."""
    return _read(text.encode(errors="replace"), name, part)


def _read(data: bytes, name: str, part: str) -> PaperList:
    content = recognise(data, name)
    if content.kind is ContentKind.DRAFT and content.format != DocumentFormat.MARKDOWN:
        raise BadInputError(
            name,
            f"this is {other_format(data) or content}; pass the .bib file that it cites "
            "from, or the draft itself as --query FILE",
        )
    if content.kind is ContentKind.RECORDS and content.format not in _ENTRIES:
        return _from_reader(data, name, content.format)
    notices: list[str] = []
    text = decode(data, name, reads=READS, notices=notices)
    if content.kind is ContentKind.RECORDS:
        entries, unread = read_entries(
            text, kind_of(text, name), name, strict=False, part=part
        )
        unread += [
            f"{e.place} has neither a title nor an id"
            for e in entries
            if not e.is_named
        ]
        named = tuple(entry for entry in entries if entry.is_named)
        return PaperList(named, tuple(unread), tuple(notices))
    lines = stated_lines(text)
    printed = split_references(lines) if content.kind is ContentKind.PRINTED else []
    return replace(paper_list_of(printed or lines), notices=tuple(notices))


def _from_reader(data: bytes, name: str, format_name: str) -> PaperList:
    """Read the papers of an export by the reader of corpora of its format."""
    entries: list[Entry] = []
    unread: list[str] = []
    with TemporaryDirectory(prefix="citerec-") as folder:
        file = Path(folder, "list")
        file.write_bytes(data)
        try:
            for found in read_papers(Source(file, (file,)), format_name):
                if isinstance(found.paper, Paper):
                    entries.append(
                        to_entry(
                            asdict(found.paper),
                            Entry(line=found.line),
                            name,
                            strict=False,
                        )
                    )
                else:
                    unread.append(f"line {found.line}: {found.paper.message}")
        except BadInputError as error:
            raise BadInputError(name, error.message, line=error.line) from error
    return PaperList(tuple(entries), tuple(unread))
