"""A document that holds one draft: its format, by content, and its fields."""

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from citerec.bibliography.entry import PaperList, first_year
from citerec.text import one_line

MAX_FIRST_PARAGRAPHS = 2_000  # characters that stand for a missing abstract
MAX_ABSTRACT = 6_000  # characters; what is longer is not an abstract
LEAST_ABSTRACT = 40  # characters; less is a heading or a placeholder
NO_TITLE = "give it yourself: --query FILE --title T"
_SENTENCE_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s|$)|[。！？]")

_LOOK = 2**16  # bytes at the start that decide
_BIBTEX = re.compile(rb"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_LATEX = re.compile(
    rb"\\document(?:class|style)[ \t]*[\[{]|^[ \t]*\\(?:begin[ \t]*\{(?:document|abstract)\}|title[ \t]*[\[{]"
    rb"|(?:chapter|section)\*?[ \t]*\{|usepackage[\[{])",
    re.MULTILINE,
)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head)\b", re.IGNORECASE)
_FRONT_MATTER = re.compile(rb"---[ \t]*\r?\n(?:[\w-]+[ \t]*:|#)")
_SECTION = re.compile(rb"^##[ \t]+\S", re.MULTILINE)


class DocumentFormat(StrEnum):
    """The formats of a document that holds one draft, by the name that messages use."""

    LATEX = "LaTeX"
    MARKDOWN = "Markdown"
    DOCX = "Word"
    PDF = "PDF"
    HTML = "HTML"


def document_format(data: bytes, name: str) -> DocumentFormat | None:
    """Return the format of a document by its content; None for text, JSON, bibliographies and what is unknown.

    The name decides only where a text may be LaTeX or Markdown as well as plain text.
    """
    start = data[:_LOOK].removeprefix(b"\xef\xbb\xbf").lstrip()
    latex, bibtex = _LATEX.search(start), _BIBTEX.search(start)
    suffix = PurePath(name).suffix.lower()
    if b"%PDF-" in start[:1024] and not start.startswith((b"{", b"[")):
        return DocumentFormat.PDF
    if start.startswith(b"PK\x03\x04"):  # a Word document or a damaged one, or another archive
        is_word = b"word/document" in data or b"PK\x05\x06" not in data[-(2**16) :]
        return DocumentFormat.DOCX if is_word else None
    if _HTML.match(start):
        return DocumentFormat.HTML
    is_bibtex = bibtex and not (latex and latex.start() < bibtex.start())
    if b"\0" in start or start.startswith((b"{", b"[")) or is_bibtex:
        return None
    if latex or (suffix in (".tex", ".ltx", ".latex") and b"\\" in start):
        return DocumentFormat.LATEX
    has_headings = start.startswith(b"# ") and _SECTION.search(start)
    is_named = suffix in (".md", ".markdown", ".qmd", ".rmd")
    is_markdown = is_named or has_headings or _FRONT_MATTER.match(start)
    return DocumentFormat.MARKDOWN if is_markdown else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A draft as its format states it; a field that it does not state is empty."""

    title: str = ""
    abstract: str = ""
    body: str = ""  # the first paragraphs of the text, which stand for a missing abstract
    authors: tuple[str, ...] = ()
    year: int | None = None
    doi: str = ""  # bare
    cited: PaperList = PaperList(())  # the references that it cites by key
    sources: tuple[str, ...] = ()  # names of the files that describe them
    notices: tuple[str, ...] = ()  # each one line, in reading order

    def shortened(self) -> tuple[str, str]:
        """Return the abstract, or the first paragraphs in its place, and a sentence about what was done to it.

        A text is cut at the last end of a sentence within its limit; the sentence is empty if nothing was done.
        """
        abstract, body = one_line(self.abstract), one_line(self.body)
        if len(abstract) >= LEAST_ABSTRACT or (abstract and not body):
            kept = first_sentences(abstract, MAX_ABSTRACT)
            cut = f"the abstract has {len(abstract):,} characters: the first {len(kept):,} are used"
            return kept, "" if len(kept) == len(abstract) else cut
        if kept := first_sentences(body, MAX_FIRST_PARAGRAPHS):
            count = f"the first {len(kept):,} characters of the text are used"
            return kept, f"no abstract was found: {count}"
        return "", "no abstract and no text was found: the title alone is used"


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
    return year if year in range(1900, 2101) else None


def short(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters."""
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
