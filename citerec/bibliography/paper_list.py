"""Reads the entries of bibliographies, as BibTeX, RIS and JSON, from a file or standard input."""

import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from citerec.bibliography import bibtex, hayagriva, json_entries, ris
from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.keys import dois_of
from citerec.display import plural
from citerec.errors import BadInputError
from citerec.files.reading import (
    decoded,
    other_format,
    read_stream,
    read_whole,
    reading,
)

_STDIN = "standard input"
_BIBTEX = re.compile(r"^[ \t]*@\s*[A-Za-z]+\s*[{(]", re.MULTILINE)
_RIS = re.compile(rf"^TY {{1,2}}-(?: |$)|{ris.TAGGED}", re.MULTILINE)
# that start a record
_RIS_STARTS = ("\nTY  -", "\nPMID-", "\n%0 ", "\nPT ")
_JSON = re.compile(rf"\s*(?:\{{|\[\s*(?:[\[\]{{\"]|$))|{hayagriva.BEGIN}")
_MAX_BIBLIOGRAPHY = 32 * 2**20  # characters; parsing takes a second per megabyte
_MAX_ENTRIES = 200_000  # estimated before parsing
READS = "expected ids, one a line, or a bibliography as BibTeX, RIS, .nbib, .enw, CSL as JSON or YAML, JSONL, Hayagriva"
# a year or a DOI, as a printed reference has
DATED = re.compile(r"\b(?:19|20)[0-9]{2}\b|\b10\.[0-9]{4}")


class Kind(StrEnum):
    """The formats of a file of papers; CSL is JSON, too, and YAML is read as such."""

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


def decode(
    data: bytes, name: Path | str, *, reads: str, notices: list[str] | None = None
) -> str:
    r"""Return UTF-8 as text, without a byte order mark, with lines ended by `\n`.

    If there are `notices`, single bytes that are not UTF-8 are read as Windows-1252, and they receive a line about it.
    BadInputError if it is empty or not UTF-8; it says what it is, and `reads`, what can be read.
    """
    if other := other_format(data):
        raise BadInputError(name, f"this is {other}; {reads}")
    text, foreign = decoded(data)
    if foreign:
        try:
            data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            if notices is None or (foreign > 20 and foreign > len(data) / 8):
                raise BadInputError(
                    name,
                    f"byte 0x{data[error.start]:02x} is not UTF-8; if this is Latin-1, GBK or another encoding, "
                    "save it as UTF-8 in the program that wrote it",
                    line=line,
                ) from None
            notices.append(
                f"{Path(name).name}: {plural(foreign, 'byte is', 'bytes are')} not UTF-8, "
                f"from line {line} on: read as Windows-1252"
            )
    if not text.strip():
        raise BadInputError(name, f"this is empty; {reads}")
    return text


def kind_of(text: str, name: Path | str) -> Kind:
    """Recognise the format of `text` by its content; BadInputError if it would take minutes to parse."""
    if _JSON.match(text):
        return Kind.JSON  # it is parsed fast, and may be a batch of many queries
    kind = Kind.RIS if _RIS.search(text) else Kind.TEXT
    kind = Kind.BIBTEX if _BIBTEX.search(text) else kind
    counts = {
        Kind.BIBTEX: text.count("@"),
        Kind.RIS: sum(map(text.count, _RIS_STARTS)),
    }
    entries = counts.get(kind, 0)
    if len(text) > _MAX_BIBLIOGRAPHY or entries > _MAX_ENTRIES:
        raise BadInputError(
            name,
            f"this {kind} is too long; expected at most {_MAX_BIBLIOGRAPHY:,} characters "
            f"and {_MAX_ENTRIES:,} entries; split it",
        )
    return kind


def paper_list_of(texts: Iterable[str]) -> PaperList:
    """Return ids, DOIs, titles or formatted references, one a line in a file; blank ones are left out."""
    entries: list[Entry] = []
    for line in filter(None, map(str.strip, texts)):
        title = line if " " in line else ""
        text = line if title and DATED.search(line) else ""
        dois = dois_of(title)
        entries.append(
            Entry(ids=(line, *dois), title=title, text=text, label=line, dois=dois)
        )
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
        return [ris.to_entry(*record) for record in ris.read_records(text)], []
    records, broken = bibtex.read_records(text)
    if broken and strict:
        line, fault = broken[0]
        raise BadInputError(name, fault, line=line)
    unread = [f"line {line}: {fault}" for line, fault in broken]
    return [bibtex.to_entry(*record) for record in records], unread
