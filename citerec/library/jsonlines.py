"""Reads whole texts from JSON lines: of unarXive, and of S2ORC as GROBID's converter and CORD-19 have it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from citerec.bibliography.entry import Entry
from citerec.bibliography.fields import Fields
from citerec.bibliography.json_entries import to_entry
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.corpus.readers.files import json_records, read_file
from citerec.display import one_line
from citerec.errors import BadRecordError
from citerec.library.texts import FullText, citing_sentences, mark
from citerec.types import Json

_CITE = re.compile(r"\{\{cite:([^{}]{1,200})\}\}")
_OTHER = re.compile(r"\{\{\w+:[^{}]{1,200}\}\}")
_PARSES = ("pdf_parse", "latex_parse")
_PEOPLE = re.compile(r",\s*(?:and\s+)?|\s+and\s+")


def is_full_text(record: Json) -> bool:
    """Whether a record of JSON, or its keys, is a whole text with its references."""
    return "paper_id" in record and not {"body_text", *_PARSES}.isdisjoint(record)


def is_item(record: Json) -> bool:
    """Whether a record of JSON, or its keys, is an item of Zotero's API."""
    return record.keys() >= {"key", "version", "library", "data"}


def read_lines(file: Path) -> Iterator[FullText | str]:
    """Yield the text of each record of a file, or why it cannot be read."""
    for line, row in read_file(file, json_records):
        try:
            yield row if isinstance(row, str) else _full_text(Fields(row, file, line))
        except (BadRecordError, ValueError) as error:
            yield f"{error}"


def _full_text(fields: Fields) -> FullText:
    inner = (fields.inner(name) for name in _PARSES if fields.get(name))
    parse = next(inner, fields)
    entries = parse.inner("bib_entries")
    places = {key: place for place, key in enumerate(entries.record)}
    return FullText(
        entry=_paper(fields, parse),
        references=tuple(_reference(entries.inner(key)) for key in places),
        sentences=tuple(citing_sentences(_paragraphs(parse, places))),
    )


def _paper(fields: Fields, parse: Fields) -> Entry:
    """Return the record of a text: of unarXive, that of arXiv's snapshot is within it."""
    stated = {
        "issued": fields.get("metadata.update_date"),
        "abstract": parse.get("abstract"),
        **fields.record,
        **fields.inner("metadata").record,
    }
    entry = to_entry(stated, Entry(), "", strict=False)
    abstract = stated["abstract"]
    parts = abstract if isinstance(abstract, list) else [abstract]
    texts = [f"{part.get('text')}" for part in parts if isinstance(part, dict)]
    authors = stated.get("authors")
    if isinstance(authors, str):
        entry = replace(entry, authors=tuple(_PEOPLE.split(one_line(authors))))
    dois = dois_of(f"{stated.get('doi')} {stated.get('identifiers')}")
    return replace(
        entry,
        abstract=" ".join(texts) or entry.abstract,
        dois=dois or arxiv_dois(f"arXiv:{fields.short('paper_id')}"),
    )


def _reference(fields: Fields) -> Entry:
    text = f"{fields.record} arXiv:{fields.inner('ids').short('arxiv_id')}"
    entry = to_entry(fields.record, Entry(), "", strict=False)
    return replace(entry, text=text, dois=(*dois_of(text), *arxiv_dois(text)))


def _paragraphs(parse: Fields, places: Mapping[str, int]) -> Iterator[str]:
    """Yield the paragraphs of a text, with its marks by their places."""

    def token(key: str) -> str:
        return mark([places[key]] if key in places else [])

    for paragraph in parse.objects("body_text"):
        text = paragraph.text("text")
        spans = [] if _CITE.search(text) else paragraph.objects("cite_spans")
        # from the last, so that the places of the others stay
        for span in reversed(spans):
            start, end = (int(span.short(key) or 0) for key in ("start", "end"))
            text = text[:start] + token(span.short("ref_id")) + text[end:]
        text = _CITE.sub(lambda match: token(match[1]), text)
        yield _OTHER.sub(" ", text)
