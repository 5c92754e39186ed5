"""Corpora of any format: finds their files, recognises the format by its content, and streams the papers.

Other packages add readers by entry points of the group `citerec.readers`, each a `files.Format`.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from citerec.corpus.contents import Content, ContentKind, content_of
from citerec.corpus.readers.files import (
    HEAD,
    SPREAD,
    BytesRead,
    Format,
    Located,
    Source,
    first_record,
    head_of,
    json_records,
    papers_of,
    read_file,
)
from citerec.corpus.readers.json_formats import JSON_FORMATS
from citerec.corpus.readers.libraries import BIBTEX, RIS
from citerec.corpus.readers.pubmed import PUBMED
from citerec.corpus.readers.s2ag import S2AG
from citerec.errors import BadInputError, ConfigError
from citerec.files.checksums import sha256_of as file_sha256
from citerec.files.reading import BOM, other_format, reading
from citerec.plugins import Plugins
from citerec.types import Log, Paper, no_log

__all__ = [
    "FORMATS",
    "Format",
    "Located",
    "Source",
    "detect_format",
    "find_source",
    "read_papers",
]

# The first match wins: canonical is last, since other formats have its keys, too.
FORMATS: Mapping[str, Format] = {
    "bibtex": BIBTEX,
    "ris": RIS,
    "pubmed": PUBMED,
    "s2ag": S2AG,
    **JSON_FORMATS,
}
RECORD_SUFFIXES = {".json", ".jsonl", ".ndjson"}
SIDE_FOLDERS = {"splits", "qrels"}  # folders next to a corpus that hold no papers
# Keys of OpenAlex, Crossref and collections next to their records.
COLLECTION = "collection.json"  # the record of a collected corpus
# after the name of a merged corpus: the file that counts its sources
SOURCES = ".sources.json"
SIDE_FILES = {"manifest", "manifest.json", COLLECTION}
_FETCH = "citerec collect FILE fetches a corpus around these papers"
_NO_CORPUS = {  # what is no corpus, and what to do
    ContentKind.DRAFT: "citerec recommend --query FILE finds what it should cite",
    ContentKind.IDS: _FETCH,
    ContentKind.PRINTED: _FETCH,
    ContentKind.UNREAD: "expected JSON lines in UTF-8, or an export that citerec reads",
}
_OPENING = re.compile(rb'\{[ \t]*"')  # how a record begins
# how a page of an API, or a list of works, begins
_PAGE = re.compile(
    rb'\{\s*"(?:items|meta|message(?:-type)?|status|hitCount|version"\s*:\s*"[0-9.]+",\s*"hitCount)"\s*:'
)


# --- Formats


def _formats() -> dict[str, Format]:
    """Return all formats by name, those of other packages first; citerec's own names keep their meaning."""
    others = {name: Plugins.READERS.load(name) for name in Plugins.READERS.names}
    if wrong := [
        name for name, reader in others.items() if not isinstance(reader, Format)
    ]:
        raise ConfigError(
            f"the reader {wrong[0]!r} must be a citerec.corpus.readers.Format"
        )
    return {**others, **FORMATS}


def recognise(data: bytes, name: str) -> Content:
    """Decide what a file or a pasted text is, by its first bytes; `name` decides only where they leave it open.

    It is the one function that decides so: of a corpus, a list of papers, a draft, an upload, a pasted text.
    """
    head = data[:HEAD]
    plain_name = _plain_name(Path(name))
    record = first_record(head)
    for key, reader in _formats().items():
        if reader.sniff(head, plain_name) or reader.matches(record):
            return Content(ContentKind.RECORDS, key)
    return content_of(data, name)


def _format_of(file: Path, head: bytes) -> str | None:
    """Return the name of the format of a file of a corpus; None if there is none."""
    content = recognise(head, file.name)
    is_known = content.kind is ContentKind.RECORDS and content.format != "json"
    return content.format if is_known else None


def detect_format(source: Source, stated: str = "auto") -> str:
    """Return the stated format of a corpus, for `auto` that of its first file of a known one.

    BadInputError if no file is of a known one.
    """
    if stated != "auto":
        return stated
    unknown: dict[Path, bytes] = {}  # a dump may begin with files that are not needed
    for file in source.files:
        head = head_of(file)
        if not head.removeprefix(BOM).strip():
            list(read_file(file, json_records))  # raises if the file is damaged
        elif name := _format_of(file, head):
            return _joined(source.files, {file: name})[0] or name
        else:
            unknown[file] = head
    if source.path.is_dir() and (joined := _joined(source.files, {})[0]):
        return joined
    for file, head in unknown.items():
        content = recognise(head, file.name)
        if content.kind in _NO_CORPUS:
            raise BadInputError(
                file,
                f"this is {other_format(head) or content}, not a corpus; "
                f"{_NO_CORPUS[content.kind]}",
            )
        keys = ", ".join(sorted(first_record(head))[:6])
        what = f"has these fields: {keys}" if keys else f"begins so: {head[:40]!r}"
        raise BadInputError(
            file,
            f"no format that citerec reads {what}; expected one paper a line as JSON with 'id' and 'title', "
            f"or name the format: --format {'|'.join(_formats())}",
            line=1,
        )
    raise BadInputError(
        source.path, "the corpus is empty; expected one paper a line, as JSON"
    )


