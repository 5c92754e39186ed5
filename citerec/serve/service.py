"""Open indexes, and the threads in which requests use them.

Queries run one after the other in one thread: a batch of the queries that wait takes as long (measured: 8.0 against 8.2
s of processor time for 32 drafts). Small requests do not wait for large ones, and work whose request has ended, ends
(`Models`). Look-ups and uploads have threads of their own, so that they do not wait for models.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from importlib import import_module
from itertools import count
from math import inf
from pathlib import Path
from queue import PriorityQueue
from threading import Lock
from time import monotonic
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Depends, Request
from pydantic import BaseModel

from citerec.config import RecommendConfig
from citerec.errors import CiterecError
from citerec.files.checksums import MODEL_SUMS
from citerec.files.isolated import MAX_WAIT
from citerec.index.folder import open_index, read_manifest
from citerec.recommend import Recommender
from citerec.serve import ServeConfig
from citerec.serve.guard import LOG, ProblemError

T = TypeVar("T")
DEFAULT = RecommendConfig(few_queries=True)
# recommenders of other settings than the default ones, which are open at once
MAX_VARIANTS = 6
# 4: each waits for a process with limits, one that reads a hostile file, too
THREADS = {"lookups": 2, "uploads": 4}
RETRY_AFTER = "5"  # seconds
STOP_SECONDS = 5  # for work in progress to end, after the drain


class IndexFacts(BaseModel):
    """What an index holds, and the models that are used on it."""

    name: str
    version: str
    papers: int
    # records by source, before duplicates were removed
    identified: dict[str, int]
    citations: int
    new: int  # papers that the last update of a library added
    years: tuple[int, int] | None
    retrievers: list[str]
    encoder: str
    reranker: str
    ranker: str


class OpenIndex:
    """One index, open with its default settings; several threads may use it."""

    def __init__(self, name: str, path: Path, config: RecommendConfig) -> None:
        """Open the index and its models."""
        self.name = name
        self.index = open_index(path)
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
        chosen = self.default
        alone = {self.name: len(self.index.papers)}  # of an older version
        sources = self.index.manifest.corpus.get("identified", alone)
        return IndexFacts(
            name=self.name,
            version=self.version,
            papers=len(self.index.papers),
            identified=sources,
            citations=len(self.index.graph.indices),
            new=self.index.manifest.corpus.get("update", {}).get("new", 0),
            years=chosen.corpus.years,
            retrievers=[*chosen.retriever_names],
            encoder=chosen.encoder,
            reranker=chosen.reranker,
            ranker=chosen.ranker,
        )


class Turn(Future[Any]):
    """The work of one request on the models, which can also be cancelled while it runs."""

    def __init__(self, work: Callable[[], Any], size: int) -> None:
        """Prepare; work goes before work of a larger `size`."""
        super().__init__()
        self.work = work
        self.size = size
        self.is_over = False

    def cancel(self) -> bool:
        """Cancel it; work that runs ends when it next calls `Models.pause`."""
        self.is_over = True
        return super().cancel()


class Models:
    """Does the work on the models in one thread, since each computation uses all processors.

    Small work goes first. Work in progress lets smaller work in at each `pause`.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "citerec-models")
        self._waiting: PriorityQueue[tuple[int, int, Turn]] = PriorityQueue()
        self._numbers = count()  # of arrival
        self._running: list[Turn] = []  # each was let in by the one before

    def submit(self, work: Callable[[], Any], size: int) -> Turn:
        """Start work as soon as nothing smaller waits; see `Turn`."""
        turn = Turn(work, size)
        self._waiting.put((size, next(self._numbers), turn))
        self._pool.submit(self._run_smallest)
        return turn

    def pause(self, *_: object) -> None:
        """Let smaller work in, then go on, unless this was cancelled; a `Progress` of the work in progress."""
        turn = self._running[-1]
        while not turn.is_over and self._run_smallest(turn.size):
            pass
        if turn.is_over:
            raise CancelledError

    def _run_smallest(self, below: float = inf) -> bool:
        """Run the smallest work that waits; return whether there was any of a size below a limit."""
        if not self._waiting.queue or self._waiting.queue[0][0] >= below:
            return False
        _, _, turn = self._waiting.get()  # this thread alone takes from it
        if turn.set_running_or_notify_cancel():
            self._running.append(turn)
            try:
                turn.set_result(turn.work())
            except (
                CancelledError
            ):  # without its traceback, which would keep what the work has open
                turn.set_exception(CancelledError())
            except BaseException as error:
                turn.set_exception(error)
            finally:
                self._running.pop()
        return True


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
        self.settings = settings or ServeConfig()
        self.rerankers = rerankers
        self.configs = configs or {}
        self.indexes = dict[str, OpenIndex]()
        # paths that messages to clients must not show
        self.hidden = dict[str, str]()
        for name, path in indexes.items():
            self.add(name, path)
        self.is_closed = False
        self._in_flight = set[Future[Any]]()
        self._lock = Lock()
        self._renewing = Lock()
        self.models = Models()
        self._pools = {
            name: ThreadPoolExecutor(threads, f"citerec-{name}")
            for name, threads in THREADS.items()
        }

    def add(self, name: str, path: Path) -> None:
        """Open one more index, or another version of one; without settings of its own it has those of the first."""
        config = self.configs.get(name) or next(iter(self.configs.values()), DEFAULT)
        opened = OpenIndex(name, path, config)
        self.indexes = {**self.indexes, name: opened}
        self.hidden |= {str(place): name for place in (path.resolve(), path)}

    def renew(self) -> None:
        """Open versions of indexes that were built since; where one cannot be opened, log that and keep the old one."""
        with self._renewing:
            for name, opened in self.indexes.items():
                index = opened.index
                try:
                    if read_manifest(index.path) != index.manifest:
                        self.add(name, index.path)
                except CiterecError as error:
                    LOG.warning(
                        "the new version of %s cannot be opened: %s", name, error
                    )

    def warm_up(self) -> None:
        """Answer a query by each index, so that the first request finds everything loaded."""
        with suppress(ImportError, RuntimeError):
            # BM25's loops are compiled from the first request on
            import_module("numba")
        for served in self.indexes.values():
            served.default.recommend(title="a first search", explain=True)

    def open_index(self, name: str | None = None) -> OpenIndex:
        """Return an index by its name, by default the first one."""
        if not self.indexes:
            raise ProblemError("not-found", "this server has no corpus yet")
        if name is None:
            return next(iter(self.indexes.values()))
        if name not in self.indexes:
            known = ", ".join(self.indexes)
            raise ProblemError(
                "not-found", f"no index {name[:60]!r}; there are: {known}"
            )
        return self.indexes[name]

    def start(
        self,
        work: Callable[[OpenIndex], T],
        index: str | None,
        pool: str = "models",
        size: int = 1,
    ) -> "Future[T]":
        """Start work on the models, where a lower `size` goes first, or in one of the `THREADS`.

        A future that is cancelled before it starts costs nothing. ProblemError if there is no such index, too many
        requests are in flight, or the server is being stopped.
        """
        opened = self.open_index(index)
        with self._lock:
            if self.is_closed:
                raise stopping()
            if self.in_flight >= self.settings.queue_size:
                detail = f"{self.in_flight} requests are in flight; try again in {RETRY_AFTER} s"
                raise ProblemError(
                    "queue-full", detail, headers={"Retry-After": RETRY_AFTER}
                )
            if pool == "models":
                future = self.models.submit(partial(work, opened), size)
            else:
                future = self._pools[pool].submit(self._read, work, opened)
            self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        return future

    def _read(self, work: Callable[[OpenIndex], T], opened: OpenIndex) -> T:
        # a file that never ends leaves the next in turn half of the time of its answer
        MAX_WAIT.set(self.settings.timeout_seconds / 2)
        return work(opened)

    @property
    def in_flight(self) -> int:
        """How many requests wait or are worked on."""
        return len(self._in_flight)

    def close(self) -> bool:
        """Refuse new requests and cancel those in flight: the web server has drained before.

        Returns whether all work in progress has ended within `STOP_SECONDS`.
        """
        with self._lock:
            self.is_closed = True
        for future in [*self._in_flight]:
            future.cancel()
        return not wait([*self._in_flight], STOP_SECONDS).not_done


