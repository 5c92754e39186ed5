"""Runs long work on a Ray cluster: `citerec encode|index|recommend --ray ADDRESS|local`, and the server by Ray Serve.

Results equal those of one process, bit by bit, on machines of one kind: actors run the very code of the plain path. The
process of the command writes vectors and results, so that a lost actor or a killed command leaves nothing half-written.
Every node that ranks or serves needs the folder of the index, and the models, at the same path.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.config import RecommendConfig, RerankConfig
from citerec.corpus.papers import Papers
from citerec.distributed.cluster import Cluster, Pool, connected
from citerec.encode.config import EncodeConfig, Precision
from citerec.errors import ClusterError, ConfigError, extra
from citerec.folder import open_index
from citerec.recommend import AT_ONCE, Recommender
from citerec.recommendations import Recommendations
from citerec.rerank.reranker import OpenReranker
from citerec.rules.known import DEFAULT_OPTIONS, QueryOptions
from citerec.shards import PlannedShard, Shard, ShardEncoder
from citerec.types import Log, Paper, Progress, Query, no_progress

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder
    from citerec.encode.spec import Fingerprint
    from citerec.serve import ServeConfig

NAME = "citerec"  # of the application in Ray Serve


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many replicas there are; each has the indexes and models open."""

    least: int = 1
    most: int = 4
    requests: int = 8  # in flight per replica; more start another one
    cpus: int = 1  # processors and threads of a replica

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ConfigError(
                f"replicas must be at least 1, and at most as many as {self.most}, got {self.least}"
            )
        if self.requests < 1 or self.cpus < 1:
            raise ConfigError("requests and cpus of a replica must be at least 1")


@contextmanager
def served(
    cluster: Cluster,
    indexes: Mapping[str, Path],
    *,
    configs: Mapping[str, RecommendConfig] | None = None,
    settings: "ServeConfig | None" = None,
    replicas: Replicas | None = None,
) -> Generator[str]:
    """Serve indexes on a cluster until the block ends; yield the URL on this machine.

    Limits and tokens of the settings hold in each replica.

    Args:
        cluster: Where the replicas run; each node needs the indexes and models at the same paths.
        indexes: Index folders by name, the default first.
        configs: How papers are found and ordered, by index.
        settings: What the server accepts.
        replicas: How many replicas.

    Raises:
        MissingExtraError: If the extra `serve` is not installed.
    """
    with extra("serve"):
        from citerec.serve import ServeConfig
        from citerec.serve.app import create_app
        from citerec.serve.service import Service
    replicas, settings = replicas or Replicas(), settings or ServeConfig()
    folders = {name: path.absolute() for name, path in indexes.items()}

    def build() -> Any:  # in each replica
        service = Service(folders, configs, settings)
        service.warm_up()
        return create_app(service)

    with extra("ray"):
        serve: Any = import_module("ray.serve")
    deployment = serve.deployment(
        name=NAME,
        max_ongoing_requests=settings.queue_size,
        ray_actor_options={"num_cpus": replicas.cpus},
        autoscaling_config={
            "min_replicas": replicas.least,
            "max_replicas": replicas.most,
            "target_ongoing_requests": replicas.requests,
        },
    )
    serve.start(http_options={"host": settings.host, "port": settings.port})
    serve.run(deployment(serve.ingress(build)()).bind(), name=NAME, route_prefix="/")
    try:
        yield f"http://{settings.host}:{settings.port}/"
    finally:
        serve.shutdown()


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
        config = encoding_config(encoder.config, encoder.precision)
        texts = ([*papers.at(shard.rows).values()] for shard in missing)
        with Pool[list[Paper], Shard](
            self.cluster,
            partial(open_encoding, encoder.fingerprint, base.absolute(), config),
            cpus=config.thread_count,
            gpus=int(config.device.startswith("cuda")),
            log=self.log,
        ) as pool:
            for number, vectors in pool.results(texts):
                yield missing[number], vectors


def encoding_config(config: EncodeConfig, precision: str) -> EncodeConfig:
    """Return how an actor runs a model: as this process would, on one processor unless more are named.

    Args:
        config: How this process runs it.
        precision: The number format that this process resolved.
    """
    device = "cpu" if config.device == "auto" else config.device
    return replace(
        config, precision=Precision(precision), device=device, threads=config.threads or 1
    )


def open_encoding(
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


Block = Sequence[Query]


@dataclass(frozen=True, slots=True)
class RayRecommender:
    """Recommends papers in the actors of a cluster, as a recommender does in this process."""

    recommender: Recommender  # says which index and models
    cluster: Cluster
    threads: int = 0  # of an actor; 0 for one
    heap: str | None = None  # of the JVM of an actor
    log: Log | None = None
    block: int = AT_ONCE  # queries of a block; with another number, results agree up to rounding

    def recommend_many(
        self,
        queries: Sequence[Query],
        options: QueryOptions = DEFAULT_OPTIONS,
        progress: Progress = no_progress,
    ) -> Iterator[Recommendations]:
        """Yield what `Recommender.recommend_many` yields; `progress` is not called.

        Raises:
            ClusterError: If a worker cannot open the index or a model, or too many workers are lost.
        """
        threads, index = self.threads or 1, self.recommender.index
        config = self.recommender.config
        make = partial(
            open_ranking,
            index.path.absolute(),
            str(index.manifest.created),
            ranking_config(config, self.recommender.open_reranker, threads),
            options,
            self.heap,
        )
        starts = range(0, len(queries), self.block)
        blocks = [queries[start : start + self.block] for start in starts]
        noticed = 0
        with Pool[Block, list[Recommendations]](
            self.cluster, make, cpus=threads, gpus=_gpus(config), log=self.log
        ) as pool:
            for results in pool.in_order(blocks):
                noticed += sum(bool(one.notices) for one in results)
                yield from results
        if self.log and noticed:
            self.log(f"{noticed:,} of {len(queries):,} lists have notices, such as unreliable ones")


def ranking_config(
    config: RecommendConfig, cascade: OpenReranker | None, threads: int
) -> RecommendConfig:
    """Return how an actor ranks: as this process would, which has resolved the depth of the reranker."""
    reranker = config.reranker
    if cascade and isinstance(reranker, str):
        reranker = RerankConfig(model=reranker)
    if cascade and isinstance(reranker, RerankConfig):
        reranker = reranker.replace(depth=cascade.depth, threads=threads)
        if reranker.device == "auto" and not config.few_queries:
            reranker = reranker.replace(device="cpu")
    return config.replace(
        reranker=reranker,
        bm25=config.bm25.replace(threads=threads),
        dense=config.dense.replace(threads=threads),
    )


def open_ranking(
    path: Path, created: str, config: RecommendConfig, options: QueryOptions, heap: str | None
) -> Callable[[Block], list[Recommendations]]:
    """Open an index and its models in an actor; return what ranks a block.

    Raises:
        ClusterError: If another index is at the path on this machine.
        CiterecError: If the index or a model cannot be opened.
    """
    from citerec.java import set_heap

    index = open_index(path)
    if index.manifest.created != created:
        raise ClusterError(
            f"{path} on a worker's machine was built at {index.manifest.created}, here at {created}; "
            "copy the index to all nodes, or put it into a folder that they share"
        )
    set_heap(heap)
    recommender = Recommender(index, config)
    return lambda queries: list(recommender.recommend_many(queries, options))


def _gpus(config: RecommendConfig) -> int:
    reranker = config.reranker
    return int(isinstance(reranker, RerankConfig) and reranker.device.startswith("cuda"))
