"""Streams the records of PubMed's XML: one record in memory at a time, no entities, nothing fetched."""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from citerec.corpus.readers.streams import StreamFaultError
from citerec.inputs import BOM, MAX_LINE

CHUNK = 2**18  # bytes read at once
HEAD = 64 * 2**10  # bytes in which the first element must begin
DEEPEST = 200  # elements inside each other; PubMed has about 15
RECORDS = {"PubmedArticle", "PubmedBookArticle"}
DELETED = "DeleteCitation"
_ROOT = re.compile(rb"<(?:Pubmed(?:Book)?Article(?:Set)?|DeleteCitation)\b")
_ENCODING = re.compile(rb"""<\?xml[^>]*\bencoding\s*=\s*["']([^"']*)""")
_ENCODINGS = {b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin-1"}
_LONGEST_END = len(b"</PubmedBookArticle>") - 1
_END = re.compile(rb"</Pubmed(?:Book)?Article>")


def elements(stream: BinaryIO) -> Iterator[tuple[int, Element]]:
    """Yield each element of `RECORDS`, and `DELETED`, with the line where it begins; it is cleared afterwards.

    Raises:
        StreamFaultError: If the XML is not well-formed, ends too early, declares entities, or is nested too deeply.
    """
    head = stream.read(HEAD).removeprefix(BOM)
    _check_prolog(head)
    parser = XMLPullParser(("start", "end"))
    line, depth = 1, 0
    path: list[Element] = []
    for piece in _pieces(head, stream):
        begins = line + piece.count(b"\n", 0, max(0, piece.find(b"<Pubmed")))
        line += piece.count(b"\n")
        for event, element in _events(parser, piece, begins):
            if event == "start":
                depth += 1
                if depth <= 2:  # a record is in the list of records, which must not keep it
                    path[depth - 1 :] = [element]
                elif depth > DEEPEST:
                    raise StreamFaultError(f"elements nested over {DEEPEST} deep", line)
                continue
            depth -= 1
            if element.tag in RECORDS or element.tag == DELETED:
                yield begins, element
                path[0].clear()
    _close(parser, line)


def _check_prolog(head: bytes) -> None:
    """Refuse what comes before the first element if it could expand, or hides what it holds."""
    root = _ROOT.search(head)
    if not root:
        raise StreamFaultError("no PubmedArticleSet in this file; expected the XML of PubMed", 1)
    prolog = head[: root.start()]
    if b"<!ENTITY" in prolog:
        raise StreamFaultError(
            "this XML declares entities, which PubMed's does not; they are not expanded, and the file is not read", 1
        )
    encoding = _ENCODING.search(prolog)
    if encoding and encoding[1].lower() not in _ENCODINGS:
        found = encoding[1][:40].decode(errors="replace")
        raise StreamFaultError(f"this XML is in the encoding {found!r}; expected UTF-8", 1)


def _pieces(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Yield the file in pieces that end with a record, so that the line of each record is known."""
    data, length = head, 0
    while True:
        start = 0
        for end in _END.finditer(data):
            yield data[start : end.end()]
            start, length = end.end(), 0
        more = stream.read(CHUNK)
        # an end tag may be cut in two
        cut = max(start, len(data) - _LONGEST_END) if more else len(data)
        yield data[start:cut]
        length += cut - start
        if length > MAX_LINE:
            raise StreamFaultError(f"over {MAX_LINE:,} bytes without the end of a record")
        if not more:
            return
        data = data[cut:] + more


def _events(parser: XMLPullParser, piece: bytes, line: int) -> Iterator[tuple[str, Element]]:
    try:
        parser.feed(piece)
        yield from parser.read_events()  # pyright: ignore[reportReturnType]
    except ParseError as error:
        raise _not_well_formed(error, line) from error


def _not_well_formed(error: ParseError, line: int) -> StreamFaultError:
    what, _, _ = str(error).partition(":")
    if "entity" in what:
        return StreamFaultError(f"this XML uses an entity that XML does not define: {error}", line)
    return StreamFaultError(f"not well-formed XML: {error}; fetch the file again", line)


def _close(parser: XMLPullParser, line: int) -> None:
    try:
        parser.close()
        list(parser.read_events())
    except ParseError as error:
        message = f"the XML ends inside a record or before its end tag ({error}); it is cut off: fetch it again"
        raise StreamFaultError(message, line) from error
