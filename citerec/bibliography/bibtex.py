"""Reads papers from BibTeX; bibtexparser splits the file into blocks, and this module reads the values.

bibtexparser continues after a broken entry, accepts keys with spaces and skips loose text, where pybtex loses the
rest of the file. It leaves `"a" # b` undecoded and reads `{a} year = 2019` (a comma is missing) as one value, hence the
small grammar of values here.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.bibliography.keys import doi_of, to_text
from citerec.bibliography.preprint import is_preprint
from citerec.bibliography.record import Draft, Record, first_year

if TYPE_CHECKING:
    from bibtexparser.library import Library
    from bibtexparser.model import Block, Entry

_BRACE = re.compile(r"(?<!\\)[{}]")
_QUOTE = re.compile(r'(?<!\\)[{}"]')
_SPACE = re.compile(r"\s*")
_LONGEST = 1_000_000  # characters of a value
_MOST = 64_000_000  # characters of all values of a file, which its strings may multiply
_LATEX_SIGN = re.compile(r"\\([^A-Za-z])|\\[A-Za-z]+|[{}]")
_BARE = re.compile(r'[^\s#{}"=,]+')


@dataclass(frozen=True, slots=True)
class Broken:
    """A block that is not valid BibTeX."""

    line: int
    fault: str


def read_records(
    text: str, macros: dict[str, str] | None = None
) -> tuple[list[Record], list[Broken]]:
    """Read every entry of a BibTeX file; values are not decoded, field names are in lower case.

    A key may be repeated; if a field is repeated in one entry, the first one counts.

    Args:
        text: The file, or a part of it.
        macros: The strings that earlier parts defined; it receives those of this part.

    Returns:
        The valid entries, in file order, and the broken blocks.
    """
    from bibtexparser.model import String

    macros = {} if macros is None else macros
    records: list[Record] = []
    broken: list[Broken] = []
    length = 0
    for block in _parse(text).blocks:
        try:
            if isinstance(block, String):
                macros[block.key.lower()] = _value(block.value, macros)
            elif entry := _entry(block):
                records.append(_record(entry, macros))
                length += sum(map(len, records[-1].fields.values()))
                if length > _MOST:
                    raise ValueError(f"the values are longer than {_MOST:,} characters in all")
        except ValueError as error:
            broken.append(Broken((block.start_line or 0) + 1, str(error)))
            if length > _MOST:
                break
    return records, broken


def _parse(text: str) -> "Library":
    """Split `text` into blocks by bibtexparser, with values unchanged."""
    from bibtexparser.entrypoint import parse_string

    # Its warnings repeat what the failed blocks state, and would be printed on the user's terminal.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    return parse_string(text, parse_stack=[])


def _entry(block: "Block") -> "Entry | None":
    """Return the entry that `block` is or wraps; None for a comment, a string or a preamble.

    Raises:
        ValueError: If it is broken; the message states how.
    """
    from bibtexparser.model import Entry, ImplicitComment, ParsingFailedBlock, String

    # bibtexparser reports a repeated key or field as failed, but keeps the entry, which is usable.
    inner = block.ignore_error_block if isinstance(block, ParsingFailedBlock) else block
    if isinstance(inner, Entry):
        return inner
    start = " ".join(str(block.raw).split())[:40]
    if isinstance(block, ParsingFailedBlock) and not isinstance(inner, String):
        reason = str(getattr(block.error, "abort_reason", block.error)).strip().rstrip(".")
        raise ValueError(f"{start!r} cannot be read: {reason}")
    if isinstance(block, ImplicitComment) and start.startswith((",", "}")):
        raise ValueError(f"one brace too many ends the entry before {start!r}")
    return None


def _record(entry: "Entry", macros: Mapping[str, str]) -> Record:
    key = str(entry.key).strip()
    line = (entry.start_line or 0) + 1
    label = f"entry {key!r}" if key else "this entry"
    fields: dict[str, str] = {}
    for field in entry.fields:
        try:
            fields.setdefault(field.key.lower(), _value(str(field.value), macros))
        except ValueError as error:
            raise ValueError(f"{label}: field {field.key!r}: {error}") from None
    kind = str(entry.entry_type).strip().lower()
    return Record(number=line, line=line, key=key, type=kind, label=label, fields=fields)


def _value(raw: str, macros: Mapping[str, str]) -> str:
    """Evaluate a value: its parts are joined by `#`; a name that no `@string` defines is used as text.

    Raises:
        ValueError: If it is not a valid value.
    """
    parts: list[str] = []
    length, at = 0, _past_space(raw, 0)
    while True:
        part, end = _part(raw, at)
        if raw[at] not in '{"':
            part = macros.get(part.lower(), part)
        parts.append(part)
        length += len(part)
        if length > _LONGEST:  # strings that double each other could fill any memory
            raise ValueError(f"it is longer than {_LONGEST} characters")
        at = _past_space(raw, end)
        if at == len(raw):
            return "".join(parts)
        if raw[at] != "#":
            raise ValueError(f"a comma is missing before {raw[at : at + 20]!r}")
        at = _past_space(raw, at + 1)


def _past_space(text: str, at: int) -> int:
    """Return the first position from `at` on that is not white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _part(text: str, at: int) -> tuple[str, int]:
    """Return the part of a value that begins at `at`, without braces or quotes, and its end."""
    if text.startswith(("{", '"'), at):
        end = _closing(text, at)
        return text[at + 1 : end], end + 1
    match = _BARE.match(text, at)
    if not match:
        raise ValueError("it has no value")
    return match[0], match.end()


