"""Exports of Web of Science and Scopus: tables of fields, with cited references that are linked to papers.

Web of Science: plain text with tags, or a table separated by tabs; the tags:
https://images.webofknowledge.com/images/help/WOS/hs_wos_fieldtags.html.
Scopus: CSV. It writes a reference as `Doe J., Title, Journal, 89, 2, pp. 12-15, (2001)` since 2023, and before as
`Doe, J., Title (2001) Journal, 89 (2), pp. 12-15`. A title may hold the `;` that separates references.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import Any, BinaryIO

from citerec.bibliography.keys import doi_of, name_key
from citerec.corpus.readers.fields import Fields, library_paper
from citerec.corpus.readers.files import (
    Broken,
    BytesRead,
    Format,
    Located,
    Records,
    Rows,
    Source,
    head_text,
    located,
    read_file,
    text_lines,
    text_stream,
)
from citerec.types import Log, Paper

Reference = tuple[list[str], str]  # DOIs, and the `work_key`
_INITIALS = re.compile(r"^(.+) ((?:[^\W\d_a-z]\.?-?){1,4})$")
_NUMBER = re.compile(r"0*([0-9a-z]+)")


def _linked(
    records: Records,
    to_paper: Callable[[Fields], Paper],
    key_of: Callable[[Mapping[str, Any]], str],
    references_of: Callable[[Mapping[str, Any]], list[Reference]],
    source: Source,
    read: BytesRead,
    log: Log,
    scratch: Path | None,
) -> Iterator[Located]:
    """Yield every record of an export with its references linked, by DOI, else by first author, year, volume and page.

    Two passes: for the keys of the papers, which memory holds, and for the papers. A key that several papers have links
    nothing. The DOI of a paper outside the corpus stays in place of its id; a reference without a DOI that cannot be
    linked is left out.
    """
    ids: dict[str, set[str]] = {}
    counts = Counter[str]()

    def link(dois: Sequence[str], key: str) -> str:
        dois = [doi.lower() for doi in dois]
        cited, rule = set[str]().union(*(ids.get(doi, ()) for doi in dois)), "doi"
        if not cited and key:
            cited, rule = ids.get(key, set()), "key"
        if len(cited) != 1:
            counts["ambiguous" if cited else "outside"] += 1
            return "" if cited or not dois else dois[0]
        counts[rule] += 1
        return next(iter(cited))

    def rows(share: Callable[[int], int]) -> Iterator[tuple[Any, Located]]:
        for file in source.files:
            for line, row in read_file(file, records, lambda more: read(share(more))):
                yield row, located(file, line, row, to_paper)

    for row, record in rows(lambda more: more - more // 2):
        if isinstance(paper := record.paper, Paper):
            for key in filter(None, (doi_of(paper.doi).lower(), key_of(row))):
                ids.setdefault(key, set()).add(paper.id)
    for row, record in rows(lambda more: more // 2):
        if isinstance(paper := record.paper, Paper):
            cited = tuple(filter(None, starmap(link, references_of(row))))
            yield replace(record, paper=replace(paper, citations=cited))
        else:
            yield record
    log(
        f"references: {counts['doi']:,} linked by DOI, {counts['key']:,} by first author, year, volume and page; "
        f"{counts['ambiguous']:,} ambiguous ones left out, {counts['outside']:,} to papers outside the corpus"
    )


def work_key(author: str, year: str, volume: str, page: str) -> str:
    """Return the key by which a work is recognised without a DOI; empty if a part of it is missing.

    The author is `Family, Given`, `Family J.A.` or `FAMILY JA`; leading zeros of volume and page do not count.
    """
    if "," not in author:
        author = _INITIALS.sub(r"\1, \2", author)
    numbers = [_NUMBER.match(text.strip().lower()) for text in (volume, page)]
    name = name_key(author) if "," in author and "nonymous" not in author else ""
    parts = [name, year, *(match[1] if match else "" for match in numbers)]
    return "|".join(parts) if all(parts) else ""


def _paper(
    fields: Fields, columns: Mapping[str, str], row: Mapping[str, Any], people: Sequence[str]
) -> Paper:
    """Make a paper of a row; `columns` names those of fields of a paper, and of `first`, `last`, `article`, `id`."""
    texts = {name: row.get(column, "") for name, column in columns.items()}
    year = re.match(r"[12][0-9]{3}", texts.pop("year"))
    article, ids = texts.pop("article"), [texts.pop("id"), texts["doi"]]
    pages = fields.of(texts).pages("first", "last")
    del texts["first"], texts["last"]
    names = (family_given.partition(",") for family_given in people)
    return library_paper(
        fields,
        ids,
        year=int(year[0]) if year else None,
        authors=[f"{given.strip()} {family.strip()}" for family, _, given in names],
        pages=pages or article,
        **texts,
    )


# --- Web of Science

_LISTS = frozenset({"AU", "AF", "CR", "CA"})  # a value per line
_TAG = re.compile(r"([A-Z][A-Z0-9]) (.*)|(E[RF])\s*$")
_TEXT = re.compile(r"FN (?:ISI|Clarivate|Thomson|Web of)|(?:VR [^\n]*\n)?PT [A-Z]\s*\n[A-Z]")
_CITED_YEAR = re.compile(r"^(?:, [^,]*)?, ([12][0-9]{3})(?=,|$)")  # an author may have a comma
_VOLUME = re.compile(r", V([0-9A-Z]*[0-9][0-9A-Z]*)(?=,|$)")
_PAGE = re.compile(r", (?:P|ARTN |ART )([^\s,]+)(?=,|$)")
_DOIS = re.compile(r",\s*DOI\s+(.+)$")
_EACH_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")
_WOS_COLUMNS = {
    **{"id": "UT", "title": "TI", "abstract": "AB", "year": "PY", "venue": "SO", "doi": "DI"},
    **{"type": "DT", "volume": "VL", "issue": "IS", "first": "BP", "last": "EP", "article": "AR"},
    "publisher": "PU",
}


def _is_wos(head: bytes, name: str) -> bool:
    text = head_text(head).lstrip().replace("\r\n", "\n")
    columns = text.partition("\n")[0].strip().split("\t")
    return bool(_TEXT.match(text)) or (columns[0] == "PT" and {"AU", "TI", "UT"} <= set(columns))


def _wos_records(stream: BinaryIO) -> Rows:
    """Yield the records of one file with their lines, as tags and values; authors and references are lists."""
    lines = ((number, line) for number, line in text_lines(stream) if line.strip())
    first = next(lines, (1, ""))
    if not first[1].startswith("PT\t"):
        yield from _tagged(chain([first], lines))
        return
    columns = first[1].rstrip("\t").split("\t")
    for number, line in lines:
        values = line.split("\t")
        while len(values) > len(columns) and not values[-1]:
            values.pop()
        if len(values) != len(columns):
            yield number, Broken(f"{len(values)} columns; the header has {len(columns)}")
            continue
        pairs = zip(columns, values, strict=True)
        yield number, {t: re.split(r";\s+", v) if t in _LISTS else v for t, v in pairs if v}


def _tagged(lines: Iterator[tuple[int, str]]) -> Rows:
    start, tag = 0, ""
    record: dict[str, list[str]] = {}
    for number, line in chain(lines, [(0, "EF")]):
        match = None if line.startswith("   ") else _TAG.match(line.rstrip() + " ")
        if match and (match[3] or match[1] in {"PT", "FN", "EF", "ER"}):
            if record:
                yield start, {t: v if t in _LISTS else " ".join(v) for t, v in record.items()}
            start, tag, record = number, match[1] or "", {}
            if tag == "PT":
                record["PT"] = [match[2].strip()]
        elif record:  # not FN, VR, and what follows ER
            tag = match[1] if match else tag
            record.setdefault(tag, []).append((match[2] if match else line).strip())


def _wos_paper(fields: Fields) -> Paper:
    row = fields.record
    people = row.get("AF") or row.get("AU") or row.get("CA") or []
    year = row.get("PY", "") or row.get("EA", "")[-4:]  # of early access
    single = {**row, "PY": year, "DT": row.get("DT", "").split(";")[0]}
    return _paper(fields, _WOS_COLUMNS, single, [n for n in people if "anonymous" not in n.lower()])


def _wos_key(row: Mapping[str, Any]) -> str:
    first = next(iter(row.get("AU") or row.get("AF") or []), "")
    return work_key(first, row.get("PY", ""), row.get("VL", ""), row.get("BP") or row.get("AR", ""))


def wos_reference(text: str) -> Reference:
    """Parse a cited reference such as `Smith J, 2001, J ECOL, V89, P12, DOI [10.1/a, 10.1/b]`; parts may be missing."""
    dois = list[str]()
    if match := _DOIS.search(text):
        text, tail = text[: match.start()], match[1].strip()
        parts = (tail[1:].removesuffix("]") if tail.startswith("[") else tail).split(", ")
        matches = (_EACH_DOI.search(part) for part in parts)
        dois = [m[0].rstrip(".") for m in matches if m]
    author, _, rest = text.partition(", ")
    year, volume, page = (pattern.search(f", {rest}") for pattern in (_CITED_YEAR, _VOLUME, _PAGE))
    if not (year and volume and page):
        return dois, ""
    return dois, work_key(author, year[1], volume[1], page[1])


WOS = Format(
    sniff=_is_wos,
    records=_wos_records,
    read=_wos_paper,
    papers=partial(
        _linked,
        _wos_records,
        _wos_paper,
        _wos_key,
        lambda row: [wos_reference(text) for text in row.get("CR", ())],
    ),
)

# --- Scopus

LONGEST = 16_000_000  # characters of a field
LONGEST_REFERENCE = 2_000  # characters
_HEADERS = (frozenset({"Authors", "Title", "EID"}), frozenset({"Title", "References", "Year"}))
_YEAR = re.compile(r"\(([12][0-9]{3})[a-z]?\)")
_AUTHOR = re.compile(r"\s*([^\W\d_][^,;()0-9]*?),?\s+((?:[^\W\d_]\.-?\s?)+)(?=[,;\s]|$)")
_NEW = re.compile(
    r", (?P<volume>\w{0,9}[0-9]\w{0,9})(?:, [^,]+)?, pp?\. (?P<page>\w+)[^,]*, \([12][0-9]{3}[a-z]?\)"
)
_OLD = re.compile(
    r"\([12][0-9]{3}[a-z]?\) [^;]{0,400}?, (?P<volume>\w{0,9}[0-9]\w{0,9})(?: \([^)]*\))?, "
    r"(?:art\. no\. |pp?\. )(?P<page>\w+)"
)
_DOI = re.compile(r"10\.[0-9]{4,9}/[^\s,;]+")
_NUMBERED = re.compile(r"\s*\([0-9]+\)$")  # the id of an author after the name
_SCOPUS_COLUMNS = {
    **{"id": "EID", "title": "Title", "abstract": "Abstract", "year": "Year", "doi": "DOI"},
    **{"venue": "Source title", "url": "Link", "type": "Document Type", "volume": "Volume"},
    **{"issue": "Issue", "first": "Page start", "last": "Page end", "article": "Art. No."},
    "publisher": "Publisher",
}


def _is_scopus(head: bytes, name: str) -> bool:
    line = head_text(head).partition("\n")[0]
    try:
        header = set(next(csv.reader([line]), [])) if "," in line else set[str]()
    except csv.Error:
        return False
    return any(columns <= header for columns in _HEADERS)


def _scopus_records(stream: BinaryIO) -> Rows:
    """Yield the rows of one file with the lines where they begin."""
    csv.field_size_limit(LONGEST)
    with text_stream(stream, newline="") as text:
        rows = csv.reader(text)
        columns = next(rows, [])
        line = rows.line_num + 1
        for row in rows:
            if len(row) == len(columns):
                yield line, dict(zip(columns, row, strict=True))
            elif row:
                yield line, Broken(f"{len(row)} columns; the header has {len(columns)}")
            line = rows.line_num + 1


def _scopus_paper(fields: Fields) -> Paper:
    row = dict(fields.record)
    names = row.get("Author full names") or row.get("Authors", "")
    people = [] if names.startswith("[No author") else _split_names(names)
    if row.get("Abstract", "").startswith("[No abstract"):
        row["Abstract"] = ""
    return _paper(fields, _SCOPUS_COLUMNS, row, [*map(_family_given, people)])


def _family_given(name: str) -> str:
    """Turn `Doe, Jane (57190)` and `Doe J.A.` into `Doe, Jane` and `Doe, J.A.`."""
    name = _NUMBERED.sub("", name)
    match = None if "," in name else _AUTHOR.fullmatch(name)
    return f"{match[1]}, {match[2]}" if match else name


def _split_names(names: str) -> list[str]:
    """Split names at semicolons; older tables separate `Doe J.A., Roe K.` by commas."""
    with_commas = ";" not in names and "." in names.partition(",")[0]
    return re.split(r",\s+" if with_commas else r";\s*", names)


def _scopus_key(row: Mapping[str, Any]) -> str:
    first = _split_names(row.get("Authors", ""))[0]
    page = row.get("Page start") or row.get("Art. No.", "")
    return work_key(first, row.get("Year", ""), row.get("Volume", ""), page)


def _scopus_references(row: Mapping[str, Any]) -> list[Reference]:
    """Parse a column of references: a piece without a year continues in the next, unless that begins with an author."""
    texts: list[str] = []
    for piece in filter(None, map(str.strip, row.get("References", "").split(";"))):
        open_end = texts and not _YEAR.search(texts[-1])
        is_short = texts and len(texts[-1]) + len(piece) <= LONGEST_REFERENCE
        if open_end and is_short and not _AUTHOR.match(piece):
            texts[-1] = f"{texts[-1]}; {piece}"
        else:
            texts.append(piece)
    return [*map(_scopus_reference, texts)]


def _scopus_reference(text: str) -> Reference:
    dois = [match.rstrip(".)") for match in _DOI.findall(text)]
    if len(text) > LONGEST_REFERENCE:
        return dois, ""
    author, years = _AUTHOR.match(text), _YEAR.findall(text)
    place = _NEW.search(text) or _OLD.search(text)
    if not author or not years or not place:
        return dois, ""
    name = f"{author[1]}, {author[2]}"
    return dois, work_key(name, years[-1], place["volume"], place["page"])


SCOPUS = Format(
    sniff=_is_scopus,
    records=_scopus_records,
    read=_scopus_paper,
    papers=partial(_linked, _scopus_records, _scopus_paper, _scopus_key, _scopus_references),
)
