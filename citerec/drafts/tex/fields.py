r"""Finds title, abstract, authors, date and first paragraphs in the source of a LaTeX draft."""

import re
from collections.abc import Iterator
from itertools import islice

from citerec.drafts.tex.braces import argument, optional

_TITLES = (
    re.compile(r"\\(?:title|icmltitle|Title|thesistitle|papertitle|ttitle)\*?(?![A-Za-z@])"),
    re.compile(r"\\(?:mlsystitle|aistatstitle|JNRtitle|inserttitle|hdr)(?![A-Za-z@])"),
)
_SUBTITLE = re.compile(r"\\subtitle(?![A-Za-z@])")
_PDF_TITLE = re.compile(r"pdftitle\s*=\s*")
_ABSTRACT = re.compile(
    r"\\begin\s*\{((?:IEEE|frontmatter)?[aA]bstract(?:\*|s|page)?|summary|onecolabstract)\}\s*(?:\[[^\]]{0,300}\])?"
)
_ABSTRACT_COMMAND = re.compile(r"\\(?:abstract|Abstract|abst|summary)(?![A-Za-z@])")
_HEADING = (
    r"\\(?:part|chapter|(?:sub)*section|addchap|addsec|paragraph)\*?\s*(?:\[[^\]]{0,300}\])?\s*"
)
_ABSTRACT_SECTION = re.compile(
    rf"{_HEADING}\{{\s*(?:abstract|summary|zusammenfassung|r[ée]sum[ée]|resumen)\s*\}}",
    re.IGNORECASE,
)
_ANY_SECTION = re.compile(
    rf"{_HEADING}\{{|\\tableofcontents|\\end\s*\{{abstract|\\(?:begin\s*\{{)?keywords"
)
_INTRODUCTION = re.compile(
    rf"{_HEADING}\{{\s*(?:\d[\d.]*\s*)?introduction[^{{}}]*\}}", re.IGNORECASE
)
_BEGIN = re.compile(r"\\begin\s*\{document\}")
_FRONT = re.compile(
    r"\\maketitle(?![A-Za-z@])|\\end\s*\{(?:abstract|frontmatter|keywords?|IEEEkeywords|titlepage)\}"
)
_BIBLIOGRAPHY = re.compile(
    r"\\begin\s*\{thebibliography\}|\\(?:print)?bibliography(?![A-Za-z@])|\\appendix\b"
)
_AUTHOR = re.compile(r"\\(?:author|icmlauthor|Author|mlsysauthor|name)\*?(?![A-Za-z@])")
_DATE = re.compile(r"\\date(?![A-Za-z@])")
_PARAMETER = re.compile(r"(?<!\\)#[1-9]")
MAX_AUTHORS = 1_000
_MOST_ABSTRACTS = 20  # of which one may be in the language of another
_MOST = 20_000  # characters of a body


def commands(source: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the argument in braces of each use of a command that has one, after its optional arguments."""
    for match in pattern.finditer(source):
        at = match.end()
        value, end = optional(source, at)
        while value is not None:
            at = end
            value, end = optional(source, at)
        text, _ = argument(source, at)
        if text is not None and text.strip():
            yield text


def title(source: str) -> str:
    """Return the title with its subtitle, as LaTeX; empty if there is none."""
    for pattern in _TITLES:
        for text in commands(source, pattern):
            if _PARAMETER.search(text):  # the definition of a class
                continue
            subtitle = next(commands(source, _SUBTITLE), "")
            return f"{text}: {subtitle}" if subtitle else text
    if match := _PDF_TITLE.search(source):
        return argument(source, match.end())[0] or ""
    return ""


def abstract(source: str) -> str:
    r"""Return the abstract as LaTeX: an environment, `\abstract{…}` or a section with this heading; else empty."""
    for match in islice(_ABSTRACT.finditer(source), _MOST_ABSTRACTS):
        end = source.find(f"\\end{{{match[1]}}}", match.end())
        text = source[match.end() : end] if end >= 0 else ""
        if text.strip() and not _PARAMETER.search(text[:20]):
            return text
    for match in _ABSTRACT_COMMAND.finditer(source):
        if parts := _arguments(source, match.end()):  # astronomy has five of them
            return " ".join(parts)
    if match := _ABSTRACT_SECTION.search(source):
        end = _ANY_SECTION.search(source, match.end())
        return source[match.end() : end.start() if end else match.end() + _MOST]
    return ""


def _arguments(source: str, at: int) -> list[str]:
    parts: list[str] = []
    while True:
        text, end = argument(source, at)
        if text is None:
            return [part for part in parts if part.strip() and not _PARAMETER.search(part)]
        parts.append(text)
        at = end


def introduction(source: str) -> str:
    """Return the text of the introduction, else that after the front matter, as LaTeX."""
    if match := _INTRODUCTION.search(source):
        return _paragraphs(source, match.end())
    begin = _BEGIN.search(source)
    if not begin:
        return ""
    fronts = [m.end() for m in _FRONT.finditer(source, begin.end())]
    return _paragraphs(source, max([begin.end(), *fronts]))


def _paragraphs(source: str, at: int) -> str:
    text = source[at : at + _MOST]
    end = _BIBLIOGRAPHY.search(text)
    text = text[: end.start()] if end else text
    # headings of sections within are no sentences
    return re.sub(rf"{_HEADING}\{{[^{{}}]*\}}", " ", text)


def authors(source: str) -> list[str]:
    r"""Return the arguments of `\author` and the like, as LaTeX."""
    found = islice(commands(source, _AUTHOR), MAX_AUTHORS)
    return [text for text in found if not _PARAMETER.search(text)]


def date(source: str) -> str:
    r"""Return the argument of `\date`, as LaTeX; empty if there is none."""
    return next(commands(source, _DATE), "")
