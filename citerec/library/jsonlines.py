"""Reads whole texts from JSON lines: of unarXive, and of S2ORC as GROBID's converter and CORD-19 have it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from citerec.bibliography.entry import first_year
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.display import one_line
from citerec.library.texts import FullText, Marks, Reference, Sentence
from citerec.types import Json

_CITE = re.compile(r"\{\{cite:([^{}]{1,200})\}\}")
_OTHER = re.compile(r"\{\{\w+:[^{}]{1,200}\}\}")
_STATED = ("year", "title", "venue", "volume", "pages")
_PARSES = ("pdf_parse", "latex_parse", "grobid_parse")


def is_full_text(record: Json) -> bool:
    """Whether a record of JSON, or its keys, is a whole text with its references."""
    has_text = "body_text" in record or any(name in record for name in _PARSES)
    return "paper_id" in record and has_text


def full_text(record: Json) -> FullText:
    """Return the text of a record; what has another type than its format says counts as missing."""
    parse = next(
        (v for name in _PARSES if isinstance(v := record.get(name), dict)), record
    )
    metadata = record.get("metadata")
    meta = {**record, **metadata} if isinstance(metadata, dict) else record
    entries: Json = v if isinstance(v := parse.get("bib_entries"), dict) else {}
    known = {key: entry for key, entry in entries.items() if isinstance(entry, dict)}
    places = {key: place for place, key in enumerate(known)}
    dois = dois_of(f"{meta.get('doi') or ''} {meta.get('identifiers') or ''}")
    paper_id = f"{record.get('paper_id')}"
    return FullText(
        title=one_line(_string(meta.get("title"))),
        abstract=_abstract(
            record.get("abstract") or parse.get("abstract") or meta.get("abstract")
        ),
        year=first_year(f"{meta.get('year') or meta.get('update_date') or ''}"),
        authors=tuple(_people(meta.get("authors"))),
        venue=_string(meta.get("venue") or meta.get("journal-ref")),
        ids=(*dois, *arxiv_dois(f"arXiv:{paper_id}")),
        references=tuple(map(_reference, known.values())),
        sentences=tuple(_sentences(_objects(parse.get("body_text")), places)),
    )


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: Any) -> list[Json]:
    return (
        [item for item in value if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def _abstract(value: Any) -> str:
    """Return the text of an abstract: a string, an object with its text, or paragraphs of these."""
    parts = [value] if isinstance(value, dict) else _objects(value)
    texts = [_string(part.get("text")) for part in parts]
    return one_line(_OTHER.sub(" ", " ".join(texts) or _string(value)))


def _people(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from filter(None, map(str.strip, re.split(r",|\band\b", value)))
    for person in _objects(value):
        middle = person.get("middle")
        middles = middle if isinstance(middle, list) else []
        parts = (person.get("first"), *middles, person.get("last"), person.get("name"))
        if name := " ".join(part for part in parts if isinstance(part, str) and part):
            yield name


def _reference(entry: Json) -> Reference:
    numbers: Json = (
        v if isinstance(v := entry.get("ids") or entry.get("other_ids"), dict) else {}
    )
    arxiv = [
        f"arXiv:{item.get('id')}" for item in _objects(entry.get("contained_arXiv_ids"))
    ]
    links = [
        _string(item.get("url")) for item in _objects(entry.get("contained_links"))
    ]
    people = tuple(_people(entry.get("authors")))
    stated = [", ".join(people), *(f"{entry.get(name) or ''}" for name in _STATED)]
    raw = _string(entry.get("bib_entry_raw")) or _string(entry.get("raw_text"))
    text = raw or ". ".join(filter(None, stated))
    stated_ids = " ".join([*map(str, numbers.values()), *arxiv, *links])
    return Reference(
        text=one_line(text),
        ids=tuple(dict.fromkeys((*dois_of(stated_ids), *arxiv_dois(stated_ids)))),
        title=one_line(_string(entry.get("title"))),
        year=first_year(f"{entry.get('year') or ''}"),
        authors=people,
    )


def _sentences(
    paragraphs: Iterable[Json], places: dict[str, int]
) -> Iterator[Sentence]:
    marks = Marks()

    def token(key: object) -> str:
        return marks.token(
            [places[key]] if isinstance(key, str) and key in places else []
        )

    for paragraph in paragraphs:
        text = _string(paragraph.get("text"))
        spans = [] if _CITE.search(text) else _objects(paragraph.get("cite_spans"))
        places_of = [(span.get("start"), span.get("end"), span) for span in spans]
        known = [
            (start, end, span)
            for start, end, span in places_of
            if isinstance(start, int) and isinstance(end, int)
        ]
        for start, end, span in sorted(known, key=lambda known: -known[0]):
            text = text[:start] + token(span.get("ref_id")) + text[end:]
        text = _CITE.sub(lambda match: token(match[1]), text)
        yield from marks.sentences(_OTHER.sub(" ", text))
