"""Recognises documents by their content: LaTeX, Markdown, Word, PDF, HTML."""

import re
from enum import StrEnum
from pathlib import PurePath

_LOOK = 2**16  # bytes at the start that decide
_MARKDOWN_NAMES = (".md", ".markdown", ".qmd", ".rmd")
_LATEX_NAMES = (".tex", ".ltx", ".latex")
_BIBTEX = re.compile(rb"^[ \t]*@[A-Za-z]+[ \t]*[{(]", re.MULTILINE)
_LATEX = re.compile(
    rb"\\document(?:class|style)[ \t]*[\[{]|^[ \t]*\\(?:begin[ \t]*\{(?:document|abstract)\}|title[ \t]*[\[{]"
    rb"|(?:chapter|section)\*?[ \t]*\{|usepackage[\[{])",
    re.MULTILINE,
)
_HTML = re.compile(
    rb"(?:<\?xml[^<>]*\?>\s*)?(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|meta|title)\b",
    re.DOTALL | re.IGNORECASE,
)
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
    if start.startswith((b"{", b"[")):
        return None
    if b"%PDF-" in start[:1024]:
        return DocumentFormat.PDF
    if start.startswith(b"PK\x03\x04"):
        return DocumentFormat.DOCX if _is_word(data) else None
    if _HTML.match(start):
        return DocumentFormat.HTML
    return None if b"\0" in start else _source_format(start, name)


def _source_format(start: bytes, name: str) -> DocumentFormat | None:
    """Return the format of a text by its start: LaTeX, unless BibTeX precedes it, or Markdown."""
    latex, bibtex = _LATEX.search(start), _BIBTEX.search(start)
    if latex and not (bibtex and bibtex.start() < latex.start()):
        return DocumentFormat.LATEX
    suffix = PurePath(name).suffix.lower()
    if bibtex:
        return None
    if suffix in _LATEX_NAMES and b"\\" in start:
        return DocumentFormat.LATEX
    has_headings = start.startswith(b"# ") and _SECTION.search(start)
    if suffix in _MARKDOWN_NAMES or has_headings or _FRONT_MATTER.match(start):
        return DocumentFormat.MARKDOWN
    return None


def _is_word(data: bytes) -> bool:
    """Whether a zip archive is a Word document or damaged, rather than an archive of something else."""
    return b"word/document" in data or b"PK\x05\x06" not in data[-(2**16) :]
