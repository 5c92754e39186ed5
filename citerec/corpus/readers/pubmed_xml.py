"""Streams the records of PubMed's XML: each is cut out of the file and parsed alone.

So one record is in memory at a time, one that is not well-formed does not hide the next, and neither a DTD nor what it
declares is ever parsed: entities are not expanded, and nothing is fetched.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError, XMLParser

from citerec.corpus.readers.streams import Broken, StreamFaultError
from citerec.inputs import BOM

CHUNK = 2**20  # bytes read at once
HEAD = 64 * 2**10  # bytes in which the first element must begin
LONGEST = 16 * 2**20  # bytes of a record; papers of thousands of authors have about 2 MB
DELETED = "DeleteCitation"
_ROOT = re.compile(rb"<(?:Pubmed(?:Book)?Article(?P<set>Set)?|DeleteCitation)[\s>/]")
_START = re.compile(rb"<(Pubmed(?:Book)?Article|DeleteCitation)(?=[\s>])")
_SET_END = re.compile(rb"</Pubmed(?:Book)?ArticleSet\s*>")
_LONGEST_TAG = 32
_ENCODING = re.compile(rb"""<\?xml[^>]*\bencoding\s*=\s*["']([^"']*)""")
_ENCODINGS = {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1"}


def elements(stream: BinaryIO) -> Iterator[tuple[int, Element | Broken]]:
    """Yield each record, and each `DELETED`, with the line where it begins.

    Raises:
        StreamFaultError: If this is not PubMed's XML, declares entities, ends too early, or a record is too long.
    """
    data = stream.read(CHUNK).removeprefix(BOM)
    encoding, in_set = _check_prolog(data[:HEAD])
    line, at, ended, more = 1, 0, False, b"first"
    while True:
        start = _START.search(data, at)
        end_tag = b"</%b>" % start[1] if start else b""
        end = data.find(end_tag, start.end()) + len(end_tag) if start else 0
        if start and end >= len(end_tag):
            begins = line + data.count(b"\n", at, start.start())
            yield begins, _parsed(data[start.start() : end], encoding)
            line, at = begins + data.count(b"\n", start.start(), end), end
            continue
        kept = start.start() if start else max(at, len(data) - _LONGEST_TAG)
        ended = ended or (not start and _SET_END.search(data, at) is not None)
        line += data.count(b"\n", at, kept)
        if len(data) - kept > LONGEST:
            raise StreamFaultError(f"a record of over {LONGEST:,} bytes", line)
        if not (more := stream.read(max(CHUNK, len(data) - kept))):
            break
        data, at = data[kept:] + more, 0
    if start or (in_set and not ended):
        where = "inside a record" if start else "before its end tag"
        raise StreamFaultError(f"the XML ends {where}; it is cut off: fetch it again", line)


def _check_prolog(head: bytes) -> tuple[str, bool]:
    """Return the encoding of the XML, and whether it is a set of records; refuse what PubMed does not write."""
    root = _ROOT.search(head)
    if not root:
        raise StreamFaultError("no PubmedArticleSet in this file; expected the XML of PubMed", 1)
    prolog = head[: root.start()]
    if b"<!ENTITY" in prolog:
        raise StreamFaultError(
            "this XML declares entities, which that of PubMed does not, and they may be harmful; it was not read",
            1,
        )
    declared = _ENCODING.search(prolog)
    encoding = declared[1].decode(errors="replace").lower() if declared else "utf-8"
    if encoding not in _ENCODINGS:
        raise StreamFaultError(f"XML in the encoding {encoding[:40]!r}; expected UTF-8", 1)
    return encoding, root["set"] is not None


def _parsed(record: bytes, encoding: str) -> Element | Broken:
    parser = XMLParser(encoding=encoding)
    try:
        parser.feed(record)
        return parser.close()
    except ParseError as error:
        what, _, place = str(error).partition(": line ")
        row, _, column = place.partition(", column ")
        where = f" in its line {row}, column {column}" if column else ""
        return Broken(f"this record is not well-formed XML: {what}{where}")
