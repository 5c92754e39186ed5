"""A file of references that is extended: read, checked, and replaced as a whole with a backup."""

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import orjson

from citerec.bibliography import bibtex
from citerec.bibliography.record import Record
from citerec.bibliography.source import Kind, decode, kind_of, refuse_long
from citerec.errors import BadInputError, OutputError, writing
from citerec.inputs import BOM, read_stream, reading
from citerec.io import replacing

_KINDS = {
    ".bib": Kind.BIBTEX, ".bibtex": Kind.BIBTEX, ".ris": Kind.RIS,
    ".json": Kind.JSON, ".csl": Kind.JSON,
}  # fmt: skip
_READS = "expected BibTeX, RIS or CSL-JSON"
_ADVICE = "name a .bib, .ris or CSL .json file"
_COMMENTS = re.compile(r"(?:[ \t]*(?:%[^\n]*)?\n?)*")
_RIS_TAG = re.compile(r"(TY|ER) {1,2}-(?: |$)")


@dataclass(frozen=True, slots=True)
class ReferenceFile:
    """A file of references as it was read."""

    name: Path  # as the user gave it
    path: Path  # where it is: links are followed
    kind: Kind  # JSON is CSL-JSON
    data: bytes = b""
    mode: int | None = None  # permissions; None if there is no such file yet

    @property
    def exists(self) -> bool:
        """Whether there was such a file."""
        return self.mode is not None

    @property
    def text(self) -> str:
        r"""The content with lines ended by `\n`; empty if it is blank."""
        return "" if _is_blank(self.data) else decode(self.data, self.name, reads=_READS)

    @property
    def backup(self) -> Path:
        """The file that keeps the former content."""
        return self.path.with_name(f"{self.path.name}.bak")

    def replace(self, data: bytes) -> None:
        """Write new content; the former content is kept in `backup`, and the permissions stay.

        Raises:
            OutputError: If the file was changed since it was read, or it or its backup cannot be written.
        """
        if self.exists:
            self._refuse_changed()
            _write(self.backup, self.data, self.mode)
        with writing(self.name), replacing(self.path, self.name) as temporary:
            _fill(temporary, data, self.mode)
            self._refuse_changed()

    def _refuse_changed(self) -> None:
        with writing(self.name):
            now = self.path.read_bytes() if self.path.exists() else None
        if now != (self.data if self.exists else None):
            raise OutputError(
                f"{self.name} was changed meanwhile; nothing was added, run this again"
            )


def read_reference_file(name: Path) -> ReferenceFile:
    """Read a file of references that is to be extended; one that does not exist is empty.

    Its content decides the format; for an empty one the suffix does.

    Raises:
        BadInputError: If it cannot be read, is of another format, or one of its entries is broken.
        OutputError: If it cannot be written: read-only, a folder, a device, in no folder.
    """
    with writing(name):
        path = Path(os.path.realpath(name))
        status = _status(name, path)
    if status is None:
        return ReferenceFile(name, path, _by_suffix(name))
    with reading(name), path.open("rb") as stream:
        data = read_stream(stream, name)
    kind = _by_suffix(name) if _is_blank(data) else _kind(decode(data, name, reads=_READS), name)
    file = ReferenceFile(name, path, kind, data, stat.S_IMODE(status.st_mode))
    _refuse_broken(file)
    return file


def _status(name: Path, path: Path) -> os.stat_result | None:
    """Return the status of a file that can be replaced; None if there is none.

    Raises:
        OutputError: If it cannot be replaced.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise OutputError(f"cannot write {name}: there is no folder {path.parent}") from None
        return None
    except ValueError:  # a NUL in the path
        raise OutputError(f"cannot write {str(name)!r}: this is not the name of a file") from None
    if not stat.S_ISREG(status.st_mode):
        what = "it is a folder" if path.is_dir() else "it is not a regular file"
        raise OutputError(f"cannot write {name}: {what}; {_ADVICE}")
    if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise OutputError(f"cannot write {name}: it is read-only; allow it: chmod u+w {name}")
    return status


def _by_suffix(name: Path) -> Kind:
    kind = _KINDS.get(name.suffix.lower())
    if kind is None:
        raise OutputError(f"cannot write {name}: its format is not known; {_ADVICE}")
    return kind


def _kind(text: str, name: Path) -> Kind:
    kind = kind_of(text)
    if kind is not Kind.TEXT:
        refuse_long(text, kind, name)
        return kind
    if _KINDS.get(name.suffix.lower()) is Kind.BIBTEX and _COMMENTS.fullmatch(text):
        return Kind.BIBTEX
    raise BadInputError(name, f"this is plain text, {_READS}; {_ADVICE}")


def _is_blank(data: bytes) -> bool:
    return not data.removeprefix(BOM).strip()


@lru_cache(
    maxsize=2
)  # parsing takes a second per megabyte, and a file is looked at before and after the work
def bibtex_records(text: str) -> tuple[list[Record], list[bibtex.Broken]]:
    """Return the entries and the broken blocks of BibTeX, as `bibtex.read_records` does."""
    return bibtex.read_records(text)


def _refuse_broken(file: ReferenceFile) -> None:
    """Raise for a file that new entries must not be added to, because it has a broken one."""
    text = file.text
    match file.kind:
        case Kind.BIBTEX:
            _, broken = bibtex_records(text)
            for fault in broken[:1]:
                raise BadInputError(
                    file.name, f"{fault.fault}; nothing was added, repair it first", line=fault.line
                )
        case Kind.RIS:
            _refuse_open_record(text, file.name)
        case _:
            _refuse_other_json(text, file.name)


def _refuse_open_record(text: str, name: Path) -> None:
    """Raise if a record of RIS has no end."""
    begun = 0
    for number, line in enumerate([*text.split("\n"), "TY  -"], start=1):
        tag = _RIS_TAG.match(line)
        if tag and tag[1] == "TY" and begun:
            fault = "this record has no end, a line 'ER  - '"
            raise BadInputError(name, f"{fault}; nothing was added, repair it first", line=begun)
        if tag:
            begun = number if tag[1] == "TY" else 0


def _refuse_other_json(text: str, name: Path) -> None:
    """Raise if JSON is not a list of CSL items."""
    if not text:
        return
    try:
        items = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        fault = f"this is not valid JSON: {error.msg} (column {error.colno})"
        raise BadInputError(name, f"{fault}; nothing was added", line=error.lineno) from None
    if not isinstance(items, list):
        raise BadInputError(name, "this is JSON, but not a list; CSL-JSON is a list of items")
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            fault = f"item {number} of the list has no type, so this is not CSL-JSON"
            raise BadInputError(name, f"{fault}; nothing was added")


def _write(path: Path, data: bytes, mode: int | None) -> None:
    with writing(path), replacing(path) as temporary:
        _fill(temporary, data, mode)


def _fill(path: Path, data: bytes, mode: int | None) -> None:
    """Write a new file with some permissions, down to the disk."""
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    if mode is not None:
        path.chmod(mode)
