"""Reads the entries of a bibliography in any format, and lists of papers, excluded or cited ones."""

import re
from collections.abc import Iterable
from pathlib import Path

from citerec.bibliography import bibtex, json_entries, ris
from citerec.bibliography.entry import Entry, PaperList
from citerec.bibliography.source import Kind, decode, kind_of, read_bytes
from citerec.errors import BadInputError

_READS = "expected ids, one a line, or a bibliography as BibTeX, RIS, CSL-JSON or JSONL"
_LATEX_SOURCE = re.compile(
    r"^[ \t]*\\(?:documentclass|begin\s*\{|bibitem|section|title\s*\{)|\\[A-Za-z]*cite[A-Za-z]*\s*[\[{]",
    re.MULTILINE,
)


def read_paper_list(path: str | Path) -> PaperList:
    """Read a list of papers; the format is recognised by its content.

    In plain text, blank lines and lines that start with `#` are skipped; a line of several words is also used as a
    title.

    Args:
        path: Ids, one per line, or BibTeX, RIS, CSL-JSON or JSONL, of which ids, DOIs and titles are used.

    Raises:
        BadInputError: If the file is missing, empty, not text, or broken JSON.
    """
    data, name = read_bytes(path)
    return parse_paper_list(decode(data, name, reads=_READS), name)


def parse_paper_list(text: str, name: str) -> PaperList:
    r"""Return the list of papers that a text is, as `read_paper_list` does for a file; its lines end with `\n`.

    Raises:
        BadInputError: If it is broken JSON, or LaTeX.
    """
    kind = kind_of(text, name)
    if kind is Kind.TEXT:
        if _LATEX_SOURCE.search(text):
            message = f"this is LaTeX; pass the .bib file that it cites from; {_READS}"
            raise BadInputError(name, message)
        return paper_list_of(line for line in text.split("\n") if not line.strip().startswith("#"))
    entries, unread = read_entries(text, kind, name, strict=False)
    unread += [f"{e.place} has neither a title nor an id" for e in entries if not e.is_named]
    return PaperList(tuple(entry for entry in entries if entry.is_named), tuple(unread))


def paper_list_of(texts: Iterable[str]) -> PaperList:
    """Return ids, DOIs or titles as `read_paper_list` reads a file with one a line; blank ones are left out."""
    lines = filter(None, map(str.strip, texts))
    return PaperList(
        tuple(Entry(ids=(line,), title=line if " " in line else "", label=line) for line in lines)
    )


def read_entries(
    text: str, kind: Kind, name: Path | str, *, strict: bool
) -> tuple[list[Entry], list[str]]:
    """Return the entries of BibTeX, RIS or JSON, and descriptions of the parts that could not be read.

    Raises:
        BadInputError: If it is broken JSON; if strict, as for queries, for any fault.
    """
    if kind is Kind.JSON:
        return json_entries.read_entries(text, name, strict=strict), []
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

    `unread` receives descriptions of the entries that cannot be read.

    Raises:
        BadInputError: If it is empty, not text, or in another format.
    """
    text = decode(data, name, reads=_READS)
    if (kind := kind_of(text, name)) not in {Kind.BIBTEX, Kind.JSON}:
        raise BadInputError(name, "this is not a bibliography; expected BibTeX or CSL-JSON")
    entries, faults = read_entries(text, kind, name, strict=False)
    unread += faults
    by_key: dict[str, Entry] = {}
    for entry in entries:
        if entry.is_named:
            by_key.setdefault(entry.key, entry)
    return by_key
