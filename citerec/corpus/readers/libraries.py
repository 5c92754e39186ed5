"""BibTeX, RIS and their like, as reference managers and publishers export them; they have no citations.

`citerec.corpus.contents` recognises both, since they may begin with other lines.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, BinaryIO

from citerec.bibliography import bibtex, ris
from citerec.bibliography.fields import NO_CITATIONS, Fields, library_paper
from citerec.bibliography.paper_list import decode
from citerec.corpus.readers.files import (
    BytesRead,
    Format,
    Located,
    Rows,
    Source,
    ToPaper,
    papers_of,
)
from citerec.display import web_address
from citerec.files.reading import BOM, read_stream
from citerec.types import Log, Paper


def _papers(
    rows: Callable[[str], Iterable[tuple[int, Any]]],
    to_paper: ToPaper,
    source: Source,
    read: BytesRead,
    log: Log,
) -> Iterator[Located]:
    """Yield the papers of each library, of which `rows` reads the records."""
    notices: list[str] = []

    def records(stream: BinaryIO) -> Rows:
        data = read_stream(stream, file)
        if data.removeprefix(BOM).strip():
            yield from rows(
                decode(data, file, reads="expected BibTeX or RIS", notices=notices)
            )

    for file in source.files:
        yield from papers_of([file], to_paper, read, log, records)
        for notice in notices:
            log(notice)
        notices.clear()


# --- BibTeX and BibLaTeX


def _bibtex_rows(text: str) -> list[tuple[int, Any]]:
    records, broken = bibtex.read_records(text)
    return sorted([*records, *broken], key=itemgetter(0))


def _bibtex_paper(fields: Fields) -> Paper:
    """Turn one entry into a paper; its key is its id."""
    raw = fields.record
    text = partial(bibtex.first_text, raw)
    return library_paper(
        fields,
        [raw[bibtex.KEY]],
        bibtex.to_entry(fields.line, raw),
        url=bibtex.link(
            raw.get("url") or web_address(bibtex.link(raw.get("howpublished", "")))
        ).split(" ")[0],  # Mendeley writes several
        type="mastersthesis" if raw.get("type") == "mathesis" else raw[bibtex.TYPE],
        volume=text("volume"),
        issue=text("number", "issue"),
        pages=text("pages", "eid", "article-number", "art_number"),
        publisher=text("publisher", "institution", "school", "organization"),
    )


BIBTEX = Format(
    read=_bibtex_paper,
    papers=partial(_papers, _bibtex_rows, _bibtex_paper),
    note=NO_CITATIONS,
)

# --- RIS, .nbib, .enw, plain text of Web of Science


def _ris_paper(fields: Fields) -> Paper:
    entry = ris.to_entry(fields.line, fields.record)
    text = partial(ris.first_text, fields.record)
    return library_paper(
        fields,
        [text("id"), *entry.dois, text("accession_number")],
        entry,
        url=text("urls").split(" ")[0],
        type=text("type_of_reference"),
        volume=text("volume"),
        issue=text("number"),
        # else the number of an article
        pages=fields.pages("start_page", "end_page") or text("custom7"),
        publisher=text("publisher"),
        retracted="Retracted Publication" in fields.record.get("keywords", ()),
    )


RIS = Format(
    read=_ris_paper,
    papers=partial(_papers, ris.read_records, _ris_paper),
    note=NO_CITATIONS,
)
