"""Reads bibliographies of any format, from a file or standard input, and lists of papers, excluded or cited ones."""

import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from citerec.bibliography import bibtex, json_entries, ris
from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import dois_of
from citerec.errors import BadInputError
from citerec.inputs import other_format, read_stream, read_whole, reading

_STDIN = "standard input"
_BIBTEX = re.compile(r"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_RIS = re.compile(r"^TY {1,2}-(?: |$)", re.MULTILINE)
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[\]{\"]|$))")
_MAX_BIBLIOGRAPHY = 32 * 2**20  # characters; parsing takes a second per megabyte
_MAX_ENTRIES = 200_000  # estimated before parsing
_READS = "expected ids, one a line, or a bibliography as BibTeX, RIS, CSL-JSON or JSONL"
_LATEX_SOURCE = re.compile(
    r"^[ \t]*\\(?:documentclass|begin\s*\{|bibitem|section|title\s*\{)|\\[A-Za-z]*cite[A-Za-z]*\s*[\[{]",
    re.MULTILINE,
)
_MANAGER = "a reference manager, such as Zotero, turns it into BibTeX or RIS"
# a year or a DOI, as a formatted reference has
_REFERENCE = re.compile(r"\b(?:19|20)[0-9]{2}\b|\b10\.[0-9]{4}")
_NO_LIST = (  # what would be taken for ids, one a line
    (_LATEX_SOURCE, "LaTeX; pass the .bib file that it cites from"),
    (re.compile(r"\A\s*PMID- [0-9]"), f"PubMed's .nbib; {_MANAGER}"),
    (re.compile(r"\A\s*%[0A-Z] \S"), f"EndNote's .enw; {_MANAGER}"),
    (
        re.compile(r'\A(?=.*[,;\t])(?:.*[,;\t])?"?(?:article )?(?:title|doi)"?[,;\t\n]', re.I),
        "a table; pass its column of DOIs or titles alone, or export it as BibTeX or RIS",
    ),
)


class Kind(StrEnum):
    """The formats of a file of papers; CSL is JSON, too."""

    JSON = "JSON"
    BIBTEX = "BibTeX"
    RIS = "RIS"
    TEXT = "plain text"


def read_bytes(path: str | Path, *, hint: str = "") -> tuple[bytes, str]:
    """Return the bytes of a file, or of standard input for `-`, and the name of their source in messages.

    BadInputError if there is no such file (`hint` says what to do), or it cannot be read.
    """
    if str(path) == "-":
        return read_stream(sys.stdin.buffer, _STDIN), _STDIN
    with reading(Path(path)):
        if not Path(path).exists():
            raise BadInputError(path, f"no such file{hint and f'; {hint}'}")
    return read_whole(Path(path)), str(path)


def decode(data: bytes, name: Path | str, *, reads: str) -> str:
    r"""Return UTF-8 as text, without a byte order mark, with lines ended by `\n`.

    BadInputError if it is empty or not UTF-8; it says what it is, and `reads`, what can be read.
    """
    if other := other_format(data):
        raise BadInputError(name, f"this is {other}; {reads}")
    if b"\0" in data:
        raise BadInputError(name, f"this is binary data or UTF-16, not UTF-8 text; {reads}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInputError(
            name,
            f"byte 0x{data[error.start]:02x} is not UTF-8; if this is Latin-1, "
            "convert it: iconv -f WINDOWS-1252 -t UTF-8 FILE",
            line=data.count(b"\n", 0, error.start) + 1,
        ) from None
    if not text.strip():
        raise BadInputError(name, f"this is empty; {reads}")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def kind_of(text: str, name: Path | str) -> Kind:
    """Recognise the format of `text` by its content; BadInputError if it would take minutes to parse."""
    if _JSON.match(text):
        return Kind.JSON  # it is parsed fast, and may be a batch of many queries
    kind = Kind.RIS if _RIS.search(text) else Kind.TEXT
    kind = Kind.BIBTEX if _BIBTEX.search(text) else kind
    entries = {Kind.BIBTEX: text.count("@"), Kind.RIS: text.count("\nTY  -")}.get(kind, 0)
    if len(text) > _MAX_BIBLIOGRAPHY or entries > _MAX_ENTRIES:
        most = f"{_MAX_BIBLIOGRAPHY:,} characters and {_MAX_ENTRIES:,} entries"
        raise BadInputError(name, f"this {kind} is too long; expected at most {most}; split it")
    return kind


def read_paper_list(path: str | Path, part: str = "papers") -> PaperList:
    """Read a list of papers: ids, one per line, BibTeX, RIS, CSL-JSON, JSONL, or a part of a shelf, by its content.

    In plain text, blank lines and lines that start with `#` are skipped; a line of several words may be a title, or a
    formatted reference. BadInputError if the file is missing, empty, not text, or broken JSON.
    """
    data, name = read_bytes(path)
    return parse_paper_list(decode(data, name, reads=_READS), name, part)


def parse_paper_list(text: str, name: str, part: str = "papers") -> PaperList:
    r"""Return the list of papers that a text is, as `read_paper_list` does for a file.

    BadInputError if it is broken JSON, LaTeX, or of a format that is not read.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    kind = kind_of(text, name)
    if kind is Kind.TEXT:
        for pattern, what in _NO_LIST:
            if pattern.search(text):
                raise BadInputError(name, f"this is {what}; {_READS}")
        return paper_list_of(line for line in text.split("\n") if not line.strip().startswith("#"))
    entries, unread = read_entries(text, kind, name, strict=False, part=part)
    unread += [f"{e.place} has neither a title nor an id" for e in entries if not e.is_named]
    return PaperList(tuple(entry for entry in entries if entry.is_named), tuple(unread))


def paper_list_of(texts: Iterable[str]) -> PaperList:
    """Return ids, DOIs, titles or formatted references, one a line in a file; blank ones are left out."""
    entries: list[Entry] = []
    for line in filter(None, map(str.strip, texts)):
        title = line if " " in line else ""
        text = line if title and _REFERENCE.search(line) else ""
        dois = dois_of(title)
        entries.append(Entry(ids=(line, *dois), title=title, text=text, label=line, dois=dois))
    return PaperList(tuple(entries))


def read_entries(
    text: str, kind: Kind, name: Path | str, *, strict: bool, part: str = "papers"
) -> tuple[list[Entry], list[str]]:
    """Return the entries of BibTeX, RIS or JSON, and descriptions of the parts that could not be read.

    BadInputError if it is broken JSON; if strict, as for queries, for any fault.
    """
    if kind is Kind.JSON:
        return json_entries.read_entries(text, name, strict=strict, part=part), []
    if kind is Kind.RIS:
        return [ris.to_entry(record) for record in ris.read_records(text)], []
    records, broken = bibtex.read_records(text)
    if broken and strict:
        line, fault = broken[0]
        raise BadInputError(name, fault, line=line)
    unread = [f"line {line}: {fault}" for line, fault in broken]
    return [bibtex.to_entry(record) for record in records], unread


def entries_by_key(data: bytes, name: str, unread: list[str]) -> dict[str, Entry]:
    """Return the entries of BibTeX or CSL-JSON by key; the first one of a repeated key counts.

    `unread` receives descriptions of the entries that cannot be read. BadInputError if it is no bibliography.
    """
    text = decode(data, name, reads=_READS)
    if (kind := kind_of(text, name)) not in {Kind.BIBTEX, Kind.JSON}:
        raise BadInputError(name, "this is not a bibliography; expected BibTeX or CSL-JSON")
    entries, faults = read_entries(text, kind, name, strict=False)
    unread += faults
    by_key = {entry.key: entry for entry in reversed(entries) if entry.is_named}
    return dict(reversed(by_key.items()))
