"""Web of Science exports: plain text with tags, and tables separated by tabs; cited references are linked.

The tags: https://images.webofknowledge.com/images/help/WOS/hs_wos_fieldtags.html.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from citerec.corpus.linking import Reference, work_key
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.library import library_paper
from citerec.corpus.readers.linked import linked_papers
from citerec.corpus.readers.streams import Broken, Located, Rows, head_text, text_lines
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

LONGEST = 8_000_000  # characters of a record
_LISTS = frozenset({"AU", "AF", "CR", "BA", "BF", "CA", "GP", "BE"})  # a value per line
_TAG = re.compile(r"([A-Z][A-Z0-9]) (.*)|(E[RF])\s*$")
_TEXT = re.compile(
    r"FN (?:ISI|Clarivate|Thomson|Web of)|(?:FN [^\n]*\n)?(?:VR [^\n]*\n)?PT [A-Z]\s*\n[A-Z]"
)
_COLUMNS = frozenset({"PT", "AU", "TI", "UT"})
_YEAR = re.compile(r"[12][0-9]{3}")
_CITED_YEAR = re.compile(r"^(?:, [^,]*)?, ([12][0-9]{3})(?=,|$)")  # an author may have a comma
_VOLUME = re.compile(r", V([0-9A-Z]*[0-9][0-9A-Z]*)(?=,|$)")
_PAGE = re.compile(r", (?:P|ARTN |ART )([^\s,]+)(?=,|$)")
_DOI = re.compile(r",\s*DOI\s+(.+)$")
_EACH_DOI = re.compile(r"10\.[0-9]{4,9}/\S+")


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is of this format: its first line is that of an export, or a table with its tags."""
    text = head_text(head).lstrip().replace("\r\n", "\n")
    columns = text.partition("\n")[0].strip().split("\t")
    return bool(_TEXT.match(text)) or (columns[0] == "PT" and set(columns) >= _COLUMNS)


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file with their lines, as tags and values; authors and references are lists."""
    lines = ((number, line) for number, line in text_lines(stream) if line.strip())
    if (first := next(lines, None)) is None:
        return
    if first[1].startswith("PT\t"):
        yield from _table(first[1].rstrip("\t").split("\t"), lines)
    else:
        yield from _tagged(first, lines)


def _table(columns: list[str], lines: Iterator[tuple[int, str]]) -> Rows:
    for number, line in lines:
        values = line.split("\t")
        while len(values) > len(columns) and not values[-1]:
            values.pop()
        if len(values) != len(columns):
            yield number, Broken(f"{len(values)} columns; the header has {len(columns)}")
            continue
        yield (
            number,
            {
                tag: re.split(r";\s+", value) if tag in _LISTS else value
                for tag, value in zip(columns, values, strict=True)
                if value
            },
        )


def _tagged(first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> Rows:
    start, tag, length = 0, "", 0
    record: dict[str, list[str]] = {}
    for number, line in _chained(first, lines):
        match = None if line.startswith("   ") else _TAG.match(line.rstrip() + " ")
        if match and (match[3] or match[1] in {"PT", "FN", "EF", "ER"}):
            if record:
                yield start, _joined(record, length)
            start, tag, record, length = number, match[1] or "", {}, 0
            if tag == "PT":
                record["PT"] = [match[2].strip()]
            continue
        if not record:  # FN, VR, and what follows ER
            continue
        length += len(line)
        if match:
            tag = match[1]
        if length <= LONGEST:
            record.setdefault(tag, []).append((match[2] if match else line).strip())
    if record:
        yield start, _joined(record, length)


def _chained(first: tuple[int, str], lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from lines


def _joined(record: Mapping[str, list[str]], length: int) -> Mapping[str, Any] | Broken:
    if length > LONGEST:
        return Broken(f"a record of over {LONGEST:,} characters; expected ER at its end")
    return {tag: v if tag in _LISTS else " ".join(v) for tag, v in record.items()}


def papers(source: "Source", done: Callable[[int], None], log: Log) -> Iterator[Located]:
    """Yield every record of an export with its references linked."""
    yield from linked_papers(source, records, read, _key, _references, done, log)


def read(fields: Fields) -> Paper:
    """Turn one record into a paper, without its references; its id is the accession number of WoS."""
    row = fields.record
    pages = "-".join(filter(None, (row.get("BP", ""), row.get("EP", "")))) or row.get("AR", "")
    people = row.get("AF") or row.get("AU") or row.get("CA") or []
    year = _YEAR.search(row.get("PY", "") or row.get("EA", ""))
    return library_paper(
        fields,
        ids=[row.get("UT", ""), row.get("DI", "")],
        title=row.get("TI", ""),
        abstract=row.get("AB", ""),
        year=int(year[0]) if year else None,
        authors=[_first_last(name) for name in people if "anonymous" not in name.lower()],
        venue=row.get("SO", ""),
        doi=row.get("DI", ""),
        type=row.get("DT", "").split(";")[0],
        volume=row.get("VL", ""),
        issue=row.get("IS", ""),
        pages=pages,
        publisher=row.get("PU", ""),
    )


def _first_last(name: str) -> str:
    family, _, given = name.partition(",")
    return f"{given.strip()} {family.strip()}".strip()


def _key(row: Mapping[str, Any]) -> str:
    first = next(iter(row.get("AU") or row.get("AF") or []), "")
    return work_key(first, row.get("PY", ""), row.get("VL", ""), row.get("BP") or row.get("AR", ""))


def _references(row: Mapping[str, Any]) -> list[Reference]:
    return [cited_reference(text) for text in row.get("CR", ())]


def cited_reference(text: str) -> Reference:
    """Parse a cited reference such as `Smith J, 2001, J ECOL, V89, P12, DOI [10.1/a, 10.1/b]`; parts may be missing."""
    dois: tuple[str, ...] = ()
    if match := _DOI.search(text):
        text = text[: match.start()]
        tail = match[1].strip()
        several = (
            tail[1:].removesuffix("]").split(", ") if tail.startswith("[") else tail.split(", ")
        )
        found = (_EACH_DOI.search(part) for part in several)
        dois = tuple(dict.fromkeys(m[0].rstrip(".") for m in found if m))
    author, _, rest = text.partition(", ")
    year, volume, page = (pattern.search(f", {rest}") for pattern in (_CITED_YEAR, _VOLUME, _PAGE))
    if not (year and volume and page):
        return Reference(dois)
    return Reference(dois, work_key(author, year[1], volume[1], page[1]))
