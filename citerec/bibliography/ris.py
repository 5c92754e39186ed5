"""Reads papers from RIS and other formats of tagged lines, whose tags have the names that rispy gives those of RIS.

The other formats are PubMed's `.nbib`, EndNote's `.enw` and the plain text of Web of Science: `tagged.toml` has their
tags. The records are not parsed by rispy: it needs quadratic time for a value of many lines, and drops a record without
an end tag; of the other formats it knows that of Web of Science alone.
"""

import re
from functools import partial
from itertools import accumulate
from operator import itemgetter
from pathlib import Path

from citerec.bibliography.entry import Entry, first_year, is_preprint
from citerec.bibliography.keys import arxiv_dois, dois_of
from citerec.display import shortened
from citerec.files.reading import read_toml
from citerec.types import Json

_TAGGED = [*read_toml(Path(__file__).with_name("tagged.toml")).values()]
# how a text in another format than RIS begins
TAGGED = rf"\A\s*(?:{'|'.join(map(itemgetter('begin'), _TAGGED))})"

_ONE_SPACE = re.compile(r"^([A-Z][A-Z0-9]) -(?= |$)", re.MULTILINE)
# with rispy's rule for a tag, and its names
_RIS: Json = {
    "start": r"^TY  -(?= |$)",
    "first": "TY",
    "tag": r"\n([A-Z][^a-z\n])  -.?",
    # the first author may have another tag than the others; of Web of Science
    "names": {"A1": "AU", "PU": "PB"},
}
_LINKS = re.compile(r"\n|;\s*(?=\w+:|www\.|10\.)")  # a DOI may have a semicolon
# no part of a name: an address of mail, or what Lens writes where a given name is missing
_NO_NAME = re.compile(r"(?<![\s,;(<])[\s,;(<]++[^\s,;(<@]++@[^\s,;]+|, null\Z")
_MORE = ("BT", "CT", "L3")  # tags that rispy does not know
# Zotero's order
_TITLES = ("title", "primary_title", "CT")
_VENUES = "secondary_title alternate_title3 journal_name alternate_title2 alternate_title1".split()
_DOIS = "doi L3 type_of_work".split()
_ADDRESSES = "urls file_attachments1 file_attachments2 id".split()


def read_records(text: str) -> list[tuple[int, Json]]:
    """Read line and fields of every record; one without an end tag is read, too."""
    formats = (
        tagged for tagged in _TAGGED if re.match(rf"\s*(?:{tagged['begin']})", text)
    )
    tagged = next(formats, _RIS)
    start = re.compile(tagged["start"], re.MULTILINE)
    if not start.search(text):  # some programs write one space before the dash
        text = _ONE_SPACE.sub(r"\1  -", text)
    preamble, *records = start.split(text)
    lines = accumulate(
        (part.count("\n") for part in records), initial=preamble.count("\n") + 1
    )
    # not strict: the last line is where a next record would begin
    fields = (_fields(record, tagged) for record in records)
    return list(zip(lines, fields, strict=False))


def _fields(text: str, tagged: Json) -> Json:
    """Return the fields of a record whose text begins after its first tag; of a repeated text the first counts."""
    from rispy import RisParser

    first, *pieces = re.split(tagged["tag"], text)
    values = {tagged["first"]: [first.partition("\n")[0].strip()]}
    for own_tag, value in zip(pieces[::2], pieces[1::2], strict=True):
        names = tagged["names"]
        tag = names.get(own_tag, own_tag if tagged is _RIS else "")
        is_repeated = tag in values and tag not in (*RisParser.DEFAULT_LIST_TAGS, "L3")
        if tag == "ER":
            break
        if (tag in RisParser.DEFAULT_MAPPING or tag in _MORE) and not is_repeated:
            parts = _LINKS.split(value) if tag == "UR" else value.split("\n")
            values.setdefault(tag, []).extend(map(str.strip, parts))
    return {
        RisParser.DEFAULT_MAPPING.get(tag, tag): parts
        if tag in RisParser.DEFAULT_LIST_TAGS
        else " ".join(filter(None, parts))
        for tag, parts in values.items()
    }


def first_text(fields: Json, *names: str) -> str:
    """Return the first of the named fields that has text, with lists joined; else an empty string."""
    texts = (
        v if isinstance(v := fields.get(name, ""), str) else " ".join(v)
        for name in names
    )
    return next(filter(None, texts), "")


def to_entry(line: int, fields: Json) -> Entry:
    """Return a record as an entry; one that is unpublished and names no venue is a preprint."""
    text = partial(first_text, fields)
    kind = text("type_of_reference")
    title = text(*_TITLES)
    venue = text(*_VENUES)
    if kind.upper().endswith("BOOK"):
        title = title or text("BT")
    else:
        venue = text("BT") or venue
    if kind in {"CONF", "CPAPER"}:
        venue = venue or text("custom3")  # the title of the proceedings
    stated = [text(name) for name in _DOIS]
    addresses = [*stated, *(text(name) for name in _ADDRESSES)]
    links = " ".join(addresses)
    remarks = map(text, ("publisher", "note", "notes"))
    unpublished = is_preprint(kind.lower(), venue, remarks, addresses)
    preprints = arxiv_dois(links)
    # a link may be that of another work
    dois = (
        dois_of(" ".join(stated))
        or dois_of(links)
        or dois_of(text("notes"))
        or (preprints if unpublished else ())
    )
    ids = (text("id"), text("accession_number"), stated[0], *dois)
    people = fields.get("authors") or fields.get("first_authors", ())
    return Entry(
        ids=tuple(filter(None, map(str.strip, ids))),
        title=title,
        abstract=text("abstract", "notes_abstract"),
        year=first_year(text("year", "publication_year", "date")),
        authors=tuple(dict.fromkeys(map(_first_last, filter(None, people)))),
        venue=venue,
        key=text("id").strip(),
        has_citation_key=True,
        dois=dois,
        preprints=preprints,
        is_preprint=unpublished,
        line=line,
        label=f"record {shortened(title, 60)!r}" if title else "this record",
    )


def _first_last(name: str) -> str:
    """Turn `Last, First, Jr.` into `First Last Jr.`."""
    last, *rest = (part.strip() for part in _NO_NAME.sub("", name).split(","))
    return " ".join([*rest[:1], last, *rest[1:]])
