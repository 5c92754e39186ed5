"""PubMed's XML, as the baseline, the daily updates and a search export it: files of one `PubmedArticleSet` each.

Files are read from the last to the first: a later version of a record replaces an earlier one, and a `DeleteCitation`
removes the records of earlier files. Retracted publications are left out.
Source: https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import TYPE_CHECKING, Any, BinaryIO
from xml.etree.ElementTree import Element

import orjson

from citerec.bibliography.doi import doi_of
from citerec.bibliography.record import first_year, one_line
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.numbers import NumberSet
from citerec.corpus.readers.pubmed_xml import DELETED, elements
from citerec.corpus.readers.streams import Broken, Located, Rows, located, read_file
from citerec.errors import writing
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

_SET = re.compile(rb"<(?:!DOCTYPE\s+)?Pubmed(?:Book)?Article(?:Set)?\b")
_TRANSLATED = re.compile(r"\[((?:[^\[\]]++|\[[^\[\]]*+\])*+)\](\.?)")
_UNAVAILABLE = {"", "[not available].", "[not available]", "not available", "not available."}
_LEFT_OUT = {"replaced": "that later ones replace or delete", "retracted": "that were retracted"}
Row = Mapping[str, Any] | Broken


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and _SET.search(head) is not None


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file, and what it deletes, each with the line where it begins."""
    for line, element in elements(stream):
        if isinstance(element, Broken):
            yield line, element
        elif element.tag == DELETED:
            yield line, {"deleted": [_text(pmid) for pmid in element.findall("PMID")]}
        else:
            yield line, _record(element)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper."""
    return fields.paper()


def papers_on_disk(
    source: "Source", read_bytes: Callable[[int], None], log: Log, scratch: Path | None
) -> Iterator[Located]:
    """Yield the latest version of each record of all files."""
    later, counts = NumberSet(), Counter[str]()
    for file in reversed(source.files):
        for line, row in _latest(file, later, counts, read_bytes, scratch):
            if isinstance(row, Broken) or not row["retracted"]:
                yield located(file, line, row, read)
            else:
                counts["retracted"] += 1
    for why in sorted(counts):
        log(f"left out {counts[why]:,} records {_LEFT_OUT[why]}")


def _latest(
    file: Path,
    later: NumberSet,
    counts: Counter[str],
    read_bytes: Callable[[int], None],
    scratch: Path | None,
) -> Iterator[tuple[int, Row]]:
    """Yield the records of a file that neither this file nor a later one replaces or deletes.

    A file names what it deletes at its end, so its records wait in a temporary file.
    """
    place: dict[int, int] = {}  # of the latest version of each record in the temporary file
    versions: dict[int, int] = {}  # above 1
    deleted: set[int] = set()
    with writing(scratch or Path(gettempdir())), TemporaryFile(dir=scratch) as spill:
        for line, row in read_file(file, records, read_bytes):
            if isinstance(row, Broken) or "deleted" not in row:
                pmid, version = _identity(row)
                known = pmid in place
                counts["replaced"] += known
                if known and version < versions.get(pmid, 1):
                    continue
                if version > 1:
                    versions[pmid] = version
                place[pmid or -1 - len(place)] = spill.tell()
                fault = isinstance(row, Broken)
                spill.write(orjson.dumps([line, row.message if fault else row]) + b"\n")
            else:
                deleted.update(filter(None, map(_number, row["deleted"])))
        yield from _replay(spill, place, deleted, later, counts)
    for pmid in (*place, *deleted):
        if pmid >= 0:
            later.add(pmid)


def _replay(
    spill: Any, place: dict[int, int], deleted: set[int], later: NumberSet, counts: Counter[str]
) -> Iterator[tuple[int, Row]]:
    for pmid, start in place.items():
        if pmid in deleted or (pmid >= 0 and pmid in later):
            counts["replaced"] += 1
            continue
        if spill.tell() != start:
            spill.seek(start)
        line, row = orjson.loads(spill.readline())
        yield line, Broken(row) if isinstance(row, str) else row


def _identity(row: Row) -> tuple[int, int]:
    """Return the number and the version of a record; 0 if it has no number."""
    return (0, 1) if isinstance(row, Broken) else (_number(row.get("id", "")), row["version"])


def _number(pmid: str) -> int:
    """Return a PMID as a number; 0 if it is not one."""
    return int(pmid) if pmid.isdecimal() and len(pmid) < 18 else 0


def _record(element: Element) -> dict[str, Any]:
    """Return a record with the keys of citerec's own format, and `version` and `retracted`."""
    article = element.find("MedlineCitation/Article")
    book = element.find("BookDocument")
    body = article if article is not None else book if book is not None else Element("none")
    pmid = element.find("MedlineCitation/PMID")
    pmid = pmid if pmid is not None else body.find("PMID")
    types = [_text(kind) for kind in body.iterfind("PublicationTypeList/PublicationType")]
    version = "" if pmid is None else pmid.get("Version", "")
    docid = _text(pmid)
    record = {
        "title": _title(body),
        "abstract": _abstract(body),
        "year": _year(body),
        "authors": list(_authors(body)),
        "venue": _text(body.find("Journal/Title")) or _text(body.find("Book/BookTitle")),
        "citations": list(_references(element)),
        "doi": _doi(element, body),
        "url": f"https://pubmed.ncbi.nlm.nih.gov/{docid}/" if docid else "",
        "type": types[0] if types else "",
        "volume": _text(body.find("Journal/JournalIssue/Volume")),
        "issue": _text(body.find("Journal/JournalIssue/Issue")),
        "pages": _pages(body),
        "publisher": _text(body.find("Book/Publisher/PublisherName")),
        "version": int(version) if version.isdecimal() and len(version) < 6 else 1,
        "retracted": "Retracted Publication" in types,
    }
    return {"id": docid, **record} if docid else record


