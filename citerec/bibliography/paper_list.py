"""Reads a list of papers, excluded or cited ones: ids, or a bibliography, which is matched by titles, too."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, cast

from citerec.bibliography import bibtex, ris
from citerec.bibliography.json_records import IDS, Item, read_items, stated_year_and_authors
from citerec.bibliography.keys import doi_of, id_key, title_key, to_text
from citerec.bibliography.preprint import is_preprint
from citerec.bibliography.record import Record
from citerec.bibliography.source import Kind, decode, kind_of, read_bytes, refuse_long
from citerec.errors import BadInputError
from citerec.text import one_line

_READS = "citerec reads ids, one a line, or a bibliography as BibTeX, RIS, CSL-JSON or JSONL"
_EXPORT = "export the references from your reference manager"
_LATEX_SOURCE = re.compile(
    r"^[ \t]*\\(?:documentclass|begin\s*\{|bibitem|section|title\s*\{)|\\[A-Za-z]*cite[A-Za-z]*\s*[\[{]",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a list: the data that identify its paper."""

    ids: tuple[str, ...] = ()  # as in the file
    title: str = ""  # as in the file, as plain text
    year: int | None = None
    authors: tuple[str, ...] = ()
    place: str = ""  # for messages
    key: str = ""  # its citation key in the file
    dois: tuple[str, ...] = ()  # bare; they are in `ids`, too
    is_preprint: bool = False


@dataclass(frozen=True, slots=True)
class PaperList:
    """The entries of a list of papers."""

    entries: tuple[Entry, ...]  # those with an id or a title
    unread: tuple[str, ...] = ()  # descriptions of entries that have neither or cannot be read

    @property
    def ids(self) -> frozenset[str]:
        """All ids, in the form of `id_key`."""
        return frozenset(id_key(i) for entry in self.entries for i in entry.ids)

    @property
    def titles(self) -> tuple[str, ...]:
        """All distinct titles, as in the file; compare them by `title_key`."""
        titles = (entry.title for entry in self.entries if title_key(entry.title))
        return tuple(dict.fromkeys(titles))


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
    return parse_paper_list(decode(data, name, reads=_READS, for_documents=_EXPORT), name)


def parse_paper_list(text: str, name: str) -> PaperList:
    r"""Return the list of papers that a text is, as `read_paper_list` does for a file.

    Args:
        text: The text, with lines ended by `\n`.
        name: The name of its source in messages.

    Raises:
        BadInputError: If it is broken JSON, or LaTeX.
    """
    entries, unread = _read(text, name)
    named = [bool(entry.ids or title_key(entry.title)) for entry in entries]
    return PaperList(
        entries=tuple(compress(entries, named)),
        unread=(
            *unread,
            *(
                f"{entry.place} has neither a title nor an id"
                for entry, has_name in zip(entries, named, strict=True)
                if not has_name
            ),
        ),
    )


def paper_list_of(texts: Iterable[str]) -> PaperList:
    """Return ids, DOIs or titles as `read_paper_list` reads a file with one a line; blank ones are left out."""
    return PaperList(entries=tuple(_from_text(text) for t in texts if (text := t.strip())))


def entries_by_key(data: bytes, name: str, unread: list[str] | None = None) -> dict[str, Entry]:
    """Read a bibliography whose entries a draft cites by key: BibTeX, or CSL-JSON with ids.

    Args:
        data: The bibliography.
        name: Its name in messages.
        unread: Receives descriptions of the entries that cannot be read.

    Returns:
        The entries that have a title or an id, by key; the first one of a repeated key counts.

    Raises:
        BadInputError: If it is empty, not text, or in another format.
    """
    text = decode(data, name, reads=_READS, for_documents=_EXPORT)
    kind = kind_of(text)
    refuse_long(text, kind, name)
    pairs: list[tuple[str, Entry]] = []
    if kind is Kind.BIBTEX:
        records, broken = bibtex.read_records(text)
        pairs = [(record.key, _from_bibtex(record)) for record in records]
        if unread is not None:
            unread += _faults(broken)
    elif kind is Kind.JSON:
        items = [item for item in read_items(text, name) if isinstance(item.value, dict)]
        pairs = [(str(item.value.get("id", "")), _from_json(item)) for item in items]
    else:
        raise BadInputError(name, "this is not a bibliography; expected BibTeX or CSL-JSON")
    entries: dict[str, Entry] = {}
    for key, entry in pairs:
        if entry.ids or title_key(entry.title):
            entries.setdefault(key, entry)
    return entries


