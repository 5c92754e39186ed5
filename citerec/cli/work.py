"""The work of `citerec recommend`: opens the index and the models, and recommends papers for the queries."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from citerec.cli.console import ConsoleOutput
from citerec.cli.contexts import suited
from citerec.cli.drafts import cited_rows_of, listed_rows
from citerec.cli.request import RecommendRequest
from citerec.config import DenseConfig, FuseMethod, RecommendConfig, RerankConfig
from citerec.text import plural
from citerec.types import Progress, Query

if TYPE_CHECKING:
    from citerec.export import Result
    from citerec.folder import IndexFolder
    from citerec.recommend import Recommender
    from citerec.recommendations import Recommendations
    from citerec.rules.eligible import QueryOptions

FEW_QUERIES = 8  # queries up to which torch, OpenVINO and Java's second compiler cost more time than they save


@dataclass(frozen=True, slots=True)
class Work:
    """A request with its index and its models open: all but the ranking itself is done."""

    queries: tuple[Query, ...]
    recommender: "Recommender"
    options: "QueryOptions"
    recommend_many: (
        "Callable[..., Iterator[Recommendations]]"  # of the recommender, or of a cluster
    )

    def results(self, progress: Progress) -> "Iterator[Result]":
        """Yield the result of each query; `progress` receives the number of queries and of reranked pairs."""
        from citerec.export import Result

        progress("queries", 0, len(self.queries))
        lists = self.recommend_many(self.queries, self.options, progress)
        for number, one in enumerate(lists, start=1):
            yield Result(one.query, one.items, one.why_nothing)
            progress("queries", number, len(self.queries))


@contextmanager
def opened_request(
    path: Path, request: RecommendRequest, console: ConsoleOutput, ray: str | None
) -> Generator[Work]:
    """Open the index and the models; with the address of a Ray cluster, its workers rank the queries.

    Raises:
        CiterecError: If one cannot be opened, or there is no cluster at the address.
    """
    from citerec.folder import open_index

    folder = open_index(path)  # before a cluster starts, which takes seconds
    if ray is None:
        yield open_work(folder, request, console)
        return
    from citerec.distributed.cluster import connected
    from citerec.distributed.recommending import RayRecommender

    with connected(ray) as cluster:
        options = request.options
        work = open_work(folder, request, console)
        workers = RayRecommender(
            work.recommender, cluster, options.bm25.threads, options.heap, console.log
        )
        yield replace(work, recommend_many=workers.recommend_many)


def open_work(folder: "IndexFolder", request: RecommendRequest, console: ConsoleOutput) -> Work:
    """Open the models that a request needs; log the reranker, and all settings if verbose.

    Raises:
        CiterecError: If one cannot be opened, or an option does not suit the index.
    """
    from citerec.java import set_heap
    from citerec.recommend import Recommender
    from citerec.rules.eligible import QueryOptions

    config = suited(
        _config(folder, request, console),
        request.drafts,
        request.options.rerank.model,
        console.warn,
    )
    with console.status(f"loading {_loaded(folder, config)}"):
        set_heap(request.options.heap)
        if config.ranker != "none":
            from citerec.rank.trees import load

            load(hide_optional=True)
        recommender = Recommender(folder, config, console.log)
    retrievers = " + ".join(recommender.retriever_names)
    of_encoder = f" of {recommender.encoder}" if recommender.encoder else ""
    papers = plural(folder.manifest.counts["papers"], "paper")
    console.detail(f"{folder.path}: {papers}, {retrievers}{of_encoder}")
    if recommender.cascade:
        console.log(recommender.reranker_in_use)
    for line in recommender.settings_in_use:
        console.detail(line)
    options = QueryOptions(
        year_max=request.options.year_max,
        excluded=listed_rows(request.excluded, recommender, console),
        cited=cited_rows_of(request.drafts, request.cited, recommender, console),
        explain=request.options.explain,
    )
    return Work(request.queries, recommender, options, recommender.recommend_many)


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


def _loaded(folder: "IndexFolder", config: RecommendConfig) -> str:
    """Return the components that are loaded before the first search, for the status line."""
    from citerec.rerank.choose import shown_reranker

    parts = [f"the index {folder.manifest.name}"]
    if config.encoder != "none" and folder.is_embedded:
        parts.append(f"the encoder {folder.manifest.settings['encoder']['name']}")
    if isinstance(config.reranker, RerankConfig):
        parts.append(f"the reranker {shown_reranker(config.reranker.model, folder)}")
    if config.ranker != "none":
        parts.append("the learning-to-rank model")
    return " · ".join(parts)
