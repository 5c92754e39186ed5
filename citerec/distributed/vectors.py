"""The vectors of an index in shards, each of some papers: written in parallel, searched where there is memory for them.

    vectors.json         the record of each shard
    vectors-00000/       rows of papers 0 to n
        shard.json       its record: its rows, the checksum of the vectors of the index, its own checksums
        vectors.faiss    the vectors, a flat index
        rounded_*.npy    the same rounded, of a shard of many papers
        years.npy        int32, shape (papers,): the year of each, as in the index

They may share a folder with the shards of postings. Each pair of query and paper is scored for itself, so that rows and
scores of all shards together are those of the whole index, bit by bit.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.arrays import open_array
from citerec.atomic import building
from citerec.config import DenseKind
from citerec.distributed.cluster import Cluster
from citerec.distributed.holders import Ask, asking
from citerec.distributed.records import (
    ShardRecord,
    complete,
    present,
    read_list,
    sealed,
    write_record,
)
from citerec.distributed.shards import YEARS
from citerec.distributed.write import split_rows, write_shards
from citerec.encode.spec import Similarity
from citerec.errors import ClusterError, ConfigError
from citerec.folder import DENSE, IndexFolder, open_index
from citerec.index.dense.exact import RowsAndScores
from citerec.index.dense.library import NAME, Vectors, on_threads
from citerec.index.dense.read import open_dense, open_exact
from citerec.index.dense.rounded import CODES
from citerec.index.dense.scan import BLOCK
from citerec.index.dense.write import write_exact
from citerec.retrieve.parts import UNREADABLE, check_embedded, opening
from citerec.retrieve.retriever import PARTIAL
from citerec.types import Eligibility, Log

LIST = "vectors.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorShard(ShardRecord):
    """What is recorded of a shard of vectors; `index` is the checksum of the vectors of the index."""

    dim: int
    similarity: Similarity

    def __post_init__(self) -> None:
        object.__setattr__(self, "similarity", Similarity(self.similarity))


def build_vector_shards(
    index: IndexFolder, target: Path, shards: int, cluster: Cluster, *, log: Log | None = None
) -> list[VectorShard]:
    """Write the vectors of an index in shards, in parallel; those that an interrupted run completed are kept.

    Args:
        index: The index; all nodes need its folder, and `target`, at the same path.
        target: The folder of the shards.
        shards: How many.
        cluster: Where they are written.
        log: Receives a message for each lost worker.

    Raises:
        ConfigError: If the index has no exact vectors, or there are fewer papers than shards.
        ClusterError: If a worker cannot write a shard, or too many workers are lost.
    """
    identity, parts = identity_of(index), split_rows(len(index.papers), shards)
    target = target.absolute()
    make = partial(open_writer, index.path.absolute(), identity, target)
    return write_shards(target / LIST, parts, cluster, make, log)


def identity_of(index: IndexFolder) -> str:
    """Return what identifies the vectors of an index: their checksum.

    Raises:
        ConfigError: If it has none, or approximate ones, whose search differs in shards.
    """
    check_embedded(index)
    kind = index.manifest.settings["dense"]["kind"]
    if kind != DenseKind.EXACT:
        raise ConfigError(
            f"{index.path} holds vectors of the kind {kind}, shards need exact ones; embed its papers anew: "
            f"citerec encode --index {index.path} --encoder MODEL --dense-index exact"
        )
    return index.manifest.checksums[f"{DENSE}/{NAME}"]


def open_writer(
    path: Path, identity: str, target: Path
) -> Callable[[tuple[int, range]], VectorShard]:
    """Open an index in a worker; return what writes a shard: its number and rows in, its record out.

    Raises:
        ClusterError: If an index with other vectors is at the path on this machine.
    """
    index = open_index(path)
    if identity_of(index) != identity:
        raise ClusterError(f"{path} on a worker's machine is another index; copy it to all nodes")

    def written(item: tuple[int, range]) -> VectorShard:
        number, rows = item
        return write_vector_shard(index, rows, target / f"vectors-{number:05}")

    return written


def write_vector_shard(index: IndexFolder, rows: range, target: Path) -> VectorShard:
    """Write the vectors of some papers, unless they are there and complete.

    Args:
        index: The index.
        rows: The papers.
        target: The folder of the shard, which appears complete or not at all.
    """
    identity, settings = identity_of(index), index.manifest.settings["dense"]
    record = complete(target, VectorShard)
    if record and record.is_of(identity, rows):
        return record
    with opening(index, DENSE, lambda error: isinstance(error, UNREADABLE)):
        source = open_dense(index.path / DENSE, settings, index.papers.years)
    dim, similarity = int(settings["dim"]), Similarity(settings["similarity"])

    def blocks() -> Iterator[tuple[int, Vectors]]:
        for start in range(rows.start, rows.stop, BLOCK):
            block = np.arange(start, min(start + BLOCK, rows.stop), dtype=np.int32)
            yield start - rows.start, source.vectors(block)

    with building(target) as folder:
        write_exact(folder, blocks(), rows=len(rows), dim=dim, similarity=similarity)
        np.save(folder / YEARS, np.asarray(index.papers.years)[rows.start : rows.stop])
        record = VectorShard(
            name=target.name,
            index=identity,
            first=rows.start,
            end=rows.stop,
            dim=dim,
            similarity=similarity,
            **sealed(folder),
        )
        write_record(folder, record)
    return record


class OpenVectors:
    """A shard of vectors that is open for searching, in an actor or in this process."""

    def __init__(self, folder: Path, record: VectorShard, threads: int) -> None:
        """Map the files.

        Raises:
            ClusterError: If they are missing or damaged.
        """
        self._rows, self._threads = range(record.first, record.end), threads
        count = len(self._rows)
        try:
            years: npt.NDArray[np.int32] = open_array(
                folder / YEARS, np.int32, np.int16, length=count
            )
            self._index = open_exact(
                folder,
                years,
                dim=record.dim,
                similarity=record.similarity,
                rounded=(folder / CODES).is_file(),
            )
        except UNREADABLE as error:
            raise ClusterError(f"the shard {folder} is missing or damaged ({error})") from error

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows of the index and scores of the `k` nearest papers of each query, and of those that tie."""
        first = self._rows.start
        rules = [
            Eligibility(
                rule.year_max, frozenset(row - first for row in rule.excluded if row in self._rows)
            )
            for rule in eligible
        ]
        with on_threads(self._threads):
            found = self._index.nearest(vectors, rules, min(k, len(self._rows)))
        return [(rows + np.int32(first), scores) for rows, scores in found]


