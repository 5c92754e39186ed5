"""What is recorded of the shards of an index, and which of them can be searched.

A folder of shards holds a list of records; each shard is a folder that appears complete or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from citerec.atomic import replacing
from citerec.entries import read_record
from citerec.errors import ClusterError, ConfigError
from citerec.folder import IndexFolder
from citerec.sums import checksums_of, content_faults, files_in, sizes_of
from citerec.types import Log

RECORD = "shard.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """What is recorded of a shard of any kind."""

    name: str  # of its folder
    index: str  # identifies what was divided
    first: int  # row
    end: int  # row after the last one
    sums: Mapping[str, str]  # the sha256 of each file
    sizes: Mapping[str, int]  # bytes

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a record."""
        return cls(**content)

    def is_of(self, index: str, rows: range) -> bool:
        """Whether it is the record of some rows of an index."""
        return (self.index, self.first, self.end) == (index, rows.start, rows.stop)


Record = TypeVar("Record", bound=ShardRecord)


def sealed(folder: Path) -> dict[str, Any]:
    """Return the fields of a record that state the content of the files in a folder."""
    names = [*files_in(folder)]
    return {"sums": checksums_of(folder, names), "sizes": sizes_of(folder, names)}


def write_record(folder: Path, record: ShardRecord) -> None:
    """Write the record of a shard into its folder."""
    (folder / RECORD).write_bytes(orjson.dumps(asdict(record)))


def write_list(path: Path, records: Sequence[ShardRecord]) -> None:
    """Write the records of all shards."""
    with replacing(path) as temporary:
        temporary.write_bytes(orjson.dumps([asdict(record) for record in records]))


def read_list(path: Path, kind: type[Record]) -> list[Record]:
    """Read the records of all shards.

    Raises:
        ClusterError: If there are none, or they cannot be read.
    """
    try:
        found = orjson.loads(read_record(path))
        records = [kind.from_json(content) for content in found]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ClusterError(
            f"{path.parent} has no list of shards that can be read ({error})"
        ) from error
    if not records:
        raise ClusterError(f"{path} lists no shard; build the shards again")
    return records


def complete(folder: Path, kind: type[Record]) -> Record | None:
    """Return the record of a shard that is there and as it was written, else None."""
    try:
        record = kind.from_json(orjson.loads(read_record(folder / RECORD)))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return None if shard_faults(folder.parent, record) else record


def shard_faults(folder: Path, record: ShardRecord) -> list[str]:
    """Compare every file of a shard with its record; return the faults, one line each."""
    if not (folder / record.name).is_dir():
        return ["the folder does not exist"]
    return content_faults(folder / record.name, record.sums, record.sizes, whole=True)


def present(
    folder: Path,
    records: Sequence[Record],
    index: IndexFolder,
    identity: str,
    *,
    allow_missing: bool,
    log: Log | None,
) -> list[Record]:
    """Return the records of the shards that can be searched.

    Args:
        folder: The folder of the shards.
        records: Those of all shards.
        index: The index that was divided.
        identity: What identifies it in a record.
        allow_missing: Whether missing or damaged shards are left out.
        log: Receives a message for each shard that is left out.

    Raises:
        ConfigError: If the shards are of another index.
        ClusterError: If a shard is missing or damaged, unless `allow_missing` is set; if all are.
    """
    rows = sum(record.end - record.first for record in records)
    if any(record.index != identity for record in records) or rows != len(index.papers):
        raise ConfigError(f"{folder} holds shards of another index than {index.path}; build anew")
    faults = {record.name: shard_faults(folder, record) for record in records}
    there = [record for record in records if not faults[record.name]]
    for record in records:
        if not (wrong := faults[record.name]):
            continue
        what = (
            f"{folder / record.name}, one of {len(records)} shards, cannot be searched: {wrong[0]}"
        )
        if not there:
            raise ClusterError(f"{what}, nor can the others; build the shards again")
        if not allow_missing:
            raise ClusterError(
                f"{what}; build the shards again, which keeps the others, or accept partial answers: allow_missing=True"
            )
        if log:
            log(f"{what}; the answers are partial")
    return there
