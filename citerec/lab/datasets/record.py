"""`SOURCE.json`: where the files of a dataset came from, their checksums, and what was made of them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import orjson

from citerec.errors import BadInputError, writing
from citerec.lab.datasets.dataset import DIGEST, DatasetError, RemoteFile
from citerec.manifest import sha256_of

NAME = "SOURCE.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedFile:
    """One file as it was got."""

    origin: str  # its URL, or where it lay
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """What is known of a dataset that was fetched."""

    dataset: str
    title: str
    licence: str
    citation: str
    fetched: str  # ISO 8601, UTC
    citerec: str  # version that prepared it
    files: Mapping[str, FetchedFile]
    counts: Mapping[str, int]
    without: Mapping[str, int] = field(default_factory=dict[str, int])  # train queries left out

    def leaving_out(self, name: str, queries: int) -> "DatasetRecord":
        """Return the record of the same dataset with so many train queries left out because of `name`."""
        return replace(self, without={**self.without, name: queries})


def read_record(folder: Path) -> DatasetRecord | None:
    """Read the record of a dataset's folder, None if there is none.

    Raises:
        BadInputError: If it cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        content: Any = orjson.loads(path.read_bytes())
        files = {name: FetchedFile(**got) for name, got in content.pop("files").items()}
        record = DatasetRecord(**content, files=files)
        _check_types(record)
        return record
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise BadInputError(
            path, f"is no record of a dataset ({error}); remove {folder} and fetch it again"
        ) from error


def _check_types(record: DatasetRecord) -> None:
    """Refuse what was not written here.

    Raises:
        TypeError: If a field is of another type than it says.
    """
    texts = (record.dataset, record.title, record.licence, record.citation, record.fetched)
    texts = (*texts, record.citerec, *(t for got in record.files.values() for t in _texts(got)))
    numbers = (*_numbers(record.counts, "counts"), *_numbers(record.without, "without"))
    numbers = (*numbers, *(got.bytes for got in record.files.values()))
    for value, kind in (*((t, str) for t in texts), *((n, int) for n in numbers)):
        if not isinstance(value, kind):
            raise TypeError(f"found {value!r:.40}, expected {kind.__name__}")


def _texts(got: FetchedFile) -> tuple[Any, ...]:
    return got.origin, got.sha256


def _numbers(counts: Any, name: str) -> list[Any]:
    if not isinstance(counts, dict):
        raise TypeError(f"{name} is {counts!r:.40}, expected names and numbers")
    return [*cast("dict[str, Any]", counts).values()]


def write_record(folder: Path, record: DatasetRecord) -> None:
    """Write a record, whole or not at all; over several lines, which no corpus reader takes for a paper."""
    beside = folder / f".{NAME}.new"
    with writing(folder / NAME):
        beside.write_bytes(orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2) + b"\n")
        beside.replace(folder / NAME)


def check(path: Path, remote: RemoteFile, first: DatasetRecord | None) -> str:
    """Return the sha256 of a file, held against what its makers state and what was fetched first.

    Raises:
        DatasetError: If it is another file than either.
    """
    sha256 = sha256_of(path)
    if remote.md5 and (md5 := _md5(path)) != remote.md5:
        raise _other(path, "md5", md5, remote.md5, "as its makers state")
    if remote.sha256 and sha256 != remote.sha256:
        raise _other(path, "sha256", sha256, remote.sha256, "as its makers state")
    if first and remote.name in first.files and sha256 != first.files[remote.name].sha256:
        expected = first.files[remote.name].sha256
        raise _other(path, "sha256", sha256, expected, f"as fetched first, {first.fetched[:10]}")
    return sha256


def _other(path: Path, kind: str, found: str, expected: str, why: str) -> DatasetError:
    assert kind in DIGEST
    return DatasetError(
        f"{path} has {kind} {found}, expected {expected}, {why}; remove it and fetch it again"
    )


def _md5(path: Path) -> str:
    import hashlib

    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