def stopping() -> ProblemError:
    """Return the problem of a server that is being stopped."""
    later = {"Retry-After": RETRY_AFTER}
    return ProblemError("stopping", "the server is being stopped", headers=later)


def late() -> ProblemError:
    """Return the problem of work that did not end in time."""
    message = "the answer took too long; send fewer queries at once, or try again later"
    return ProblemError("timeout", message)


def _service(request: Request) -> Service:
    return request.app.state.service


# the service of the application of a route
Served = Annotated[Service, Depends(_service)]


async def answer(
    request: Request,
    work: Callable[[OpenIndex], T],
    index: str | None,
    pool: str = "models",
    size: int = 1,
) -> T:
    """Do the work of a request; it is cancelled if the client goes away or the time is over."""
    service = _service(request)
    # the steps of a request share its time
    until = request.scope.setdefault(
        "until", monotonic() + service.settings.timeout_seconds
    )
    result = asyncio.wrap_future(service.start(work, index, pool, size))
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait(
            {result, gone},
            timeout=max(until - monotonic(), 0),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if result.done():
            return result.result()
        if gone.done():
            raise ProblemError("slow-body", "the client is gone")
        raise late()
    except asyncio.CancelledError:  # the drain is over
        raise stopping() from None
    finally:
        result.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
