"""`SOURCE.json`: the origin and checksums of the files of a dataset, and the counts of the prepared corpus."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from citerec.atomic import replacing
from citerec.errors import BadInputError, ConfigError, writing
from citerec.lab.datasets.dataset import DIGEST, DatasetError, RemoteFile
from citerec.manifest import sha256_of
from citerec.settings import settings_from

NAME = "SOURCE.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedFile:
    """A fetched file."""

    origin: str  # its URL or path
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """The record of a fetched dataset."""

    dataset: str
    title: str
    licence: str
    citation: str
    fetched: str  # ISO 8601, UTC
    citerec: str  # version that prepared it
    files: Mapping[str, FetchedFile]
    counts: Mapping[str, int]
    without: Mapping[str, int] = field(
        default_factory=dict[str, int]
    )  # dropped train queries, by held-out dataset

    def leaving_out(self, name: str, queries: int) -> "DatasetRecord":
        """Return the record with the number of train queries dropped because of dataset `name`."""
        return replace(self, without={**self.without, name: queries})


def read_record(folder: Path) -> DatasetRecord | None:
    """Read the record of a dataset folder; None if there is none.

    Raises:
        BadInputError: If it cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        return settings_from(DatasetRecord, orjson.loads(path.read_bytes()))
    except (OSError, orjson.JSONDecodeError, ConfigError) as error:
        raise BadInputError(
            path, f"is no valid dataset record ({error}); remove {folder} and fetch it again"
        ) from error


def write_record(folder: Path, record: DatasetRecord) -> None:
    """Write a record as a whole, over several lines, so that no corpus reader takes it for a paper."""
    with writing(folder / NAME), replacing(folder / NAME) as temporary:
        temporary.write_bytes(orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2) + b"\n")


def check(path: Path, remote: RemoteFile, first: DatasetRecord | None) -> str:
    """Return the sha256 of a file, after comparing it with the stated checksums and an earlier fetch.

    Raises:
        DatasetError: If it differs from either.
    """
    sha256 = sha256_of(path)
    if remote.md5 and (md5 := _md5(path)) != remote.md5:
        raise _other(path, "md5", md5, remote.md5, "as its authors state")
    if remote.sha256 and sha256 != remote.sha256:
        raise _other(path, "sha256", sha256, remote.sha256, "as its authors state")
    if first and remote.name in first.files and sha256 != first.files[remote.name].sha256:
        expected = first.files[remote.name].sha256
        raise _other(path, "sha256", sha256, expected, f"as fetched on {first.fetched[:10]}")
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
