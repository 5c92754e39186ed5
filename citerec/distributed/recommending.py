"""Recommends papers for many drafts on a cluster: each actor has the index and its models open.

A block of queries is ranked by one actor, by the very code of the plain path, which also works on `AT_ONCE` queries at
a time. So the recommendations are the same, bit by bit, on machines of one kind. Every node needs the folder of the
index at the same path, and the models.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from citerec.config import RecommendConfig, RerankConfig
from citerec.distributed.cluster import Cluster
from citerec.distributed.pool import Pool
from citerec.errors import ClusterError
from citerec.folder import open_index
from citerec.missing import stream_any
from citerec.recommend import AT_ONCE, BatchRecommender
from citerec.recommendations import BatchResult
from citerec.rerank.reranker import OpenReranker
from citerec.types import Log, Progress, Query, no_progress

Block = Sequence[Query]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOptions:
    """What is the same for all queries."""

    year_max: int | None
    excluded: frozenset[int]  # rows of papers
    cited: frozenset[int]
    explain: bool


@dataclass(frozen=True, slots=True)
class RayRecommender:
    """Ranks queries in the actors of a cluster."""

    cluster: Cluster
    threads: int = 0  # of an actor; 0 for one
    heap: str | None = None  # of the JVM of an actor
    log: Log | None = None
    block: int = AT_ONCE  # queries of a block; with another number, results agree up to rounding

    def stream(
        self,
        recommender: BatchRecommender,
        queries: Sequence[Query],
        *,
        year_max: int | None = None,
        excluded: Iterable[int] = (),
        cited: Collection[int] = (),
        explain: bool = False,
        progress: Progress = no_progress,
    ) -> Iterator[BatchResult]:
        """Yield the results of queries as `stream_any` does; `recommender` says which index and models.

        Raises:
            ClusterError: If a worker cannot open the index or a model, or too many workers are lost.
        """
        threads = self.threads or 1
        options = BlockOptions(
            year_max=year_max, excluded=frozenset(excluded), cited=frozenset(cited), explain=explain
        )
        index = recommender.index
        make = partial(
            open_worker,
            index.path.absolute(),
            str(index.manifest.created),
            worker_config(recommender.config, recommender.cascade, threads),
            options,
            self.heap,
        )
        starts = range(0, len(queries), self.block)
        blocks = [queries[start : start + self.block] for start in starts]
        with Pool[Block, list[BatchResult]](
            self.cluster, make, cpus=threads, gpus=_gpus(recommender.config), log=self.log
        ) as pool:
            for results in pool.in_order(blocks):
                for result in results:
                    if self.log:
                        for notice in result.notices:
                            self.log(notice)
                    yield result


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
    path: Path, created: str, config: RecommendConfig, options: BlockOptions, heap: str | None
) -> Callable[[Block], list[BatchResult]]:
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
    recommender = BatchRecommender(index, config)

    def ranked(queries: Block) -> list[BatchResult]:
        results = stream_any(
            recommender,
            queries,
            year_max=options.year_max,
            excluded=options.excluded,
            cited=options.cited,
            explain=options.explain,
        )
        return list(results)

    return ranked


def _gpus(config: RecommendConfig) -> int:
    reranker = config.reranker
    return int(isinstance(reranker, RerankConfig) and reranker.device.startswith("cuda"))
