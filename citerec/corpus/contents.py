"""Decides by content what a file or a pasted text is that no reader of corpora knows: a draft, a list or a text.

`citerec.corpus.readers.recognise` asks the readers first.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import NamedTuple

from citerec.bibliography.paper_list import DATED, Kind, kind_of
from citerec.bibliography.ris import TAGGED
from citerec.corpus.headings import Part, part_at
from citerec.files.reading import BOM, other_format

_LOOK = 2**16  # bytes at the start that decide
_LIBRARY = re.compile(
    rb"^[ \t]*@\s*[A-Za-z]+\s*[{(]|^TY {1,2}-(?: |\r?$)|" + TAGGED.encode(),
    re.MULTILINE,
)
_LATEX = re.compile(
    rb"\\document(?:class|style)[ \t]*[\[{]|^[ \t]*\\(?:begin[ \t]*\{(?:document|abstract)\}|title[ \t]*[\[{]"
    rb"|(?:chapter|section)\*?[ \t]*\{|usepackage[\[{])",
    re.MULTILINE,
)
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head)\b", re.IGNORECASE)
# no Jinja ({##, {%) and no badge ([![) at the start of Markdown
_JSON = re.compile(rb'\{\s*["}]|\[\s*["{\[\]]')
# but that of CSL YAML
_FRONT_MATTER = re.compile(rb"---[ \t]*\r?\n(?!references:)(?:[\w-]+[ \t]*:|#)")
_SECTION = re.compile(rb"^##[ \t]+\S", re.MULTILINE)
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.text"
_TEX = {".tex", ".ltx", ".latex"}
_MARKDOWN = {".md", ".markdown", ".qmd", ".rmd"}
_ID = re.compile(
    r"(?:(?:https?://)?(?:dx\.)?doi\.org/|doi:\s*)?10\.[0-9]{4,9}/\S+"
    r"|(?:(?:https?://)?arxiv\.org/(?:abs|pdf)/|arxiv:\s*)?(?:[0-9]{4}\.[0-9]{4,5}|[a-z-]+(?:\.[a-z]{2})?/[0-9]{7})\S{0,8}"
    r"|(?:https?://openalex\.org/)?w[0-9]{5,}|(?:pmid:?\s*|pmc|corpusid:\s*)?[0-9]{5,}|[0-9a-f]{40}",
    re.IGNORECASE,
)
_MARK = r"(?:\[[\w+ .-]{1,20}\]\s*|(?:\(?[1-9][0-9]{0,2}[.)]|[•*–-])\s+)"  # before a printed reference
_CAPITAL = r"[^\W\da-z_]"  # or a letter of a script without capitals
_PART = rf"(?:{_CAPITAL}[\w'’.-]*|d[aeiou]s?|de[nrl]|v[ao]n|l[ae]|ten?r?|zu|bin|al|of|for|the)"  # of a name
_NAME = rf"(?:{_PART} ){{0,4}}{_CAPITAL}[\w'’-]*"
# Lovelace, A.; Lovelace AK,; A. K. Lovelace
_INITIALS = rf"{_NAME}, {_CAPITAL}\.|{_NAME} [A-Z]{{1,3}}[,.;:]|(?:{_CAPITAL}\.[ -]?){{1,3}}{_NAME}"
_NAMES = (  # Lovelace, Ada; Ada Lovelace and
    rf"{_INITIALS}|{_NAME}, {_CAPITAL}|{_PART}(?: {_PART}){{1,4}}(?:[,;.]| and| &| \()"
    r"|[\u3400-\u9fff\uac00-\ud7af]{2,4}[,.，．、]"
)
_REFERENCE = re.compile(rf"(?:{_MARK})?(?:{_NAMES})")
_SURE_REFERENCE = re.compile(rf"{_MARK}(?:{_NAMES})|{_INITIALS}")
_BREAK = re.compile(r"[.,;:)](?= )|[，。．]")
MAX_REFERENCE = 2_000  # characters of a printed one
_LEAST_TEXT = 200  # characters of a draft before its list of references


class ContentKind(StrEnum):
    """What a file or a pasted text is, as messages call it."""

    DRAFT = "a draft"  # a document
    RECORDS = "a list of papers"  # an export or a library
    IDS = "a list of ids"
    PRINTED = "a printed list of references"
    TEXT = "plain text"
    UNREAD = "not read"


class Content(NamedTuple):
    """What a file or a pasted text is.

    `format` is that of a document; the name of a reader, or `json` for records that only lists and queries may have;
    or of what is not read its name, and what to do.
    """

    kind: ContentKind
    format: str = ""

    def __str__(self) -> str:
        if self.kind is ContentKind.UNREAD:
            return self.format
        return f"{self.kind} ({self.format})" if self.format else str(self.kind)


class DocumentFormat(StrEnum):
    """The formats of a document that holds one draft, by the name that messages use."""

    LATEX = "LaTeX"
    MARKDOWN = "Markdown"
    DOCX = "Word"
    ODT = "OpenDocument"
    RTF = "RTF"
    PDF = "PDF"
    HTML = "HTML"
    TYPST = "Typst"


def document_format(data: bytes, name: str) -> DocumentFormat | None:
    """Return the format of a document by its content; None for text, JSON, bibliographies and what is unknown.

    The name decides only where a text may be LaTeX, Markdown or Typst as well as plain text.
    """
    start = data[:_LOOK].removeprefix(BOM).lstrip()
    suffix = PurePath(name).suffix.lower()
    latex = _LATEX.search(start)
    library = _LIBRARY.search(start)
    is_json = _JSON.match(start)
    is_zip = start.startswith(b"PK\x03\x04")
    # or is damaged
    is_word = b"word/document" in data or b"PK\x05\x06" not in data[-(2**16) :]
    has_headings = start.startswith(b"# ") and _SECTION.search(start)
    formats = (
        (start.startswith(b"{\\rtf"), DocumentFormat.RTF),
        (b"%PDF-" in start[:1024] and not is_json, DocumentFormat.PDF),
        (is_zip and _OPEN_DOCUMENT in start[:200], DocumentFormat.ODT),
        (is_zip and is_word, DocumentFormat.DOCX),
        (is_zip or is_json, None),
        (_HTML.match(start), DocumentFormat.HTML),
        (b"\0" in start, None),
        (suffix in _MARKDOWN or _FRONT_MATTER.match(start), DocumentFormat.MARKDOWN),
        (library and not (latex and latex.start() < library.start()), None),
        (latex or (suffix in _TEX and b"\\" in start), DocumentFormat.LATEX),
        (suffix == ".typ", DocumentFormat.TYPST),
        (has_headings, DocumentFormat.MARKDOWN),
        (True, None),
    )
    return next(kind for is_kind, kind in formats if is_kind)


def content_of(data: bytes, name: str) -> Content:
    """Decide what something is that no reader of corpora knows; `name` decides as in `document_format`.

    Anything may be plain text: ids and printed references are recognised if nearly all of it is that.
    """
    document = document_format(data, name)
    if document and document is not DocumentFormat.MARKDOWN:
        return Content(ContentKind.DRAFT, document)
    text = data[:_LOOK].removeprefix(BOM).decode(errors="replace")
    if not document and (other := other_format(data)):
        return Content(ContentKind.UNREAD, other)
    if not document and (kind := kind_of(text, name)) is not Kind.TEXT:
        return Content(ContentKind.RECORDS, kind.lower())
    lines = stated_lines(text)
    if lines and all(map(_ID.fullmatch, lines)):
        return Content(ContentKind.IDS)
    if split_references(lines) and not _has_text(text):
        return Content(ContentKind.PRINTED)
    return (
        Content(ContentKind.DRAFT, document) if document else Content(ContentKind.TEXT)
    )


def stated_lines(text: str) -> list[str]:
    """Return the lines of a list as text, without surrounding blanks, blank lines, and lines that start with `#`."""
    lines = map(str.strip, text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _has_text(text: str) -> bool:
    """Whether something other than references stands before the heading of a list of references."""
    lines = [line.strip("# \t\r") for line in text.split("\n")]
    heads = [n for n, line in enumerate(lines) if part_at(line) is Part.REFERENCES]
    before = list(filter(None, lines[: heads[-1]])) if heads else []
    return sum(map(len, before)) >= _LEAST_TEXT and not split_references(before)


def split_references(lines: Sequence[str]) -> list[str]:
    """Return the references of a printed list, of which each may take several lines; none if it is something else.

    Nearly all of them begin with names or a mark, and have a year or a DOI.
    """
    wrapped: list[list[str]] = []
    is_dated = False
    for line in lines:
        if not wrapped or (is_dated and _REFERENCE.match(line)):
            wrapped.append([])
            is_dated = False
        wrapped[-1].append(line)
        is_dated = is_dated or DATED.search(line) is not None
    for references in (list(lines), [" ".join(parts) for parts in wrapped]):
        begins = _REFERENCE if len(references) > 1 else _SURE_REFERENCE
        found = [
            reference
            for reference in references
            if len(reference) <= MAX_REFERENCE
            and begins.match(reference)
            and DATED.search(reference)
            and len(_BREAK.findall(reference)) > 2
        ]
        if len(found) >= 0.8 * len(references):
            return references
    return []