def _closing(text: str, at: int) -> int:
    """Return the position of the brace or quote that closes the one at `at`."""
    depth = 0
    pattern = _BRACE if text[at] == "{" else _QUOTE
    for bracket in pattern.finditer(text, at + 1):
        if bracket[0] == "{":
            depth += 1
        elif depth == 0:
            return bracket.start()
        elif bracket[0] == "}":
            depth -= 1
    raise ValueError("a brace or quote is not closed")


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the papers of a BibTeX file.

    Raises:
        BadInputError: If an entry is broken: queries must be read completely.
    """
    records, broken = read_records(text)
    if broken:
        record = Record(number=1, line=broken[0].line, fields={})
        raise record.error(name, broken[0].fault)
    return [_draft(record) for record in records]


def _draft(record: Record) -> Draft:
    return Draft(
        record=record,
        # older exports of citerec stored the id of the corpus in this field
        id=to_text(record.fields.get("citerec-id", "")) or record.key,
        title=_text(record, "title"),
        abstract=_text(record, "abstract"),
        year=record_year(record),
        authors=record_authors(record),
        venue=_text(record, "journal", "journaltitle", "booktitle"),
        doi=next(iter(record_dois(record)), ""),
    )


def record_dois(record: Record) -> tuple[str, ...]:
    """Return the DOIs in the DOI field and the URL field of an entry."""
    values = (link(record.fields.get(name, "")) for name in ("doi", "url"))
    return tuple(filter(None, map(doi_of, values)))


def record_year(record: Record) -> int | None:
    """Return the year of an entry; None if it has none."""
    return first_year(_text(record, "year", "date"))


def record_authors(record: Record) -> tuple[str, ...]:
    """Return the authors of an entry, each as `First von Last`."""
    return _people(record.fields.get("author", ""))


def is_preprint_record(record: Record) -> bool:
    """Whether an entry is a preprint: `@misc` and `@unpublished` are, unless they name a journal or proceedings."""
    remarks = ("howpublished", "publisher", "note", "archiveprefix", "eprinttype", "institution")
    return is_preprint(
        "" if record.type == "article" else record.type,  # which means a preprint in CSL only
        _text(record, "journal", "journaltitle", "booktitle"),
        [_text(record, name) for name in remarks],
        [link(record.fields.get(name, "")) for name in ("doi", "url")],
    )


def link(latex: str) -> str:
    """Return a DOI or link without braces, escapes and commands; two hyphens in it do not become a dash."""
    return _LATEX_SIGN.sub(lambda escape: escape[1] or to_text(escape[0]), latex)


def _text(record: Record, *names: str) -> str:
    """Return the first of the named fields that is not empty, as plain text."""
    return to_text(next((record.fields[n] for n in names if record.fields.get(n)), ""))


def _people(field: str) -> tuple[str, ...]:
    """Return the names of an author field, each as `First von Last`."""
    from bibtexparser.middlewares import names

    people = names.split_multiple_persons_names(" ".join(field.split()))
    parts = [names.parse_single_name_into_parts(p, strict=False) for p in people if p != "others"]
    return tuple(to_text(part.merge_first_name_first) for part in parts)
