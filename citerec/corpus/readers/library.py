"""Makes papers of the records of bibliographies, which are free text: an invalid value counts as missing."""

from collections.abc import Sequence
from pathlib import Path

from citerec.bibliography.record import Record, one_line
from citerec.corpus.readers.fields import CONTROL, MAX_ID, MAX_SHORT, Fields
from citerec.types import BIBLIOGRAPHIC, Paper
from citerec.valid import MAX_ABSTRACT, MAX_TITLE, id_fault, year_fault

NO_CITATIONS = (
    "this library has no citations: the ranker cannot use them; `citerec collect` fetches them"
)


def bibliography_record(fields: Fields) -> Record:
    """Return the fields of a record for the functions of `citerec.bibliography`."""
    return Record(number=fields.line, line=fields.line, fields=fields.record)


def library_paper(
    fields: Fields,
    *,
    ids: Sequence[str],
    title: str,
    abstract: str = "",
    year: int | None = None,
    authors: Sequence[str] = (),
    venue: str = "",
    citations: Sequence[str] = (),
    **bibliographic: str,
) -> Paper:
    """Check the texts of a record, and make a paper of it.

    Args:
        fields: The record, for its place.
        ids: The first that can be an id is the paper's; if there is none, it is the name of the file and the line.
        title: Required, as in every corpus.
        abstract: May be empty, as all that follow.
        year: One that is not valid counts as unknown.
        authors: Each as `First Last`.
        venue: The journal or the like.
        citations: The ids of its references.
        bibliographic: Values of `BIBLIOGRAPHIC`.

    Raises:
        BadRecordError: If it has no title, or a text is too long.
    """
    title, abstract = one_line(title), CONTROL.sub(" ", abstract).strip()
    _check_texts(fields, title, abstract)
    short = {name: one_line(bibliographic.get(name, "")) for name in BIBLIOGRAPHIC}
    return Paper(
        id=paper_id(fields, ids),
        title=title,
        abstract=abstract,
        year=None if year_fault(year) else year,
        authors=tuple(filter(None, map(one_line, authors))),
        venue=one_line(venue),
        citations=tuple(citations),
        **{name: text if len(text) <= MAX_SHORT else "" for name, text in short.items()},
    )


def _check_texts(fields: Fields, title: str, abstract: str) -> None:
    if not title:
        fields.fail("this record has no title", kind="missing_fields")
    for name, text, most in (("title", title, MAX_TITLE), ("abstract", abstract, MAX_ABSTRACT)):
        if len(text) > most:
            fields.fail(f"{name!r} has {len(text):,} characters; expected at most {most:,}")


def paper_id(fields: Fields, ids: Sequence[str]) -> str:
    """Return the first usable id; if there is none, the name of the file and the line, such as `refs:12`."""
    usable = (text for value in ids if (text := one_line(value)) and len(text) <= MAX_ID)
    if docid := next((text for text in usable if not id_fault(text)), ""):
        return docid
    return f"{Path(fields.path).name.split('.')[0] or 'paper'}:{fields.line}"
