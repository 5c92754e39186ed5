"""Recommends papers for many drafts on a cluster: each actor has the index and its models open.

A block of queries is ranked by one actor, by the very code of the plain path, which also works on `AT_ONCE` queries at
a time. So the recommendations are the same, bit by bit, on machines of one kind. Every node needs the folder of the
index at the same path, and the models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from citerec.config import RecommendConfig, RerankConfig
from citerec.distributed.cluster import Cluster
from citerec.distributed.pool import Pool
from citerec.errors import ClusterError
from citerec.folder import open_index
from citerec.recommend import AT_ONCE, Recommender
from citerec.recommendations import Recommendations
from citerec.rerank.reranker import OpenReranker
from citerec.rules.eligible import DEFAULT_OPTIONS, QueryOptions
from citerec.types import Log, Progress, Query, no_progress

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
            open_worker,
            index.path.absolute(),
            str(index.manifest.created),
            worker_config(config, self.recommender.cascade, threads),
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


def worker_config(
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


def open_worker(
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
