"""Reads a draft from a Word document, by python-docx: title and abstract by their styles and headings."""

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from citerec.drafts.document import LEAST_ABSTRACT, Document
from citerec.drafts.prose import ABSTRACT, AFTER_ABSTRACT, without_label
from citerec.errors import BadInputError, extra

MAX_UNPACKED = 512 * 2**20  # bytes of all parts, pictures among them
MAX_XML = 32 * 2**20  # bytes of one part of XML
MAX_ELEMENTS = 1_000_000  # of one part of XML; a tree of them takes half a gigabyte
MAX_PARTS = 5_000
MAX_PARAGRAPHS = 2_000  # the first ones
_INSTEAD = "save it as plain text, or give --title and --abstract"
_ENTITY = re.compile(rb"<!(?:DOCTYPE|ENTITY)")
_INTRODUCTION = re.compile(r"[\dI.\s]*introduction[.:]?", re.IGNORECASE)
_MAX_TITLE = 300  # characters of a first line that counts as a title


def read(data: bytes, name: str, path: Path | None) -> Document:
    """Read a Word document (.docx).

    Args:
        data: The document.
        name: The name of the draft in messages.
        path: Not used.

    Raises:
        BadInputError: If it is damaged, encrypted or made to fill the memory.
        MissingExtraError: If python-docx is not installed.
    """
    _check(data, name)
    document = _opened(data, name)
    paragraphs = _paragraphs(document)
    title, title_notice = _title(paragraphs, document)
    authors = [text for style, text in paragraphs if style in ("author", "authors")]
    abstract = _abstract(paragraphs) or _property(document, "comments")
    return Document(
        title=title,
        abstract=abstract,
        body=_body(paragraphs, title),
        authors=_names(authors or [_property(document, "author")]),
        notices=(title_notice,) if title_notice else (),
    )


def _damaged(name: str, fault: str) -> BadInputError:
    what = "this is a zip archive (or a Word document); citerec reads Word documents (.docx)"
    return BadInputError(name, f"{what}, but {fault}; {_INSTEAD}")


def _check(data: bytes, name: str) -> None:
    """Raise for an archive that cannot be read, or that unpacks to more than a document has."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            parts = archive.infolist()
            if len(parts) > MAX_PARTS or sum(part.file_size for part in parts) > MAX_UNPACKED:
                fault = f"this one unpacks to more than {MAX_UNPACKED // 2**20} MB or {MAX_PARTS:,} parts"
                raise _damaged(name, fault)
            if any(part.flag_bits & 1 for part in parts):
                raise _damaged(name, "this one is encrypted")
            for part in parts:
                if part.filename.endswith((".xml", ".rels")):
                    _check_xml(archive, part, name)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError) as error:
        raise _damaged(name, f"this one is damaged ({str(error)[:80]})") from None
    except Exception as error:
        if isinstance(error, BadInputError):
            raise
        raise _damaged(name, f"this one is damaged ({type(error).__name__})") from None


def _check_xml(archive: zipfile.ZipFile, part: zipfile.ZipInfo, name: str) -> None:
    if part.file_size > MAX_XML:
        fault = f"its part {part.filename[:60]} has more than {MAX_XML // 2**20} MB"
        raise _damaged(name, fault)
    xml = archive.read(part)
    if xml.count(b"<") > 2 * MAX_ELEMENTS:
        fault = f"its part {part.filename[:60]} has more than {MAX_ELEMENTS:,} elements"
        raise _damaged(name, fault)
    if _ENTITY.search(xml):
        raise _damaged(
            name, f"its part {part.filename[:60]} declares entities, as no document does"
        )


def _opened(data: bytes, name: str) -> Any:
    with extra("drafts"):
        import docx
    try:
        document = docx.Document(BytesIO(data))
    except Exception as error:
        fault = " ".join(str(error).split())[:80] or type(error).__name__
        raise _damaged(name, f"this one is damaged ({fault})") from None
    return document


def _paragraphs(document: Any) -> list[tuple[str, str]]:
    """Return the style, in lower case, and the text of the first paragraphs that have a text."""
    found: list[tuple[str, str]] = []
    for paragraph in document.iter_inner_content():
        if len(found) >= MAX_PARAGRAPHS:
            break
        text = " ".join(getattr(paragraph, "text", "").split())
        if text:  # a table has none
            found.append((_style(paragraph), text))
    return found


def _style(paragraph: Any) -> str:
    try:
        return str(paragraph.style.name or "").lower() if paragraph.style is not None else ""
    except (KeyError, AttributeError, ValueError):
        return ""


def _title(paragraphs: list[tuple[str, str]], document: Any) -> tuple[str, str]:
    """Return the title, and a notice if it is only the first line."""
    title = " ".join(text for style, text in paragraphs[:50] if style == "title")
    subtitle = next((text for style, text in paragraphs[:50] if style == "subtitle"), "")
    if title:
        return (f"{title}: {subtitle}" if subtitle else title), ""
    if stated := _property(document, "title"):
        return stated, ""
    first = next((text for _, text in paragraphs), "")
    if first and len(first) <= _MAX_TITLE:
        return first, "no paragraph has the style Title: the first line is used as the title"
    return "", ""


def _property(document: Any, key: str) -> str:
    """Return a core property as text; empty for the placeholders of python-docx and for broken ones."""
    try:
        value = " ".join(str(getattr(document.core_properties, key) or "").split())
    except Exception:
        return ""
    placeholders = (
        "python-docx",
        "generated by python-docx",
        "Word Document",
        "PowerPoint Presentation",
    )
    return "" if value in placeholders else value


def _abstract(paragraphs: list[tuple[str, str]]) -> str:
    """Return the paragraphs of the style Abstract, else those after a heading or label of this name."""
    if styled := [
        text for style, text in paragraphs if style == "abstract" and len(text) >= LEAST_ABSTRACT
    ]:
        return without_label(" ".join(styled))
    for place, (_, text) in enumerate(paragraphs):
        label = ABSTRACT.match(text)
        if not label:
            continue
        parts = [text[label.end() :]]
        if parts[0] and not _is_heading(paragraphs[place][0]):
            return parts[0]  # a labelled paragraph is the whole abstract
        for style, following in paragraphs[place + 1 :]:
            if style.startswith(("heading", "title")) or AFTER_ABSTRACT.match(following):
                break
            parts.append(following)
        if text := " ".join(filter(None, parts)):
            return text
    return ""


def _is_heading(style: str) -> bool:
    return style.startswith("heading")


def _body(paragraphs: list[tuple[str, str]], title: str) -> str:
    """Return the text of the introduction, else all text below the title."""
    texts = [
        (style, text)
        for style, text in paragraphs
        if text != title and style not in ("title", "subtitle")
    ]
    starts = [i for i, (_, text) in enumerate(texts) if _INTRODUCTION.fullmatch(text)]
    kept = texts[starts[0] + 1 :] if starts else texts
    return " ".join(
        text for style, text in kept[:50] if not _is_heading(style) and len(text) >= LEAST_ABSTRACT
    )


def _names(values: list[str]) -> tuple[str, ...]:
    names = (name.strip() for value in values for name in re.split(r"[;,]|\s+and\s+", value))
    return tuple(name for name in names if name)[:1000]