def _read(text: str, name: str) -> tuple[list[Entry], list[str]]:
    """Return the entries of a list in any format, and descriptions of the parts that could not be read."""
    kind = kind_of(text)
    refuse_long(text, kind, name)
    match kind:
        case Kind.JSON:
            return [_from_json(item) for item in read_items(text, name)], []
        case Kind.RIS:
            return [_from_ris(record) for record in ris.read_records(text)], []
        case Kind.BIBTEX:
            records, broken = bibtex.read_records(text)
            return [_from_bibtex(record) for record in records], _faults(broken)
        case Kind.TEXT:
            if _LATEX_SOURCE.search(text):
                message = f"this is LaTeX; pass the .bib file that it cites from; {_READS}"
                raise BadInputError(name, message)
            return _from_lines(text), []


def _faults(broken: Iterable[bibtex.Broken]) -> list[str]:
    return [f"line {one.line}: {one.fault}" for one in broken]


def _from_lines(text: str) -> list[Entry]:
    lines = [line.strip() for line in text.split("\n")]
    kept = [line for line in lines if line and not line.startswith("#")]
    return [_from_text(line) for line in kept]


def _from_text(text: str) -> Entry:
    return Entry(ids=(text,), title=text if " " in text else "", place=text)


def _from_json(item: Item) -> Entry:
    place = f"line {item.line}" if item.line else f"item {item.number} of the list"
    if isinstance(item.value, str):
        return Entry(ids=_ids(item.value), place=place)
    fields = cast("dict[str, Any]", item.value) if isinstance(item.value, dict) else {}
    ids = [fields.get(key) for key in (*IDS, "doi", "DOI")]
    title = fields.get("title")
    year, authors = stated_year_and_authors(item)
    return Entry(
        ids=_ids(*ids),
        title=one_line(title if isinstance(title, str) else ""),
        year=year,
        authors=authors,
        place=place,
        key=str(fields.get("id") or ""),
        dois=_dois(*(str(fields.get(name) or "") for name in ("doi", "DOI", "url", "URL"))),
        is_preprint=_is_preprint_item(fields),
    )


def _from_ris(record: Record) -> Entry:
    ids = _ids(
        *(ris.first_text(record.fields, (key,)) for key in ("id", "accession_number", "doi"))
    )
    links = _dois(ris.first_text(record.fields, ("urls",)))
    return Entry(
        ids=ids + links,
        title=one_line(ris.record_title(record)),
        year=ris.record_year(record),
        authors=ris.record_authors(record),
        place=f"line {record.line}: {record.label}",
        key=ris.first_text(record.fields, ("id",)).strip(),
        dois=ris.record_dois(record),
        is_preprint=ris.is_preprint_record(record),
    )


def _from_bibtex(record: Record) -> Entry:
    fields = record.fields
    dois = bibtex.record_dois(record)
    title = to_text(fields.get("title", ""))
    corpus_id = _ids(to_text(fields.get("citerec-id", "")))
    # a key alone does not identify a paper
    key = _ids(record.key) if title or dois or corpus_id else ()
    return Entry(
        ids=corpus_id + dois + key,
        title=title,
        year=bibtex.record_year(record),
        authors=bibtex.record_authors(record),
        place=f"line {record.line}: {record.label}",
        key=record.key,
        dois=dois,
        is_preprint=bibtex.is_preprint_record(record),
    )


def _is_preprint_item(fields: Mapping[str, Any]) -> bool:
    """Whether an object of CSL-JSON is a preprint; other JSON does not state what it is."""

    def texts(*names: str) -> list[str]:
        return [value for name in names if isinstance(value := fields.get(name), str)]

    kind = next(iter(texts("type")), "").lower()
    venue = next(iter(texts("container-title", "venue", "journal")), "")
    remarks = texts("publisher", "genre", "note", "archive", "number")
    return bool(kind or venue) and is_preprint(kind, venue, remarks, texts("DOI", "URL"))


def _ids(*values: object) -> tuple[str, ...]:
    """Return those of `values` that can be ids, as text."""
    usable = (v for v in values if isinstance(v, (str, int)) and not isinstance(v, bool))
    return tuple(text for v in usable if (text := str(v).strip()))


def _dois(*values: str) -> tuple[str, ...]:
    return tuple(filter(None, map(doi_of, values)))
