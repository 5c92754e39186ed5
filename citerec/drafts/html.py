"""Reads a draft from an HTML page: meta tags of publishers, else headings; by Beautiful Soup."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from citerec.bibliography.doi import doi_of
from citerec.bibliography.record import one_line
from citerec.drafts.document import LEAST_ABSTRACT, Document, document_year
from citerec.drafts.prose import without_label
from citerec.errors import BadInputError, extra

MAX_HTML = 64 * 2**20  # bytes
MAX_PARSED = 512 * 2**10  # bytes from the start, without scripts, formulas and embedded pictures
_TITLES = ("citation_title", "dc.title", "dcterms.title", "bepress_citation_title", "og:title")
_ABSTRACTS = ("citation_abstract", "dc.description", "dcterms.abstract", "eprints.abstract")
_DESCRIPTIONS = ("og:description", "description", "twitter:description")
_AUTHORS = ("citation_author", "dc.creator", "bepress_citation_author", "author")
_DOIS = ("citation_doi", "dc.identifier", "prism.doi")
_DATES = (
    "citation_publication_date",
    "citation_date",
    "citation_online_date",
    "citation_year",
    "dc.date",
)
_ABSTRACT_MARK = re.compile(
    r"(?:^|[-_])abs(?:tract|1-content)?(?:$|[-_])|doc-abstract", re.IGNORECASE
)
_UNREAD = re.compile(rb"<(script|style|svg|math)\b", re.IGNORECASE)
_EMBEDDED = re.compile(rb"data:[^\s\"'<>]{500,}")
_LABEL = re.compile(r"\s*abstract\s*[.:\u2014\u2013-]?\s*", re.IGNORECASE)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def read(data: bytes, name: str, path: Path | None) -> Document:
    """Read an HTML page; its encoding is the one that it declares, else detected.

    Args:
        data: The page.
        name: The name of the draft in messages.
        path: Not used.

    Raises:
        BadInputError: If it is larger than `MAX_HTML` or cannot be parsed.
        MissingExtraError: If Beautiful Soup or lxml is not installed.
    """
    if len(data) > MAX_HTML:
        size = f"{len(data):,} bytes; expected at most {MAX_HTML:,}"
        raise BadInputError(name, f"this HTML page has {size}; pass its title and abstract as text")
    soup = _parsed(data, name)
    meta = _meta(soup)
    for tag in soup(["script", "style", "noscript", "template", "nav", "header", "footer"]):
        if tag.name != "header" or not tag.find("h1"):
            tag.decompose()
    abstract = _first(meta, _ABSTRACTS) or _by_place(soup) or _by_heading(soup)
    paragraphs = [text for p in soup.find_all("p") if len(text := _text(p)) >= LEAST_ABSTRACT]
    return Document(
        title=_first(meta, _TITLES) or _title(soup),
        abstract=without_label(abstract or _first(meta, _DESCRIPTIONS)),
        body=_introduction(soup) or " ".join(paragraphs[:20]),
        authors=tuple(_names(next((meta[key] for key in _AUTHORS if key in meta), []))),
        year=document_year(_first(meta, _DATES)),
        doi=next(filter(None, map(doi_of, (v for key in _DOIS for v in meta.get(key, [])))), ""),
    )


def _parsed(data: bytes, name: str) -> Any:
    with extra("drafts"):
        import bs4
        import lxml  # noqa: F401  # pyright: ignore[reportUnusedImport]
    import warnings

    with warnings.catch_warnings():  # about XHTML and file names
        warnings.simplefilter("ignore")
        try:
            return bs4.BeautifulSoup(_head(data), "lxml")
        except (RecursionError, ValueError, AssertionError, LookupError) as error:
            fault = f"this HTML page cannot be parsed ({type(error).__name__})"
            raise BadInputError(name, f"{fault}; pass its title and abstract as text") from None


def _head(data: bytes) -> bytes:
    """Return the start of a page without what is not read: scripts, formulas, embedded pictures."""
    lowered = data.lower()
    pieces: list[bytes] = []
    at = length = 0
    while length < MAX_PARSED and (match := _UNREAD.search(data, at)):
        end = lowered.find(b"</" + match[1].lower(), match.end())
        if end < 0:
            break
        pieces.append(_EMBEDDED.sub(b"", data[at : match.start()]))
        length += len(pieces[-1])
        at = end + len(match[1]) + 2
        at = max(at, data.find(b">", at) + 1)
    head = b" ".join([*pieces, _EMBEDDED.sub(b"", data[at : at + 8 * MAX_PARSED])])
    if len(head) <= MAX_PARSED:
        return head
    return head[: head.rfind(b">", 0, MAX_PARSED) + 1]  # not within a character


def _meta(soup: Any) -> dict[str, list[str]]:
    """Return the contents of the meta tags by name, in lower case."""
    values: dict[str, list[str]] = {}
    for tag in soup.find_all("meta"):
        key = tag.get("name") or tag.get("property")
        content = one_line(str(tag.get("content") or ""))
        if key and content:
            values.setdefault(str(key).lower(), []).append(content)
    return values


def _first(meta: dict[str, list[str]], keys: Iterable[str]) -> str:
    return next((meta[key][0] for key in keys if key in meta), "")


def _title(soup: Any) -> str:
    """Return the only first-level heading, else the title of the page, else the first heading."""
    headings = [text for tag in soup.find_all("h1") if (text := _text(tag))]
    page = _text(soup.title) if soup.title else ""
    if len(headings) == 1:
        return headings[0]
    return page or next(iter(headings), "")


def _by_place(soup: Any) -> str:
    """Return the text of the first element that is marked as the abstract by its id, class or role."""
    for tag in soup.find_all(["div", "section", "blockquote", "article", "p", "span", *_HEADINGS]):
        marks = [tag.get("id"), tag.get("role"), *(tag.get("class") or ())]
        if any(isinstance(mark, str) and _ABSTRACT_MARK.search(mark) for mark in marks):
            text = _after(tag) if tag.name in _HEADINGS else _without_heading(tag)
            if len(text) >= LEAST_ABSTRACT:
                return text
    return ""


def _without_heading(tag: Any) -> str:
    heading = tag.find(_HEADINGS)
    text, label = _text(tag), _text(heading) if heading else ""
    return text.removeprefix(label).strip() if label else text


def _by_heading(soup: Any) -> str:
    """Return the text between a heading "Abstract" and the next heading."""
    for tag in soup.find_all(_HEADINGS):
        if _LABEL.fullmatch(_text(tag)):
            return _after(tag)
    return ""


def _introduction(soup: Any) -> str:
    for tag in soup.find_all(_HEADINGS):
        if re.fullmatch(r"[\dI.\s]*introduction[.:]?", _text(tag), re.IGNORECASE):
            return _after(tag)
    return ""


def _after(heading: Any) -> str:
    """Return the text of the paragraphs from a heading to the next one."""
    parts: list[str] = []
    for tag in heading.find_all_next([*_HEADINGS, "p"], limit=100):
        if tag.name in _HEADINGS:
            break
        parts.append(_text(tag))
    return " ".join(filter(None, parts))


def _names(values: list[str]) -> list[str]:
    """Return names as `First Last`; publishers write `Last, First`."""
    found: list[str] = []
    for value in values[:1000]:
        for name in value.split(";"):
            family, comma, given = name.partition(",")
            text = f"{given} {family}" if comma and "," not in given else name
            if text.strip():
                found.append(one_line(text))
    return found


def _text(tag: Any) -> str:
    return one_line(tag.get_text(" ", strip=False))