def _text(element: Element | None) -> str:
    """Return the text of an element with that of its markup, such as `<i>`, on one line."""
    if element is None:
        return ""
    return one_line("".join(element.itertext()) if len(element) else element.text or "")


def _title(body: Element) -> str:
    """Return the title; of a translated one without its brackets, and the original title if there is no other."""
    title = _text(body.find("ArticleTitle"))
    if title.casefold() in _UNAVAILABLE:
        vernacular = _text(body.find("VernacularTitle"))
        return vernacular or (_text(body.find("Book/BookTitle")) if not title else "")
    translated = _TRANSLATED.fullmatch(title)
    return translated[1] + translated[2] if translated else title


def _abstract(body: Element) -> str:
    parts = body.findall("Abstract/AbstractText")
    texts = ((one_line(part.get("Label", "")), _text(part)) for part in parts)
    return " ".join(f"{label}: {text}" if label else text for label, text in texts if text)


def _year(body: Element) -> int | None:
    """Return the year of the issue, else of the electronic publication; of `1998 Dec-1999 Jan` the first."""
    paths = ("Journal/JournalIssue/PubDate", "Book/PubDate", "ArticleDate", "ContributionDate")
    dates = (date for path in paths for date in body.iterfind(path))
    texts = (_text(date.find(name)) for date in dates for name in ("Year", "MedlineDate"))
    return next((year for text in texts if (year := first_year(text))), None)


def _authors(body: Element) -> Iterator[str]:
    for author in body.iterfind("AuthorList/Author"):
        names = [_text(author.find(key)) for key in ("ForeName", "LastName", "Suffix")]
        if not names[0]:
            names[0] = _text(author.find("Initials"))
        if name := " ".join(filter(None, names)) or _text(author.find("CollectiveName")):
            yield name


def _pages(body: Element) -> str:
    if pages := _text(body.find("Pagination/MedlinePgn")):
        return pages
    first, last = (_text(body.find(f"Pagination/{key}")) for key in ("StartPage", "EndPage"))
    return f"{first}-{last}" if first and last else first


def _doi(element: Element, body: Element) -> str:
    """Return the DOI of the record; its list of ids is not that of its references."""
    ids = [
        *body.iterfind("ELocationID[@EIdType='doi']"),
        *element.iterfind("PubmedData/ArticleIdList/ArticleId[@IdType='doi']"),
        *element.iterfind("PubmedBookData/ArticleIdList/ArticleId[@IdType='doi']"),
    ]
    return next((doi for found in ids if (doi := doi_of(_text(found)))), "")


def _references(element: Element) -> Iterator[str]:
    """Yield the PMID of each reference, else its DOI in lower case; lists may be inside lists."""
    for reference in element.iterfind("PubmedData/ReferenceList//Reference"):
        ids = reference.findall("ArticleIdList/ArticleId")
        pmids = (_text(one) for one in ids if one.get("IdType") == "pubmed")
        dois = (doi_of(_text(one)).lower() for one in ids if one.get("IdType") == "doi")
        docid = next(filter(str.isdecimal, pmids), "") or next(filter(None, dois), "")
        if docid:
            yield docid