class ShardedVectors:
    """Finds the nearest vectors in shards; a `VectorSearch` for `DenseRetriever`, which merges and orders them."""

    def __init__(self, ask: Ask, name: str = "dense") -> None:
        """Prepare.

        Args:
            ask: Calls a method of each shard and returns their results.
            name: The name of the hits.
        """
        self._ask, self.name = ask, name

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of the `k` nearest papers of each query in each shard.

        Raises:
            ClusterError: If a shard is lost.
        """
        parts = self._ask("nearest", vectors, [*eligible], k)
        return [
            (np.concatenate([rows for rows, _ in one]), np.concatenate([s for _, s in one]))
            for one in zip(*parts, strict=True)
        ]


@contextmanager
def open_vector_shards(
    index: IndexFolder,
    folder: Path,
    cluster: Cluster | None = None,
    *,
    threads: int = 1,
    allow_missing: bool = False,
    log: Log | None = None,
) -> Generator[ShardedVectors]:
    """Open the shards of the vectors of an index until the block ends, each in an actor.

    Args:
        index: The index that was divided.
        folder: The folder of the shards, at the same path on all nodes.
        cluster: Where the actors run; None to open all shards in this process.
        threads: That search one shard.
        allow_missing: Whether missing or damaged shards are left out: the hits then have the name `dense-partial`.
        log: Receives a message for each shard that is left out.

    Raises:
        ConfigError: If the shards are of other vectors than those of the index.
        ClusterError: If a shard is missing or damaged, unless `allow_missing` is set; if all are.
    """
    records = read_list(folder / LIST, VectorShard)
    there = present(
        folder, records, index, identity_of(index), allow_missing=allow_missing, log=log
    )
    opens: list[Callable[[], Any]] = [
        partial(OpenVectors, folder.absolute() / one.name, one, threads) for one in there
    ]
    with asking(opens, cluster) as ask:
        yield ShardedVectors(ask, "dense" if len(there) == len(records) else f"dense{PARTIAL}")
