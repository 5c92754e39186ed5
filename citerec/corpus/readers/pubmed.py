"""PubMed's XML, as the baseline, the daily updates and a search export it: files of one `PubmedArticleSet` each.

Each record is cut out of the file and parsed alone: one that is not well-formed does not hide the next, and a DTD is
never parsed. Source: https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError, fromstring

from citerec.bibliography.entry import first_year
from citerec.bibliography.fields import Fields
from citerec.bibliography.keys import doi_of
from citerec.corpus.readers.files import (
    BytesRead,
    Format,
    Located,
    Rows,
    Source,
    StreamFaultError,
    papers_of,
)
from citerec.display import one_line
from citerec.types import Json, Log

CHUNK = 2**20  # bytes read at once
# bytes of a record; papers of thousands of authors have about 2 MB
LONGEST = 16 * 2**20
# they have eight digits: a mask of all takes 100 MB, of which few are touched
PMIDS = 10**8
_BLANK = b"\xef\xbb\xbf \t\r\n"
_SET = re.compile(rb"<(?:!DOCTYPE\s+)?Pubmed(?:Book)?Article(?:Set)?\b")
_OPEN = re.compile(rb"<(Pubmed(?:Book)?Article|DeleteCitation)[\s>]")
_DELETED = re.compile(rb">\s*([0-9]{1,17})\s*</PMID")
_TRANSLATED = re.compile(r"\[((?:[^\[\]]++|\[[^\[\]]*+\])*+)\](\.?)")
# what says so in another paper
_RETRACTED = {
    "RetractionIn",
    "RetractedandRepublishedIn",
}
_UNAVAILABLE = {
    "",
    "[not available].",
    "[not available]",
    "not available",
    "not available.",
}


def _records(stream: BinaryIO) -> Rows:
    """Yield the records and deletions of one file, each with the line where it begins."""
    for line, text in _cut(stream):
        if text.startswith(b"<DeleteCitation"):
            yield line, {"deleted": [pmid.decode() for pmid in _DELETED.findall(text)]}
            continue
        try:
            yield line, _record(fromstring(text))
        except ParseError as error:
            yield line, f"this record is not well-formed XML: {error}"


def _cut(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the text of each record, and of each `DeleteCitation`, with the line where it begins."""
    data = b""
    line = 1
    in_set = False
    ended = False
    while chunk := stream.read(CHUNK):
        data += chunk
        in_set = in_set or b"ArticleSet>" in data
        ended = b"ArticleSet>" in data[-64:]
        at = 0
        while opened := _OPEN.search(data, at):
            closing = b"</%s>" % opened[1]
            if (end := data.find(closing, opened.end()) + len(closing)) < len(closing):
                break
            line += data.count(b"\n", at, opened.start())
            yield line, data[opened.start() : end]
            line = line + data.count(b"\n", opened.start(), end)
            at = end
        data = data[at:]
        if len(data) > LONGEST:
            raise StreamFaultError(f"a record of over {LONGEST:,} bytes", line)
    if _OPEN.search(data) or (in_set and not ended):
        raise StreamFaultError("the XML is cut off: fetch it again", line)


def _papers(source: Source, read: BytesRead, log: Log) -> Iterator[Located]:
    """Yield the latest record of each paper.

    Files are read from the last to the first: the record of a later file replaces that of an earlier one, and a
    `DeleteCitation` removes those of earlier files.
    """
    seen = bytearray(PMIDS)

    def why(record: Json) -> str | None:
        if "deleted" in record:
            for pmid in record["deleted"]:
                number = _number(pmid)
                seen[number] = number > 0
            return None
        number = _number(record.get("id", ""))
        if seen[number]:
            return "records that later ones replace or delete"
        seen[number] = number > 0
        return ""

    yield from papers_of(source.files[::-1], Fields.paper, read, log, _records, why)


def _number(pmid: str) -> int:
    """Return a PMID as a number; 0, which is none, for anything else."""
    return int(pmid) if pmid.isdecimal() and len(pmid) <= 8 else 0


