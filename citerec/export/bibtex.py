r"""Writes recommendations as BibTeX: UTF-8, with LaTeX's special characters escaped and capitals protected.

A brace in a title is written as a command: BibTeX also counts the brace of `\{`, and an unbalanced one would end the
entry.
"""

import re
from collections.abc import Iterable

from citerec.bibliography.keys import doi_of, paper_doi, split_name
from citerec.export.keys import unique_keys
from citerec.export.publication import Kind, kind_of
from citerec.export.result import Result, papers
from citerec.text import one_line, web_address
from citerec.types import Paper

_ESCAPES = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_"},
        "{": r"{\textbraceleft}",
        "}": r"{\textbraceright}",
        "~": r"{\textasciitilde}",
        "^": r"{\textasciicircum}",
        "\\": r"{\textbackslash}",
    }
)
_TYPES = {
    Kind.JOURNAL: "article",
    Kind.CONFERENCE: "inproceedings",
    Kind.CHAPTER: "incollection",
    Kind.BOOK: "book",
    Kind.THESIS: "phdthesis",
    Kind.REPORT: "techreport",
    Kind.PREPRINT: "misc",
    Kind.UNKNOWN: "misc",
}
_RANGE = re.compile(r"(?<=\w)\s*[-\u2010-\u2015]+\s*(?=\w)")
_RUNS = re.compile(r"([-`'])(?=\1)")
_UNDERSCORE = re.compile(r"(?<!\$)\\_(?!\{)")
_WORD = re.compile(r"[^\W_]+")
INDENT = "  "
LONG = 3  # words of a title; a shorter one in capitals only may be an acronym


def dump(results: Iterable[Result]) -> str:
    """Write each recommended paper once, without abstracts because of their licences."""
    cited_papers = papers(results)
    keys = unique_keys(cited_papers)
    return "\n".join(map(entry, keys, cited_papers))


def entry(key: str, paper: Paper, indent: str = INDENT) -> str:
    """Return a paper as an entry, which ends with a line feed; `indent` begins the line of each field."""
    kind, doi = kind_of(paper), paper_doi(paper)
    fields = {
        "title": _title(one_line(paper.title)),
        "author": " and ".join(_author(name) for name in paper.authors if one_line(name)),
        "year": str(paper.year) if paper.year is not None else "",
        **{name: _escape(text) for name, text in _published(paper, kind).items()},
        "pages": _pages(paper, kind),
        "doi": _verbatim(doi),
        "url": "" if doi and doi_of(paper.url) else web_address(paper.url),
    }
    lines = [f"{indent}{name} = {{{value}}},\n" for name, value in fields.items() if value]
    return f"@{_TYPES[kind]}{{{key},\n{''.join(lines)}}}\n"


def _published(paper: Paper, kind: Kind) -> dict[str, str]:
    """Return where a paper was published, in the fields of biblatex's data model for its type."""
    venue, publisher = one_line(paper.venue), one_line(paper.publisher)
    volume, issue = one_line(paper.volume), one_line(paper.issue)
    match kind:
        case Kind.JOURNAL:
            return {"journal": venue, "volume": volume, "number": issue}
        case Kind.CONFERENCE | Kind.CHAPTER:
            return {"booktitle": venue, "volume": volume, "publisher": publisher}
        case Kind.BOOK:
            series = venue if publisher else ""
            return {"publisher": publisher or venue, "series": series, "volume": volume}
        case Kind.THESIS:
            return {"school": publisher or venue}
        case Kind.REPORT:
            return {"institution": publisher or venue, "number": issue}
        case Kind.PREPRINT | Kind.UNKNOWN:
            return {"howpublished": venue or publisher}


def _pages(paper: Paper, kind: Kind) -> str:
    """Return the pages as a range of BibTeX, `12--19`; `@misc` has none."""
    pages = _RANGE.sub("--", one_line(paper.pages))
    return "" if kind in {Kind.PREPRINT, Kind.UNKNOWN} else _escape(pages)


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)


def _verbatim(text: str) -> str:
    """Escape a DOI so that none of its characters form a ligature, as `--` would form a dash.

    An underscore stays as it is where it cannot be a subscript: styles and programs treat a DOI
    as a link, not as LaTeX.
    """
    return _UNDERSCORE.sub("_", _RUNS.sub(r"\1{}", _escape(text)))


def _title(title: str) -> str:
    """Escape a title and put words such as BERT in braces: styles set titles in lower case.

    The capitals of a long title in capitals only, as Web of Science has some, mean nothing and are not protected.
    """
    if title.isupper() and len(title.split()) > LONG:
        return _escape(title)
    pieces: list[str] = []
    end = 0
    for word in _WORD.finditer(title):
        pieces.append(_escape(title[end : word.start()]))
        pieces.append(f"{{{word[0]}}}" if _has_inner_capital(word) else word[0])
        end = word.end()
    return "".join(pieces) + _escape(title[end:])


def _has_inner_capital(word: re.Match[str]) -> bool:
    """Whether `word` has a capital that is not due to its position in a title or sentence."""
    lone = len(word[0]) == 1 and word[0].isupper() and word[0] != "A" and word.start() > 0
    return lone or any(letter.isupper() for letter in word[0][1:])


def _author(name: str) -> str:
    parts = split_name(name)
    if parts.group or not parts.given:
        return _part(parts.family, keep_together=parts.group or " " in parts.family)
    return ", ".join(_part(p) for p in (parts.family, parts.suffix, parts.given) if p)


def _part(text: str, *, keep_together: bool = False) -> str:
    """Escape a part of a name, in braces if BibTeX would split it at a comma or an `and`."""
    splits = keep_together or "," in text or "and" in text.lower().split()
    return f"{{{_escape(text)}}}" if splits else _escape(text)
