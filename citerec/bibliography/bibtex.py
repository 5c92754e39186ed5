"""Reads papers from BibTeX; bibtexparser splits the file into blocks, and this module reads the values.

bibtexparser continues after a broken entry, accepts keys with spaces and skips loose text, where pybtex loses the
rest of the file. It leaves `"a" # b` undecoded and reads `{a} year = 2019` (a comma is missing) as one value, hence the
small grammar of values here.
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from citerec.bibliography.entry import Entry, Record, first_year, is_preprint
from citerec.bibliography.keys import arxiv_dois, dois_of, link, split_name, to_text
from citerec.bibliography.markup import plain_text

_NO_PAPERS = frozenset({"xdata", "set", "control"})  # types of BibLaTeX that are no works
KEY, TYPE = "(key)", "(type)"  # of an entry, among its fields; no names of fields
_LONGEST = 1_000_000  # characters of a value: strings that double each other could fill any memory
_MOST = 64_000_000  # characters of all values of a file, which its strings may multiply
_PART = re.compile(r'\s*(?:[{"]|([^\s#{}"=,]+))')  # of a value
_JOINT = re.compile(r"\s*(?:(#)|\Z)")
_WHOLE = re.compile(r"\{(?:[^{},]|\{[^{},]*\})*\}")  # a name in braces, without a comma
_ONLINE = re.compile(r"://|www\.|\b(?:online|web ?site|accessed)\b", re.IGNORECASE)
_BRACE = re.compile(r"(?<!\\)[{}]")
_QUOTE = re.compile(r'(?<!\\)[{}"]')
_ADDRESSES = ("doi", "url", "ee", "bdsk-url-1", "howpublished")
_REMARKS = ("publisher", "note", "archiveprefix", "eprinttype", "institution")


def read_records(
    text: str, macros: dict[str, str] | None = None
) -> tuple[list[Record], list[tuple[int, str]]]:
    """Read every entry of a BibTeX file, or of a part of it; values are not decoded, field names are in lower case.

    A key may be repeated; if a field is repeated in one entry, the first one counts. `macros` are the strings that
    earlier parts defined; it receives those of this part.

    Returns the valid entries, in file order; and the line of each broken block, and what is wrong with it.
    """
    from bibtexparser.entrypoint import parse_string
    from bibtexparser.model import String

    # its warnings repeat what the failed blocks state, and would be printed on the user's terminal
    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    macros = {} if macros is None else macros
    records: list[Record] = []
    broken: list[tuple[int, str]] = []
    length = 0
    for block in parse_string(text, parse_stack=[]).blocks:
        try:
            if isinstance(block, String):
                macros[block.key.lower()] = _value(block.value, macros)
            elif (record := _record(block, macros)) and record.fields[TYPE] not in _NO_PAPERS:
                records.append(record)
                length += sum(map(len, record.fields.values()))
                if length > _MOST:
                    raise ValueError(f"the values are longer than {_MOST:,} characters in all")
        except ValueError as error:
            broken.append(((block.start_line or 0) + 1, str(error)))
            if length > _MOST:
                break
    return records, broken


def _record(block: Any, macros: Mapping[str, str]) -> Record | None:
    """Return the entry that `block` is or wraps; None for a comment or a preamble; ValueError if it is broken."""
    from bibtexparser import model

    # bibtexparser reports a repeated key or field as failed, but keeps the entry, which is usable
    failed = isinstance(block, model.ParsingFailedBlock)
    inner = block.ignore_error_block if failed else block
    if not isinstance(inner, model.Entry):
        start = " ".join(str(block.raw).split())[:40]
        if failed and not isinstance(inner, model.String):
            reason = str(getattr(block.error, "abort_reason", block.error)).strip().rstrip(".")
            raise ValueError(f"{start!r} cannot be read: {reason}")
        if isinstance(block, model.ImplicitComment) and start.startswith((",", "}")):
            raise ValueError(f"one brace too many ends the entry before {start!r}")
        return None
    key = str(inner.key).strip()
    fields: dict[str, str] = {}
    for field in inner.fields:
        try:
            fields.setdefault(field.key.lower(), _value(str(field.value), macros))
        except ValueError as error:
            raise ValueError(f"entry {key!r}: field {field.key!r}: {error}") from None
    fields |= {KEY: key, TYPE: str(inner.entry_type).strip().lower()}
    return Record((inner.start_line or 0) + 1, fields)


def _value(raw: str, macros: Mapping[str, str]) -> str:
    """Evaluate a value: its parts are joined by `#`; a name that no `@string` defines is used as text."""
    parts: list[str] = []
    length = at = 0
    while match := _PART.match(raw, at):
        if name := match[1]:
            part, at = macros.get(name.lower(), name), match.end()
        else:
            end = _closing(raw, match.end() - 1)
            part, at = raw[match.end() : end], end + 1
        parts.append(part)
        length += len(part)
        if length > _LONGEST:
            raise ValueError(f"it is longer than {_LONGEST} characters")
        joint = _JOINT.match(raw, at)
        if not joint:
            raise ValueError(f"a comma is missing before {raw[at : at + 20].strip()!r}")
        if not joint[1]:
            return "".join(parts)
        at = joint.end()
    raise ValueError("it has no value")


def _closing(text: str, at: int) -> int:
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


def to_entry(record: Record) -> Entry:
    """Return a record as plain text; `@misc` and `@unpublished` without a venue are preprints."""

    def text(*names: str) -> str:
        return to_text(next((record.fields[n] for n in names if record.fields.get(n)), ""))

    addresses = [link(record.fields.get(name, "")) for name in _ADDRESSES]
    links = " ".join(addresses)
    dois = dois_of(links) or dois_of(record.fields.get("note", ""))
    title = plain_text(": ".join(filter(None, (text("title"), text("subtitle")))))
    how = "" if _ONLINE.search(addresses[-1]) else text("howpublished")  # else it is a venue
    venue = text("journal", "journaltitle", "booktitle") or how
    key, kind = record.fields[KEY], record.fields[TYPE]
    kind = "" if kind == "article" else kind  # which means a preprint in CSL only
    return Entry(
        # a key alone does not identify a paper
        ids=dois + ((key,) if key and (title or dois) else ()),
        title=title,
        abstract=text("abstract"),
        year=first_year(text("year", "date")),
        authors=_people(record.fields.get("author", "")),
        venue=venue,
        key=key,
        has_citation_key=True,
        dois=dois,
        preprints=arxiv_dois(f"arXiv:{text('eprint')} {venue} {links}"),
        is_preprint=is_preprint(kind, venue, map(text, _REMARKS), addresses),
        line=record.line,
        label=f"entry {key!r}" if key else "this entry",
    )


def _people(field: str) -> tuple[str, ...]:
    """Return the names of an author field, each as `First von Last`."""
    from bibtexparser.middlewares import names

    people = names.split_multiple_persons_names(" ".join(field.split()))
    parts = [names.parse_single_name_into_parts(p, strict=False) for p in people if p != "others"]
    found = [part.merge_first_name_first for part in parts]
    people = [(to_text(name), _WHOLE.fullmatch(name)) for name in found]
    return tuple(f"{n}," if whole and split_name(n).given else n for n, whole in people)