def _record(element: Element) -> Json:
    """Return a record with the keys of citerec's own format."""
    article = element.find("MedlineCitation/Article")
    book = element.find("BookDocument")
    body = (
        article
        if article is not None
        else book
        if book is not None
        else Element("none")
    )

    def text(*paths: str) -> str:
        return next(filter(None, (_text(body.find(path)) for path in paths)), "")

    types = [
        _text(kind) for kind in body.iterfind("PublicationTypeList/PublicationType")
    ]
    corrections = element.iterfind(
        "MedlineCitation/CommentsCorrectionsList/CommentsCorrections"
    )
    links = [correction.get("RefType") for correction in corrections]
    docid = _text(element.find("MedlineCitation/PMID")) or text("PMID")
    pages = [text(f"Pagination/{key}") for key in ("StartPage", "EndPage")]
    dois = [
        *body.iterfind("ELocationID[@EIdType='doi']"),
        # not those of the references, which are deeper
        *element.iterfind("*/ArticleIdList/ArticleId[@IdType='doi']"),
    ]
    # a chapter may have authors of its own
    authors = body.findall("AuthorList/Author") or body.findall(
        "Book/AuthorList[@Type='authors']/Author"
    )
    parts = body.findall("Abstract/AbstractText")
    labelled = ((one_line(part.get("Label", "")), _text(part)) for part in parts)
    record = {
        "title": _title(
            text("ArticleTitle"), text("VernacularTitle"), text("Book/BookTitle")
        ),
        "abstract": " ".join(
            f"{label}: {t}" if label else t for label, t in labelled if t
        ),
        "year": _year(body),
        "authors": list(filter(None, map(_name, authors))),
        "venue": text("Journal/Title", "Book/BookTitle"),
        "citations": list(_references(element)),
        "doi": " ".join(map(_text, dois)),
        "url": f"https://pubmed.ncbi.nlm.nih.gov/{docid}/" if docid else "",
        "type": types[0] if types else "",
        "volume": text("Journal/JournalIssue/Volume"),
        "issue": text("Journal/JournalIssue/Issue"),
        "pages": text("Pagination/MedlinePgn")
        or "-".join(dict.fromkeys(filter(None, pages))),
        "publisher": text("Book/Publisher/PublisherName"),
        "retracted": "Retracted Publication" in types
        or not _RETRACTED.isdisjoint(links),
    }
    return {"id": docid, **record} if docid else record


def _text(element: Element | None) -> str:
    """Return the text of an element with that of its markup, such as `<i>`, on one line."""
    return "" if element is None else one_line("".join(element.itertext()))


def _title(title: str, vernacular: str, book: str) -> str:
    """Return the title; of a translated one without its brackets, and the original title if there is no other."""
    if title.casefold() in _UNAVAILABLE:
        return vernacular or ("" if title else book)
    translated = _TRANSLATED.fullmatch(title)
    return translated[1] + translated[2] if translated else title


def _year(body: Element) -> int | None:
    """Return the year of the issue, else of the electronic publication; of `1998 Dec-1999 Jan` the first."""
    years = (
        first_year(_text(date.find(name)))
        for path in (
            "Journal/JournalIssue/PubDate",
            "Book/PubDate",
            "ArticleDate",
            "ContributionDate",
        )
        for date in body.iterfind(path)
        for name in ("Year", "MedlineDate")
    )
    return next(filter(None, years), None)


def _name(author: Element) -> str:
    names = [_text(author.find(key)) for key in ("ForeName", "LastName", "Suffix")]
    names[0] = names[0] or _text(author.find("Initials"))
    return " ".join(filter(None, names)) or _text(author.find("CollectiveName"))


def _references(element: Element) -> Iterator[str]:
    """Yield the PMID of each reference, else its DOI in lower case; lists may be inside lists."""
    for reference in element.iterfind("PubmedData/ReferenceList//Reference"):
        ids = {
            article_id.get("IdType"): _text(article_id)
            for article_id in reference.iterfind("ArticleIdList/ArticleId")
        }
        pmid = ids.get("pubmed", "")
        if docid := pmid if pmid.isdecimal() else doi_of(ids.get("doi", "")).lower():
            yield docid


PUBMED = Format(
    sniff=lambda head, _: (
        _SET.search(head) is not None and head.lstrip(_BLANK).startswith(b"<")
    ),
    read=Fields.paper,
    papers=_papers,
)
