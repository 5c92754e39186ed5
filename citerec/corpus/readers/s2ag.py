"""The dumps of the Semantic Scholar Academic Graph: papers, and next to them abstracts, citations and paper-ids.

The files of a folder are recognised by their keys, and joined on disk. The id of a paper is its corpus id; with the
dump paper-ids it is the sha that the API of Semantic Scholar calls paperId.
Source: https://api.semanticscholar.org/api-docs/datasets.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from citerec.bibliography.doi import doi_of
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.json_stream import first_keys, json_records
from citerec.corpus.readers.nested import inner, number_text, objects, short
from citerec.corpus.readers.streams import Located, Rows, head_of, located, read_file
from citerec.errors import BadInputError, shown
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.corpus.readers.source import Source

_KINDS: Mapping[str, frozenset[str]] = {  # the first whose keys a record has
    "citations": frozenset({"citingcorpusid", "citedcorpusid"}),
    "paper-ids": frozenset({"corpusid", "sha"}),
    "abstracts": frozenset({"corpusid", "abstract"}),
    "papers": frozenset({"corpusid", "title"}),
}
_LARGEST = 2**63 - 1


def sniff(head: bytes, name: str) -> bool:
    """Whether a file is one of these dumps."""
    return _kind(head) is not None


def records(stream: BinaryIO) -> Rows:
    """Yield the records of one file."""
    return json_records(stream)


def papers_on_disk(
    source: "Source", read_bytes: Callable[[int], None], log: Log, scratch: Path | None
) -> Iterator[Located]:
    """Yield the papers of all dumps, in the order of their corpus ids.

    Raises:
        BadInputError: If there is no dump of papers, or a file cannot be read.
        MissingExtraError: If there are dumps to join, and DuckDB is not installed.
    """
    files: dict[str, list[Path]] = {kind: [] for kind in _KINDS}
    for file in source.files:
        if kind := _kind(head_of(file)):
            files[kind].append(file)
        else:
            log(f"left out {file.name}: neither papers nor abstracts, citations or paper-ids")
    if not files["papers"]:
        found = ", ".join(kind for kind in _KINDS if files[kind])
        message = f"the dump of papers is missing; found {found}; put papers into the same folder"
        raise BadInputError(source.path, message)
    for kind in ("abstracts", "citations"):
        if not files[kind]:
            log(f"there is no dump of {kind} in {source.path}: the papers have none")
    if sum(map(bool, files.values())) == 1:
        for file in files["papers"]:
            for line, row in read_file(file, records, read_bytes):
                yield located(file, line, row, read)
        return
    from citerec.corpus.readers.s2ag_join import joined

    yield from joined(files, read_bytes, log, scratch)


def read(fields: Fields) -> Paper:
    """Turn one record of the dump of papers into a paper; what was joined to it has the keys of a canonical one."""
    external, journal = inner(fields, "externalids"), inner(fields, "journal")
    title = fields.record.get("title")
    more = Fields(
        {
            "id": fields.record.get("id") or str(corpus_id(fields)),
            "title": "" if title is None else title,
            "year": fields.record.get("year") or None,
        },
        fields.path,
        fields.line,
    )
    return Paper(
        id=more.id(),
        title=more.title(),
        abstract=fields.text("abstract"),
        year=more.year(),
        authors=tuple(name for a in objects(fields, "authors") if (name := short(a, "name"))),
        venue=fields.text("venue") or short(journal, "name"),
        citations=fields.strings("citations"),
        doi=doi_of(short(external, "DOI")),
        **{
            key: value
            for key, value in fields.bibliographic(type="publicationtypes").items()
            if key in {"url", "type"}
        },
        volume=short(journal, "volume"),
        pages=short(journal, "pages"),
    )


def corpus_id(fields: Fields, key: str = "corpusid") -> int:
    """Return a corpus id, which may be a number or a string of digits.

    Raises:
        BadRecordError: If it is missing or something else.
    """
    if key not in fields.record:
        fields.id(key)  # raises
    text = number_text(fields.record[key])
    if not text.isdecimal() or len(text) > 19 or int(text) > _LARGEST:
        fields.fail(f"{key!r} must be a whole number, found {shown(fields.record[key])}")
    return int(text)


def _kind(head: bytes) -> str | None:
    keys = first_keys(head)
    if not keys.isdisjoint({"id", "_id"}):
        return None
    return next((kind for kind, needed in _KINDS.items() if needed <= keys), None)
