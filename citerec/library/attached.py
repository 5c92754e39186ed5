"""Finds the files that the records of a BibTeX, RIS or CSL-JSON library name: JabRef's, Zotero's and Mendeley's."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from citerec.bibliography import bibtex, ris
from citerec.corpus.readers.files import json_records, read_file
from citerec.errors import BadInputError
from citerec.files.reading import (
    UNREADABLE,
    damaged,
    decoded,
    open_unpacked,
    read_stream,
)
from citerec.types import Json

TEXTS = (".pdf", ".xml", ".tex", ".nxml", ".tei", ".jats")  # suffixes of whole texts
# Mendeley's backslashes
_BACKSLASH = re.compile(r"\{?\$\\backslash\$\}?|\{?\\textbackslash\s?\}?")
_DRIVE = re.compile(r"(?<![A-Za-z])([A-Za-z]):(?=[\\/])")
_FOLDER = re.compile(
    r"jabref-meta:\s*fileDirectory(?:-[^:;]*)?:([^;]*);", re.IGNORECASE
)
_RIS_FIELDS = ("file_attachments1", "file_attachments2", "figure")
_JSON_FIELDS = ("file", "files", "attachments", "PDF", "pdf")


def attachments(file: Path, format_name: str) -> dict[int, list[str]]:
    """Return the files that records name, as they name them, by the line or number of the record."""
    rows = {"bibtex": _bibtex, "ris": _ris, "csl": _csl}.get(format_name)
    with suppress(BadInputError):  # the reader of the records tells it
        return {line: names for line, names in (rows(file) if rows else ()) if names}
    return {}


def _bibtex(file: Path) -> Iterator[tuple[int, list[str]]]:
    records, _ = bibtex.read_records(_text(file))
    for line, fields in records:
        values = (fields.get(name, "") for name in ("file", "pdf", "localfile"))
        yield line, [name for value in values for name in names_in(value)]


def _ris(file: Path) -> Iterator[tuple[int, list[str]]]:
    for line, fields in ris.read_records(_text(file)):
        values = (fields.get(name, "") for name in _RIS_FIELDS)
        yield line, [name for value in values for name in _whole(value)]


def _csl(file: Path) -> Iterator[tuple[int, list[str]]]:
    for line, row in read_file(file, json_records):
        record: Json = {} if isinstance(row, str) else row
        values = _strings(record.get(name) for name in _JSON_FIELDS)
        yield line, [name for value in values for name in _whole(value)]


def _strings(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _strings(value)
        elif isinstance(value, dict):
            yield from _strings(value.get(key) for key in ("path", "localPath"))


def _text(file: Path) -> str:
    try:
        with open_unpacked(file) as (stream, _):
            return decoded(read_stream(stream, file))[0]
    except UNREADABLE as error:
        raise damaged(file, 0, error) from error


def _whole(name: object) -> list[str]:
    """Return a field that is one name; none if it is not that of a text."""
    is_text = isinstance(name, str) and name.lower().endswith(TEXTS)
    return [name.strip()] if isinstance(name, str) and is_text else []


def names_in(value: str) -> list[str]:
    r"""Return the files in a field of BibTeX: `:a.pdf:PDF`, `Full Text:x.pdf:application/pdf;…`, `C\:\\a.pdf`."""
    value = _BACKSLASH.sub(lambda _: "\\", value)
    # what is escaped is no separator; a drive is none, either
    value = value.replace("\\:", "\0").replace("\\;", "\1").replace("\\_", "_")
    value = _DRIVE.sub("\\1\0", value)
    names: list[str] = []
    for item in re.split(r";", value):
        plain = [
            part.replace("\0", ":").replace("\1", ";").replace("\\\\", "\\").strip()
            for part in re.split(r":(?!//)", item)
        ]
        names += [part for part in plain if part.lower().endswith(TEXTS)][-1:]
    return list(dict.fromkeys(names))


def file_folder(file: Path, format_name: str) -> str:
    """Return the folder of files that JabRef has noted in a BibTeX library; empty for none."""
    match = _FOLDER.search(_text(file)) if format_name == "bibtex" else None
    return match[1].replace("\\:", ":").replace("\\\\", "/").strip() if match else ""


def resolver(file: Path, format_name: str) -> Callable[[str], Path | None]:
    """Return what finds a file that a library names: beside the library, or in the folder that JabRef has noted."""
    # Mendeley leaves out the first slash
    bases = [file.parent, file.parent / file_folder(file, format_name), Path("/")]

    def resolve(name: str) -> Path | None:
        if name.startswith("file:"):
            name = url2pathname(unquote(urlsplit(name).path))
        places = [
            base / part for base in bases for part in (name, name.replace("\\", "/"))
        ]
        return next((place for place in places if _is_file(place)), None)

    return resolve


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or has a NUL
        return False
