"""The postings of an index in shards, each of some papers: written in parallel, opened where there is memory for them.

    shards.json          the index, and the record of each shard
    shard-00000/         rows of papers 0 to n
        shard.json       its record: its rows, what Lucene counts in it, its checksums
        rows.npy         int32, shape (documents,): the row of each document in the index, rising
        years.npy        int32, shape (documents,): the year of each, as in the index
        postings/<key>/  see `citerec.index.postings`

Scores use the statistics of all shards, so that they equal those of the whole index.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

import numpy as np

from citerec.arrays import open_array
from citerec.atomic import building
from citerec.corpus.papers import Papers
from citerec.distributed.cluster import Cluster
from citerec.distributed.records import ShardRecord, complete, sealed, write_record
from citerec.distributed.write import split_rows, write_shards
from citerec.errors import ClusterError
from citerec.folder import BM25, IndexFolder, open_index
from citerec.index.bm25 import ROWS, Bm25Builder, write_rows
from citerec.index.lucene_postings import Statistics
from citerec.index.postings import Postings, open_postings
from citerec.index.write_postings import add_postings
from citerec.types import Log

LIST, YEARS = "shards.json", "years.npy"
AT_ONCE = 4096  # papers that are handed to Lucene at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Shard(ShardRecord):
    """What is recorded of a shard of postings; `index` is when the index was built."""

    statistics: Statistics

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read a record."""
        fields: dict[str, Any] = {**content, "statistics": Statistics(**content["statistics"])}
        return cls(**fields)


def build_shards(
    index: IndexFolder,
    target: Path,
    shards: int,
    cluster: Cluster,
    *,
    heap: str | None = None,
    log: Log | None = None,
) -> list[Bm25Shard]:
    """Write the shards of an index in parallel; those that an interrupted run completed are kept.

    Args:
        index: The index; all nodes need its folder, and `target`, at the same path.
        target: The folder of the shards.
        shards: How many.
        cluster: Where they are written.
        heap: The memory of the JVM of a worker.
        log: Receives a message for each lost worker.

    Raises:
        ConfigError: If there are fewer papers than shards.
        ClusterError: If a worker cannot write a shard, or too many workers are lost.
    """
    parts = split_rows(len(index.papers), shards)
    target = target.absolute()
    make = partial(open_builder, index.path.absolute(), index.manifest.created, target, heap)
    return write_shards(target / LIST, parts, cluster, make, log)


def open_builder(
    path: Path, created: str, target: Path, heap: str | None
) -> Callable[[tuple[int, range]], Bm25Shard]:
    """Open an index in a worker; return what writes a shard: its number and rows in, its record out.

    Raises:
        ClusterError: If another index is at the path on this machine.
    """
    from citerec.java import start_jvm

    index = open_index(path)
    if index.manifest.created != created:
        raise ClusterError(f"{path} on a worker's machine is another index; copy it to all nodes")
    start_jvm(heap)

    def written(item: tuple[int, range]) -> Bm25Shard:
        number, rows = item
        return write_shard(index.papers, rows, target / f"shard-{number:05}", created)

    return written


def write_shard(papers: Papers, rows: range, target: Path, created: str) -> Bm25Shard:
    """Write the shard of some papers, unless it is there and complete.

    Args:
        papers: The papers of the index.
        rows: Those of the shard.
        target: Its folder, which appears complete or not at all.
        created: When the index was built.
    """
    record = complete(target, Bm25Shard)
    if record and record.is_of(created, rows):
        return record
    with building(target) as folder:
        builder = Bm25Builder(folder / BM25, threads=1)  # documents keep the order of rows
        row_of: dict[str, int] = {}
        for first in range(rows.start, rows.stop, AT_ONCE):
            batch = papers.at(range(first, min(first + AT_ONCE, rows.stop)))
            row_of |= {paper.id: row for row, paper in batch.items()}
            builder.add(batch.values())
        builder.close()
        write_rows(folder / BM25, row_of)
        add_postings(folder, {})
        (folder / BM25 / ROWS).replace(folder / ROWS)
        np.save(folder / YEARS, np.asarray(papers.years)[np.load(folder / ROWS)])
        rmtree(folder / BM25)  # the postings hold all that is searched
        postings = open_postings(folder, {})
        if postings is None:
            raise ClusterError(f"the postings of {target} cannot be stored exactly")
        record = Bm25Shard(
            name=target.name,
            index=created,
            first=rows.start,
            end=rows.stop,
            statistics=postings.statistics,
            **sealed(folder),
        )
        write_record(folder, record)
    return record


def total(records: Sequence[Bm25Shard]) -> Statistics:
    """Return what Lucene would count in the index of all shards."""
    parts = [record.statistics for record in records]
    return Statistics(
        documents=sum(one.documents for one in parts),
        with_terms=sum(one.with_terms for one in parts),
        postings=sum(one.postings for one in parts),
        tokens=sum(one.tokens for one in parts),
    )


def open_files(folder: Path) -> tuple[Postings, Any, Any]:
    """Open a shard: its postings, rows and years.

    Raises:
        ClusterError: If it is missing or damaged.
    """
    postings = open_postings(folder, {})
    if postings is None:
        raise ClusterError(f"the shard {folder} is missing or damaged; build the shards again")
    length = postings.statistics.documents
    rows = open_array(folder / ROWS, np.int32, length=length)
    years = open_array(folder / YEARS, np.int32, np.int16, length=length)
    return postings, rows, years