def _joined(
    files: Sequence[Path], formats: Mapping[Path, str]
) -> tuple[str, list[Path]]:
    """Return the format that files have together, such as records with whole texts, and which these are; else empty."""
    for name, reader in _formats().items():
        if joined := reader.joins(files, formats):
            return name, joined
    return "", []


def read_papers(
    source: Source,
    format_name: str,
    on_bytes: BytesRead = lambda more: None,
    log: Log = no_log,
) -> Iterator[Located]:
    """Yield every record of a corpus, in order, as a paper or as the fault of the record.

    `on_bytes` receives from time to time how many more bytes were read, `log` what the format lacks. BadInputError if a
    file cannot be read to its end: truncated, damaged, or not text; ConfigError if there is no such format.
    """
    formats = _formats()
    if format_name not in formats:
        raise ConfigError(f"no format {format_name!r}; there are: {', '.join(formats)}")
    reader = formats[format_name]
    has_papers = False
    if reader.papers:
        records = reader.papers(source, on_bytes, log)
    else:
        records = papers_of(source.files, reader.read, on_bytes, log, reader.records)
    for record in records:
        has_papers = has_papers or isinstance(record.paper, Paper)
        yield record
    if has_papers and reader.note:
        log(reader.note)


# --- Files


def find_source(path: Path) -> Source:
    """Find the files of the corpus at `path`, a file or a folder of shards.

    BadInputError if there is nothing to read, or `path` is an index folder.
    """
    with reading(path):
        if not path.exists():
            raise BadInputError(
                path, "no such file or folder; name a corpus file or folder"
            )
        if path.is_file():
            return Source(path, (path,))
        if not path.is_dir():
            raise BadInputError(
                path, "neither a file nor a folder; a corpus is read several times"
            )
        if _is_index(path):
            raise BadInputError(
                path, "this is an index, not a corpus; name what it was built from"
            )
        files = _files(path)
        by_name = {_plain_name(file): file for file in files if file.parent == path}
        # beside it may be queries, as in BEIR's layout, or whole texts
        if "corpus.jsonl" in by_name:
            shards = [by_name["corpus.jsonl"]]
        else:
            shards = [file for file in files if _holds_records(file)] or _of_one_format(
                path, files
            )
    if not shards:
        raise BadInputError(
            path,
            "no corpus file in this folder; expected JSONL files, plain or as .gz .zst "
            ".bz2, or an export or library that citerec reads",
        )
    return Source(
        path, tuple(shards), tuple(file for file in files if file not in {*shards})
    )


def _is_index(folder: Path) -> bool:
    return (folder / "manifest.json").is_file() and (folder / "papers.arrow").is_file()


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder, in order, except for hidden ones, side folders and indexes."""
    indexes = {
        arrow.parent
        for arrow in folder.rglob("papers.arrow")
        if _is_index(arrow.parent)
    }
    return [
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and not any(
            part.startswith((".", "_")) or part in SIDE_FOLDERS
            for part in file.relative_to(folder).parts
        )
        and indexes.isdisjoint(file.parents)
    ]


def _holds_records(file: Path) -> bool:
    """Whether a file of a folder holds JSON records: by its name, else by its first bytes."""
    name = Path(_plain_name(file))
    head = head_of(file).removeprefix(BOM).lstrip()
    if name.name in SIDE_FILES or name.name.endswith(SOURCES):
        return False
    if name.suffix in RECORD_SUFFIXES:
        is_spread = (
            name.suffix == ".json" and SPREAD.match(head) and not _PAGE.match(head)
        )
        return file.stat().st_size > 0 and not is_spread
    return _OPENING.match(head) is not None


def _of_one_format(folder: Path, files: list[Path]) -> list[Path]:
    """Return the files of a folder that are in a known format, not READMEs; BadInputError if they are in several."""
    files = [file for file in files if file.stem.upper() != "README"]
    formats = {
        file: name for file in files if (name := _format_of(file, head_of(file)))
    }
    if joined := _joined(files, formats)[1]:
        return joined
    examples = {name: file.name for file, name in reversed(formats.items())}
    if len(examples) > 1:
        listed = " and ".join(f"{name} ({examples[name]})" for name in sorted(examples))
        raise BadInputError(
            folder,
            f"this folder holds files of several formats: {listed}; name one of them, or "
            "join them: citerec corpus merge A B -o papers.jsonl",
        )
    return list(formats)


def _plain_name(file: Path) -> str:
    """Return the name of a file without the suffix of its compression."""
    return (
        file.with_suffix("").name
        if file.suffix in {".gz", ".zst", ".bz2"}
        else file.name
    )


def size_of(source: Source) -> int:
    """Return the size of a corpus in bytes, compressed files as they are."""
    with reading(source.path):
        return sum(file.stat().st_size for file in source.files)


def sha256_of(source: Source) -> str:
    """Return the sha256 of a corpus: of its file, or of the list of its shards' checksums."""
    with reading(source.path):
        sums = [(file_sha256(path), path.name) for path in source.files]
    if len(sums) == 1:
        return sums[0][0]
    listing = "".join(f"{digest}  {name}\n" for digest, name in sums)
    return hashlib.sha256(os.fsencode(listing)).hexdigest()
