"""Open indexes, and the threads in which requests use them.

Queries run one after the other in one thread: a batch of the queries that wait takes as long (measured: 8.0 against 8.2
s of processor time for 32 drafts). Look-ups and uploads have threads of their own, so that they do not wait for models.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Request
from pydantic import BaseModel

from citerec import RecommendConfig, Recommender, open_index
from citerec.io import MODEL_SUMS
from citerec.serve import ServeConfig
from citerec.serve.guard import CLIENT_CLOSED, ProblemError

T = TypeVar("T")
DEFAULT = RecommendConfig(few_queries=True)
MAX_VARIANTS = 6  # recommenders of other settings than the default ones, which are open at once
# 1: the models use all processors; 4: each waits for a process with limits, one that reads a hostile file, too
THREADS = {"models": 1, "lookups": 2, "uploads": 4}
RETRY_AFTER = "5"  # seconds


class IndexFacts(BaseModel):
    """What an index holds, and the models that are used on it."""

    name: str
    version: str
    papers: int
    citations: int
    years: tuple[int, int] | None
    retrievers: list[str]
    encoder: str
    reranker: str
    ranker: str


class OpenIndex:
    """One index, open with its default settings; several threads may use it."""

    def __init__(self, name: str, path: Path, config: RecommendConfig) -> None:
        """Open the index and its models."""
        self.name, self.index = name, open_index(path)
        self.default = Recommender(self.index, config)
        self._variant: Any = lru_cache(MAX_VARIANTS)(partial(Recommender, self.index))

    def recommender(self, config: RecommendConfig) -> Recommender:
        """Return the recommender of other settings; those used last stay open."""
        return self.default if config == self.default.config else self._variant(config)

    @cached_property
    def version(self) -> str:
        """The time of the build, and the start of a sha256 of files and models."""
        manifest = self.index.manifest
        digest = hashlib.sha256(orjson.dumps([manifest.checksums, manifest.settings]))
        for sums in sorted(self.index.models.glob(f"*/{MODEL_SUMS}")):
            digest.update(sums.read_bytes())
        return f"{manifest.created} {digest.hexdigest()[:12]}"

    def facts(self) -> IndexFacts:
        """Return what the index holds, and the models that are used on it."""
        one = self.default
        return IndexFacts(
            name=self.name,
            version=self.version,
            papers=len(self.index.papers),
            citations=len(self.index.graph.indices),
            years=one.corpus.years,
            retrievers=[*one.retriever_names],
            encoder=one.encoder,
            reranker=one.reranker,
            ranker=one.ranker,
        )


class Service:
    """Open indexes by name, the first one is the default, and the requests in flight."""

    def __init__(
        self,
        indexes: Mapping[str, Path],
        configs: Mapping[str, RecommendConfig] | None = None,
        settings: ServeConfig | None = None,
        rerankers: tuple[str, ...] = (),
    ) -> None:
        """Open the indexes and their models; `rerankers` are those that requests may name, besides auto and none."""
        self.settings, self.rerankers = settings or ServeConfig(), rerankers
        self.indexes = {
            name: OpenIndex(name, path, (configs or {}).get(name) or DEFAULT)
            for name, path in indexes.items()
        }
        self.hidden = {  # paths that messages to clients must not show
            str(place): name for name, path in indexes.items() for place in (path.resolve(), path)
        }
        self.in_flight, self.is_closed = 0, False
        self._lock = Lock()
        self._pools = {
            name: ThreadPoolExecutor(threads, f"citerec-{name}")
            for name, threads in THREADS.items()
        }

    def warm_up(self) -> None:
        """Answer a query by each index, so that the first request finds everything loaded."""
        with suppress(ImportError, RuntimeError):
            import_module("numba")  # BM25's loops are compiled from the first request on
        for one in self.indexes.values():
            one.default.recommend(title="a first search", explain=True)

    def open_index(self, name: str | None = None) -> OpenIndex:
        """Return an index by its name, by default the first one."""
        names = [*self.indexes]
        if name is not None and name not in self.indexes:
            known = ", ".join(names)
            raise ProblemError("not-found", f"no index {name[:60]!r}; there are: {known}")
        return self.indexes[name or names[0]]

    def start(
        self, work: Callable[[OpenIndex], T], index: str | None, pool: str = "models"
    ) -> "Future[T]":
        """Start work in one of the `THREADS`; a future that is cancelled before it starts costs nothing.

        ProblemError if there is no such index, too many requests are in flight, or the server is being stopped.
        """
        opened = self.open_index(index)
        with self._lock:
            if self.is_closed:
                raise stopping()
            if self.in_flight >= self.settings.queue_size:
                detail = f"{self.in_flight} requests are in flight; try again in {RETRY_AFTER} s"
                raise ProblemError("queue-full", detail, headers={"Retry-After": RETRY_AFTER})
            self.in_flight += 1
        future = self._pools[pool].submit(work, opened)
        future.add_done_callback(self._leave)
        return future

    def close(self) -> None:
        """Refuse new requests, and end; what waits is cancelled: the web server has drained before."""
        self.is_closed = True
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self.in_flight -= 1


def stopping() -> ProblemError:
    """Return the problem of a server that is being stopped."""
    later = {"Retry-After": RETRY_AFTER}
    return ProblemError("stopping", "the server is being stopped", headers=later)


def _service(request: Request) -> Service:
    return request.app.state.service


Served = Annotated[Service, Depends(_service)]  # the service of the application of a route


async def answer(
    request: Request, work: Callable[[OpenIndex], T], index: str | None, pool: str = "models"
) -> T:
    """Do the work of a request; it is cancelled if the client goes away or the time is over."""
    service = _service(request)
    # the steps of a request share its time
    until = request.scope.setdefault("until", monotonic() + service.settings.timeout_seconds)
    result = asyncio.wrap_future(service.start(work, index, pool))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait(
            {result, gone}, timeout=max(until - monotonic(), 0), return_when=asyncio.FIRST_COMPLETED
        )
        if result.done():
            return result.result()
        if gone.done():
            raise ProblemError("timeout", "the client is gone", status=CLIENT_CLOSED)
        raise ProblemError(
            "timeout", "the answer took too long; send fewer queries at once, or try again later"
        )
    finally:
        result.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
