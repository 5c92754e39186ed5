"""One draft read from a document: its fields, the references that it cites, and notices for the user."""

import re
from dataclasses import dataclass
from pathlib import Path

from citerec.bibliography.paper_list import PaperList
from citerec.bibliography.record import Draft, Record, first_year, one_line

MAX_FIRST_PARAGRAPHS = 2_000  # characters that stand for a missing abstract
MAX_ABSTRACT = 6_000  # characters; what is longer is not an abstract
LEAST_ABSTRACT = 40  # characters; less is a heading or a placeholder
NO_TITLE = "give it yourself: --query FILE --title T"
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[。！？]")
_YEARS = range(1900, 2101)


@dataclass(frozen=True, slots=True)
class CitedReferences:
    """The references that a draft cites by key, looked up in its bibliography."""

    papers: PaperList = PaperList(())
    sources: tuple[str, ...] = ()  # names of the files that describe them


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A draft as its format states it; a field that it does not state is empty."""

    title: str = ""
    abstract: str = ""
    body: str = ""  # the first paragraphs of the text, which stand for a missing abstract
    authors: tuple[str, ...] = ()
    year: int | None = None
    doi: str = ""  # bare
    cited: CitedReferences = CitedReferences()
    notices: tuple[str, ...] = ()  # each one line, in reading order

    def draft(self) -> Draft:
        """Return the fields as a draft, with the abstract that `shortened` gives."""
        return Draft(
            record=Record(number=1, line=None, fields={}),
            id="",
            title=self.title,
            abstract=self.shortened()[0],
            year=self.year,
            authors=self.authors,
            venue="",
            doi=self.doi,
        )

    def shortened(self) -> tuple[str, str]:
        """Return the abstract, or the first paragraphs in its place, and a sentence about what was done to it.

        A text is cut at the last end of a sentence within its limit; the sentence is empty if nothing was done.
        """
        abstract, body = one_line(self.abstract), one_line(self.body)
        if len(abstract) >= LEAST_ABSTRACT or (abstract and not body):
            kept = first_sentences(abstract, MAX_ABSTRACT)
            if len(kept) == len(abstract):
                return abstract, ""
            return (
                kept,
                f"the abstract has {len(abstract):,} characters: the first {len(kept):,} are used",
            )
        kept = first_sentences(body, MAX_FIRST_PARAGRAPHS)
        if not kept:
            return "", "no abstract and no text was found: the title alone is used"
        return (
            kept,
            f"no abstract was found: the first {len(kept):,} characters of the text are used",
        )


def first_sentences(text: str, most: int) -> str:
    """Return the sentences of `text` that fit into `most` characters; a single longer one is cut at a word."""
    if len(text) <= most:
        return text
    start = text[:most]
    ends = [match.end() for match in _SENTENCE_END.finditer(start)]
    if ends and ends[-1] > most // 4:
        return start[: ends[-1]]
    return start.rsplit(" ", 1)[0]


def document_year(text: str) -> int | None:
    """Return the year of a date as authors write it; None if it has none from 1900 to 2100."""
    year = first_year(text)
    return year if year in _YEARS else None


def recognised(document: Document, abstract: str, name: Path | str, format_name: str) -> str:
    """Return the line that shows the user what was recognised in a document."""
    parts = [f"title {_short(document.title)!r}" if document.title.strip() else "no title"]
    if abstract:
        parts.append(f"abstract {_short(abstract, 60)!r} ({len(abstract):,} characters)")
    if document.authors:
        count = len(document.authors)
        parts.append("1 author" if count == 1 else f"{count} authors")
    if document.year:
        parts.append(f"year {document.year} (papers of later years are left out)")
    return f"{name} ({format_name}): {', '.join(parts)}"


def _short(text: str, most: int = 100) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
