"""Papers as BibTeX; bibtexparser splits the file into blocks, we put each value together.

bibtexparser goes on after a broken entry, takes keys with spaces and passes over loose text, where
pybtex loses the rest of the file. It leaves `"a" # b` as it is and takes `{a} year = 2019` (a
comma is missing) for one value, hence the small grammar of values here.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.query.doi import doi_of
from citerec.query.latex import to_text
from citerec.query.record import Draft, Record, first_year

if TYPE_CHECKING:
    from bibtexparser.library import Library
    from bibtexparser.model import Block, Entry

_BRACE = re.compile(r"(?<!\\)[{}]")
_QUOTE = re.compile(r'(?<!\\)[{}"]')
_SPACE = re.compile(r"\s*")
_LONGEST = 1_000_000  # characters of a value
_MOST = 64_000_000  # characters of all values of a file; its strings may make it grow
_LATEX_SIGN = re.compile(r"\\([^A-Za-z])|\\[A-Za-z]+|[{}]")
_BARE = re.compile(r'[^\s#{}"=,]+')


@dataclass(frozen=True, slots=True)
class Broken:
    """A block that is no BibTeX."""

    line: int
    what: str


def read_records(text: str) -> tuple[list[Record], list[Broken]]:
    """Read every entry of a BibTeX file, its values undecoded and by field name in lower case.

    A key may stand twice; of a field that stands twice in one entry, the first counts.

    Returns:
        The entries that could be read, in the file's order, and the blocks that could not.
    """
    from bibtexparser.model import String

    macros: dict[str, str] = {}
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
    """Split `text` into blocks by bibtexparser, whose values are left as they stand."""
    from bibtexparser.entrypoint import parse_string

    # Its warnings repeat what the failed blocks say, and would go to the user's terminal.
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    return parse_string(text, parse_stack=[])


def _entry(block: "Block") -> "Entry | None":
    """Return the entry that `block` is or wraps; nothing for a comment, a string, a preamble.

    Raises:
        ValueError: If it is broken; says how.
    """
    from bibtexparser.model import Entry, ImplicitComment, ParsingFailedBlock, String

    # bibtexparser fails a key or field that stands twice, but keeps the entry; we can use that.
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
    return Record(number=line, line=line, key=key, label=label, fields=fields)


def _value(raw: str, macros: Mapping[str, str]) -> str:
    """Put a value together: its parts, joined by `#`; a name without a `@string` stands for itself.

    Raises:
        ValueError: If it is no value.
    """
    parts: list[str] = []
    length, at = 0, _past_space(raw, 0)
    while True:
        part, end = _part(raw, at)
        if raw[at] not in '{"':
            part = macros.get(part.lower(), part)
        parts.append(part)
        length += len(part)
        if length > _LONGEST:  # strings that double each other fill any memory
            raise ValueError(f"it is longer than {_LONGEST} characters")
        at = _past_space(raw, end)
        if at == len(raw):
            return "".join(parts)
        if raw[at] != "#":
            raise ValueError(f"a comma is missing before {raw[at : at + 20]!r}")
        at = _past_space(raw, at + 1)


def _past_space(text: str, at: int) -> int:
    """Return the first place from `at` on that is no white space."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _part(text: str, at: int) -> tuple[str, int]:
    """Return the part of a value that begins at `at`, without braces or quotes, and its end."""
    if text.startswith(("{", '"'), at):
        end = _closing(text, at)
        return text[at + 1 : end], end + 1
    found = _BARE.match(text, at)
    if not found:
        raise ValueError("it has no value")
    return found[0], found.end()


def _closing(text: str, at: int) -> int:
    """Return where the brace or quote at `at` is closed."""
    depth = 0
    pattern = _BRACE if text[at] == "{" else _QUOTE
    for mark in pattern.finditer(text, at + 1):
        if mark[0] == "{":
            depth += 1
        elif depth == 0:
            return mark.start()
        elif mark[0] == "}":
            depth -= 1
    raise ValueError("a brace or quote is not closed")


def read_drafts(text: str, name: Path | str) -> list[Draft]:
    """Read the papers of a BibTeX file.

    Raises:
        BadInputError: If an entry is broken; a query must be read whole.
    """
    records, broken = read_records(text)
    if broken:
        record = Record(number=1, line=broken[0].line, fields={})
        raise record.error(name, broken[0].what)
    return [_draft(record) for record in records]


def _draft(record: Record) -> Draft:
    return Draft(
        record=record,
        # Where older exports of citerec kept the id of the corpus.
        id=to_text(record.fields.get("citerec-id", "")) or record.key,
        title=_text(record, "title"),
        abstract=_text(record, "abstract"),
        year=record_year(record),
        authors=record_authors(record),
        venue=_text(record, "journal", "journaltitle", "booktitle"),
        doi=next(iter(record_dois(record)), ""),
    )


def record_dois(record: Record) -> tuple[str, ...]:
    """Return the DOIs that an entry states, in its field for them or as a link."""
    values = (_link(record.fields.get(name, "")) for name in ("doi", "url"))
    return tuple(filter(None, map(doi_of, values)))


def record_year(record: Record) -> int | None:
    """Return the year that an entry states, if any."""
    return first_year(_text(record, "year", "date"))


def record_authors(record: Record) -> tuple[str, ...]:
    """Return the authors that an entry states, each as `First von Last`."""
    return _people(record.fields.get("author", ""))


def _link(latex: str) -> str:
    """Return a DOI or link without braces, escapes and commands; two hyphens in it are no dash."""
    return _LATEX_SIGN.sub(lambda sign: sign[1] or to_text(sign[0]), latex)


def _text(record: Record, *names: str) -> str:
    """Return the first of the named fields that is not empty, as plain text."""
    return to_text(next((record.fields[n] for n in names if record.fields.get(n)), ""))


def _people(field: str) -> tuple[str, ...]:
    """Return the names of an author field, each as `First von Last`."""
    from bibtexparser.middlewares import names

    people = names.split_multiple_persons_names(" ".join(field.split()))
    parts = [names.parse_single_name_into_parts(p, strict=False) for p in people if p != "others"]
    return tuple(to_text(part.merge_first_name_first) for part in parts)
