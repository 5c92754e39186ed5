"""The work of `citerec recommend`: opens the index and the models, and recommends papers for the queries."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from citerec.cli.console import ConsoleOutput
from citerec.cli.contexts import suited
from citerec.cli.drafts import cited_rows_of, listed_rows
from citerec.cli.notices import loaded, warn_unreadable
from citerec.cli.ranked import ranked_results
from citerec.cli.request import RecommendRequest
from citerec.config import DenseConfig, FuseMethod, RecommendConfig
from citerec.text import plural
from citerec.types import Log, Progress, Query

if TYPE_CHECKING:
    from citerec.export import Result
    from citerec.folder import IndexFolder
    from citerec.recommend import BatchRecommender
    from citerec.recommendations import BatchResult

# Opens the index and the models of a config; receives messages for the user.
Opener = Callable[["IndexFolder", RecommendConfig, Log], "BatchRecommender"]

FEW_QUERIES = 8  # queries up to which torch, OpenVINO and Java's second compiler cost more time than they save


class Ranking(Protocol):
    """Ranks queries: `stream_any` in this process, or `RayRecommender.stream` on other machines."""

    def __call__(
        self,
        recommender: "BatchRecommender",
        queries: Sequence[Query],
        *,
        year_max: int | None,
        excluded: Iterable[int],
        cited: Collection[int],
        explain: bool,
        progress: Progress,
    ) -> "Iterator[BatchResult]":
        """Yield the result of each query."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """A request with its index and its models open: all but the ranking itself is done."""

    request: RecommendRequest
    recommender: "BatchRecommender"
    excluded: frozenset[int]  # rows of papers
    cited: frozenset[int]
    ranking: Ranking | None = None  # None for this process

    def results(self, progress: Progress) -> "Iterator[Result]":
        """Yield the result of each query; `progress` receives the number of queries and of reranked pairs."""
        from citerec.missing import stream_any

        options, queries = self.request.options, self.request.queries
        recommendations = (self.ranking or stream_any)(
            self.recommender,
            queries,
            year_max=options.year_max,
            excluded=self.excluded,
            cited=self.cited,
            explain=options.explain,
            progress=progress,
        )
        return ranked_results(
            queries,
            recommendations,
            progress,
            lambda one: self.recommender.explain_no_results(
                one, year_max=options.year_max, excluded=self.excluded | self.cited
            ),
        )


@contextmanager
def opened_request(
    path: Path, request: RecommendRequest, console: ConsoleOutput, ray: str | None
) -> Generator[Work]:
    """Open the index and the models; with the address of a Ray cluster, its workers rank the queries.

    Raises:
        CiterecError: If one cannot be opened, or there is no cluster at the address.
    """
    if ray is None:
        yield open_work(path, request, console)
        return
    from citerec.distributed.cluster import connected
    from citerec.distributed.recommending import RayRecommender
    from citerec.folder import open_index

    open_index(
        path
    )  # a folder that is no index is refused before a cluster starts, which takes seconds
    with connected(ray) as cluster:
        options = request.options
        workers = RayRecommender(cluster, options.bm25.threads, options.heap, console.log)
        yield replace(open_work(path, request, console), ranking=workers.stream)


def open_work(path: Path, request: RecommendRequest, console: ConsoleOutput) -> Work:
    """Open an index and the models that a request needs, in this process.

    Raises:
        CiterecError: If one cannot be opened, or an option does not suit it.
    """
    from citerec.folder import open_index

    return prepared(open_index(path), request, console, opener_with(request.options.heap))


def prepared(
    folder: "IndexFolder", request: RecommendRequest, console: ConsoleOutput, opener: Opener
) -> Work:
    """Return a request ready to be ranked; messages for the user are logged.

    Args:
        folder: The index.
        request: The request.
        console: Receives the messages.
        opener: Opens the models.

    Raises:
        CiterecError: If an option does not suit the index, or a model or list cannot be opened.
    """
    config = suited(
        _config(folder, request, console),
        request.drafts,
        request.options.rerank.model,
        console.warn,
    )
    recommender = _opened(folder, config, opener, console)
    excluded = listed_rows(request.excluded, recommender, console)
    cited = cited_rows_of(request.drafts, request.cited, recommender, console)
    warn_unreadable(request.queries, recommender, console)
    return Work(request, recommender, excluded, cited)


def _config(
    folder: "IndexFolder", request: RecommendRequest, console: ConsoleOutput
) -> RecommendConfig:
    from citerec.rank.ltr import suits_default_reranker

    options, few = request.options, len(request.queries) <= FEW_QUERIES
    suits = suits_default_reranker(options.ranker, folder)
    rerank = options.rerank.config(folder, console, default=suits)
    return RecommendConfig(
        k=options.k,
        bm25=options.bm25,
        encoder=options.encoder,
        dense=DenseConfig(threads=options.bm25.threads),
        retrievers=options.retrievers,
        fuse=None if options.fusion == "auto" else FuseMethod(options.fusion),
        reranker=rerank or "none",
        ranker=options.ranker,
        popularity=options.popularity,
        authors=options.authors,
        diversity=options.diversity,
        few_queries=few,
    )


def opener_with(heap: str | None) -> Opener:
    """Return what opens the models in this process, which starts Java with some memory."""

    def opened(folder: "IndexFolder", config: RecommendConfig, log: Log) -> "BatchRecommender":
        from citerec.java import set_heap
        from citerec.recommend import BatchRecommender

        set_heap(heap)
        if config.ranker != "none":
            from citerec.rank.trees import load

            load(hide_optional=True)
        return BatchRecommender(folder, config, log)

    return opened


def _opened(
    folder: "IndexFolder", config: RecommendConfig, opener: Opener, console: ConsoleOutput
) -> "BatchRecommender":
    """Open the pipeline; log the reranker, and the retrievers if verbose."""
    with console.status(f"loading {loaded(folder, config)}"):
        recommender = opener(folder, config, console.log)
    retrievers = " + ".join(recommender.retriever_names)
    if recommender.encoder:
        retrievers += f" of {recommender.encoder}"
    console.detail(
        f"{folder.path}: {plural(folder.manifest.counts['papers'], 'paper')}, {retrievers}"
    )
    if recommender.cascade:
        console.log(recommender.reranks)
    for line in recommender.settings_in_use:
        console.detail(line)
    return recommender
