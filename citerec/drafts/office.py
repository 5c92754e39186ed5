"""Reads what pandoc does not: the title and the references in the fields of Word and OpenDocument, and some of RTF.

Zotero, Mendeley and EndNote keep the data of each reference in the field that cites it, so that they are known before a
list is printed. Pandoc (3.9) reads fields of Word alone, keeps only one of the references that Mendeley calls ITEM-1,
skips those that EndNote packs, and drops the printed list.
"""

import html
import re
from base64 import b64decode
from contextlib import suppress
from io import BytesIO
from json import JSONDecoder
from zipfile import BadZipFile, ZipFile
from zlib import error

from citerec.bibliography.entry import Entry
from citerec.bibliography.json_entries import to_entry
from citerec.display import one_line

_MOST = 64 * 2**20  # bytes of a part of the file
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml", "content.xml")
_PROPERTIES = ("docProps/core.xml", "meta.xml")
_TITLE = re.compile(
    r"<dc:title[^>]*>(?!Microsoft Word|Untitled)([^<]*)(?<!\.tex|.doc|docx)<"
)
# what is left of Word is its text, with that of fields
_TAGS = re.compile(r"</?(?:w:|style)[^>]*>")
_PACKED = re.compile(r"(?:<w:fldData[^>]*>|MENDELEY_CITATION_v3_)([\w+/=\s]+)")
_ITEM = re.compile(r'"itemData"\s*:\s*(?=\{)')  # of Zotero and Mendeley: CSL
_RECORD = re.compile(r"<record>.*?</record>|<text:bibliography-mark [^>]*>", re.DOTALL)
_VALUE = re.compile(r'<(title|year|doi)>(.*?)</|text:(title|year)="([^"]*)"', re.DOTALL)

# a character and what stands for it in old programs, of which pandoc (3.9) skips one letter or digit too many
_UNICODE = re.compile(rb"(?<!\\)(\\u-?\d+)(?=[^\s\\{}\d])")


def readable_rtf(data: bytes) -> bytes:
    """Return RTF whose notes pandoc reads, which LibreOffice and pandoc mark as optional, and no letter is lost."""
    return _UNICODE.sub(rb"\1 ", data.replace(rb"{\*\footnote", rb"{\footnote"))


def stated_title(data: bytes) -> str:
    """Return the title in the properties of a Word or OpenDocument file; empty if it has none."""
    match = _TITLE.search(_text(data, *_PROPERTIES))
    return one_line(html.unescape(match[1])) if match else ""


def field_references(data: bytes, name: str) -> list[Entry]:
    """Return the references in the fields of a Word or OpenDocument file, in their order, each once."""
    xml = _text(data, *_PARTS)
    text = html.unescape(_TAGS.sub("", xml))
    for packed in _PACKED.findall(xml):
        with suppress(ValueError):
            text += b64decode(packed).decode("utf-8", "replace")
    items: list[dict[str, object]] = []
    for match in _ITEM.finditer(text):
        with suppress(ValueError):
            items.append(JSONDecoder(strict=False).raw_decode(text, match.end())[0])
    for record in _RECORD.findall(
        _TAGS.sub("", text).replace("electronic-resource-num", "doi")
    ):
        items.append(
            {a or b: html.unescape(c or d) for a, c, b, d in _VALUE.findall(record)}
        )
    entries: dict[object, Entry] = {}
    for item in items:
        item.pop("id", None)  # unique within a citation only
        entry = to_entry(item, Entry(label=str(item.get("title"))), name, strict=False)
        if entry.is_named:
            entries.setdefault(entry.title, entry)
    return [*entries.values()]


def _text(data: bytes, *parts: str) -> str:
    """Return the text of the parts that the file has."""
    text = ""
    for part in parts:
        faults = suppress(
            BadZipFile, KeyError, OSError, ValueError, RuntimeError, error
        )
        with faults, ZipFile(BytesIO(data)) as archive, archive.open(part) as stream:
            text += stream.read(_MOST).decode("utf-8", "replace")
    return text
