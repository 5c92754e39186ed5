"""Encodes the papers of an index on a cluster: each shard in one actor, which holds the encoder.

An actor computes a shard by the very code of the plain path, so that the vectors are the same, bit by bit, on machines
of one kind; the number of threads does not change them.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.corpus.papers import Papers
from citerec.distributed.cluster import Cluster, connected
from citerec.distributed.pool import Pool
from citerec.encode.config import EncodeConfig, Precision
from citerec.shards import PlannedShard, Shard, ShardEncoder
from citerec.types import Log, Paper

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.encode.spec import Fingerprint


@dataclass(frozen=True, slots=True)
class RayShards:
    """A `ShardEncoder` whose shards are encoded by the actors of a cluster."""

    cluster: Cluster
    log: Log | None = None

    def __call__(
        self, encoder: "Encoder", base: Path, papers: Papers, missing: Sequence[PlannedShard]
    ) -> Iterator[tuple[PlannedShard, Shard]]:
        """Yield the missing shards with their vectors, in any order; see `ShardEncoder`.

        Raises:
            ClusterError: If a worker cannot open the encoder, or too many workers are lost.
        """
        config = worker_config(encoder.config, encoder.precision)
        texts = ([*papers.at(shard.rows).values()] for shard in missing)
        with Pool[list[Paper], Shard](
            self.cluster,
            partial(open_worker, encoder.fingerprint, base.absolute(), config),
            cpus=config.thread_count,
            gpus=int(config.device.startswith("cuda")),
            log=self.log,
        ) as pool:
            for number, vectors in pool.results(texts):
                yield missing[number], vectors


def worker_config(config: EncodeConfig, precision: str) -> EncodeConfig:
    """Return how an actor runs a model: as this process would, on one processor unless more are named.

    Args:
        config: How this process runs it.
        precision: The number format that this process resolved.
    """
    device = "cpu" if config.device == "auto" else config.device
    return replace(
        config, precision=Precision(precision), device=device, threads=config.threads or 1
    )


def open_worker(
    fingerprint: "Fingerprint", base: Path, config: EncodeConfig
) -> Callable[[list[Paper]], Shard]:
    """Open the encoder in an actor; return what encodes a shard.

    Raises:
        ModelError: If the encoder does not exist on this machine, or is another one.
    """
    from citerec.encode.opening import reopen

    return reopen(fingerprint, base, config).encode


@contextmanager
def ray_shards(address: str, log: Log | None = None) -> Generator[ShardEncoder]:
    """Connect to a cluster that encodes shards.

    Raises:
        MissingExtraError: If Ray is not installed.
        ClusterError: If there is no cluster at the address.
    """
    with connected(address) as cluster:
        yield RayShards(cluster, log)
