"""Finds the files that the records of a BibTeX, RIS or CSL-JSON library name: JabRef's, Zotero's and Mendeley's."""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from citerec.bibliography import bibtex, ris
from citerec.corpus.readers.files import Rows, json_records, read_file
from citerec.errors import BadInputError
from citerec.files.atomic import is_regular
from citerec.files.reading import decoded, read_stream, reading

# fields that name files, by the format of the list
FIELDS = {
    "bibtex": ("file",),
    "ris": ("file_attachments1", "file_attachments2"),
    "csl": ("file",),
}
_TEXTS = (".pdf", ".xml", ".tex", ".nxml", ".tei", ".jats")  # suffixes of whole texts
# of the library, a user, or a user on a machine
_JABREF = re.compile(r"jabref-meta:\s*fileDirectory[^:]*:([^;]*);")
# Mendeley's backslashes
_BACKSLASH = re.compile(r"\{?\$\\backslash\$\}?|\{?\\textbackslash\s?\}?")


def attachments(file: Path, format_name: str) -> dict[int, list[str]]:
    """Return the files that records name, by the line or number of the record; none for another format."""
    if format_name not in FIELDS:
        return {}

    def records(stream: BinaryIO) -> Rows:
        if format_name == "csl":
            return json_records(stream)
        text = decoded(read_stream(stream, file))[0]
        if format_name == "ris":
            return iter(ris.read_records(text))
        return iter(bibtex.read_records(text)[0])

    found: dict[int, list[str]] = {}
    with suppress(BadInputError):  # the reader of the records tells it
        for line, row in read_file(file, records):
            fields = {} if isinstance(row, str) else row
            values = [f"{fields.get(name)}" for name in FIELDS[format_name]]
            if format_name == "bibtex":
                values = names_in(*values)
            if names := [name for name in values if is_text(name)]:
                found[line] = names
    return found


def names_in(value: str) -> list[str]:
    r"""Return the files in a field: `:a.pdf:PDF`, `Full Text:x.pdf:application/pdf;…`, `C\:\\a.pdf`, `a.pdf`."""
    value = _BACKSLASH.sub(lambda _: "\\", value)
    names: list[str] = []
    for item in re.split(r"(?<!\\);", value):
        parts = re.split(r"(?<!\\):(?!//)", item)
        plain = [re.sub(r"\\(.)", r"\1", part).strip() for part in parts]
        names += [part for part in plain if is_text(part)][-1:]
    return list(dict.fromkeys(names))


def is_text(name: str) -> bool:
    """Whether a file may be a whole text, by its name."""
    return name.lower().endswith(_TEXTS)


def folders_of(file: Path) -> list[Path]:
    """Return where the files that a library names may be: beside it, in JabRef's folders, anywhere."""
    stated = list[str]()
    if file.suffix == ".bib":
        with reading(file):
            stated = _JABREF.findall(file.read_bytes().decode("utf-8", "replace"))
    # Mendeley leaves out the first slash
    return [file.parent, *(file.parent / name.strip() for name in stated), Path("/")]


def found_file(name: str, folders: Sequence[Path]) -> Path | None:
    """Return the file that a library names, in the first of the folders that has it; None if it is missing."""
    if name.startswith("file:"):
        name = url2pathname(urlsplit(name).path)
    places = (base / name.replace("\\", "/") for base in folders)
    return next(filter(is_regular, places), None)
