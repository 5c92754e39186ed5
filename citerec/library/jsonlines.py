"""Reads whole texts from JSON lines: of unarXive, and of S2ORC as GROBID's converter and CORD-19 have it."""

import re
from collections.abc import Iterator

from citerec.bibliography.entry import first_year
from citerec.bibliography.fields import Fields
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.display import one_line
from citerec.library.texts import FullText, Marks, Reference, Sentence
from citerec.types import Json

_CITE = re.compile(r"\{\{cite:([^{}]{1,200})\}\}")
_OTHER = re.compile(r"\{\{\w+:[^{}]{1,200}\}\}")
_PARSES = ("pdf_parse", "latex_parse", "grobid_parse")
_STATED = ("title", "venue", "volume", "pages", "year")
_PEOPLE = re.compile(r",\s*(?:and\s+)?|\s+and\s+")


def is_full_text(record: Json) -> bool:
    """Whether a record of JSON, or its keys, is a whole text with its references."""
    return "paper_id" in record and not {"body_text", *_PARSES}.isdisjoint(record)


def full_text(fields: Fields) -> FullText:
    """Return the text of a record; BadRecordError if a field has another type than its format says."""
    inner = (fields.inner(name) for name in _PARSES if fields.get(name))
    parse = next(inner, fields)
    meta = fields.of({**fields.record, **fields.inner("metadata").record})
    entries = parse.inner("bib_entries")
    places = {key: place for place, key in enumerate(entries.record)}
    abstract = fields if "abstract" in fields.record else parse
    return FullText(
        title=one_line(meta.text("title")),
        abstract=_abstract(abstract),
        year=first_year(meta.short("year") or meta.short("update_date")),
        authors=_people(meta),
        venue=meta.short("venue"),
        ids=(
            *dois_of(f"{meta.get('doi')} {meta.get('identifiers')}"),
            *arxiv_dois(f"arXiv:{fields.short('paper_id')}"),
        ),
        references=tuple(_reference(entries.inner(key)) for key in places),
        sentences=tuple(_sentences(parse, places)),
    )


def _abstract(fields: Fields) -> str:
    """Return an abstract: a text, an object with its text, or a list of such paragraphs."""
    value = fields.get("abstract")
    if isinstance(value, dict):
        return fields.inner("abstract").text("text")
    if isinstance(value, list):
        return " ".join(part.text("text") for part in fields.objects("abstract"))
    return fields.text("abstract")


def _people(fields: Fields) -> tuple[str, ...]:
    value = fields.get("authors")
    names = _PEOPLE.split(one_line(value)) if isinstance(value, str) else ()
    return tuple(filter(None, names)) or fields.names("authors")


def _reference(entry: Fields) -> Reference:
    people = _people(entry)
    stated = " ".join([*people, *map(entry.short, _STATED)])
    numbers = entry.inner("ids" if "ids" in entry.record else "other_ids").record
    arxiv = (item.short("id") for item in entry.objects("contained_arXiv_ids"))
    named = " ".join([str(numbers), *(f"arXiv:{number}" for number in arxiv)])
    return Reference(
        text=one_line(entry.text("bib_entry_raw") or entry.text("raw_text") or stated),
        ids=(*dois_of(named), *arxiv_dois(named)),
        title=one_line(entry.text("title")),
        year=first_year(entry.short("year")),
        authors=people,
    )


def _sentences(parse: Fields, places: dict[str, int]) -> Iterator[Sentence]:
    marks = Marks()

    def token(key: str) -> str:
        return marks.token([places[key]] if key in places else [])

    for paragraph in parse.objects("body_text"):
        text = paragraph.text("text")
        spans = [] if _CITE.search(text) else paragraph.objects("cite_spans")
        # from the last, so that the places of the others stay
        for span in reversed(spans):
            start, end = (int(span.short(key) or 0) for key in ("start", "end"))
            text = text[:start] + token(span.short("ref_id")) + text[end:]
        text = _CITE.sub(lambda match: token(match[1]), text)
        yield from marks.sentences(_OTHER.sub(" ", text))
