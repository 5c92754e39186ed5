"""Divides the papers of an index into shards, which workers write in parallel."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from citerec.distributed.cluster import Cluster
from citerec.distributed.pool import Pool, Work
from citerec.distributed.records import Record, write_list
from citerec.errors import ConfigError, writing
from citerec.types import Log


def split_rows(papers: int, shards: int) -> list[range]:
    """Divide rows into parts of nearly the same number, in order.

    Raises:
        ConfigError: If there are fewer papers than shards, or no shard.
    """
    if not 1 <= shards <= papers:
        raise ConfigError(f"{papers:,} papers cannot be divided into {shards:,} shards")
    ends = [papers * number // shards for number in range(shards + 1)]
    return [range(first, end) for first, end in pairwise(ends)]


def write_shards(
    path: Path,
    parts: Sequence[range],
    cluster: Cluster,
    make: Callable[[], Work[tuple[int, range], Record]],
    log: Log | None,
) -> list[Record]:
    """Write shards in parallel, then the list of their records; return the records.

    Args:
        path: The list; its folder, which is created, is that of the shards.
        parts: The rows of each shard.
        cluster: Where they are written.
        make: Called once in each worker; returns what writes a shard: its number and rows in, its record out.
        log: Receives a message for each lost worker.

    Raises:
        ClusterError: If a worker cannot write a shard, or too many workers are lost.
    """
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with Pool[tuple[int, range], Record](cluster, make, log=log) as pool:
            records = list(pool.in_order(enumerate(parts)))
        write_list(path, records)
    return records
