"""Open indexes, and the threads in which requests use them.

Queries run one after the other in one thread: a batch of the queries that wait takes as long (measured: 8.0 against 8.2
s of processor time for 32 drafts). Look-ups have threads of their own, so that they do not wait for models.
"""

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, TypeVar

import orjson
from pydantic import Field, field_validator

from citerec import RecommendConfig, Recommender, open_index
from citerec.config import Settings
from citerec.errors import shown
from citerec.io import MODEL_SUMS
from citerec.serve.answers import ProblemError

T = TypeVar("T")
DEFAULT = RecommendConfig(few_queries=True)
MAX_VARIANTS = 6  # recommenders of other settings than the default ones, which are open at once
LOOKUPS = 2  # threads
LONGEST_WAIT = 60  # seconds of Retry-After
# As browsers send it, since the header is compared as text: lower case, and no default port.
ORIGIN = re.compile(
    r"\*|null|(?!http://[^/]*:80$|https://[^/]*:443$)"
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
)


class ServeConfig(Settings):
    """What a server accepts, and how much of it."""

    host: str = Field(
        default="127.0.0.1", description="The address to listen on; other machines reach 0.0.0.0."
    )
    port: int = Field(default=8000, ge=0, le=65535, description="The port; 0 for a free one.")
    tokens: tuple[str, ...] = Field(default=(), repr=False)  # bearer tokens; empty: none is needed
    hosts: tuple[str, ...] = Field(
        default=(), description="A name by which clients address the server; * for any."
    )
    origins: tuple[str, ...] = Field(
        default=(), description="The origin of a web page that may call the API."
    )
    queue_size: int = Field(
        default=128, ge=1, description="Requests in flight; more are answered by 429."
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="Seconds until an answer.")
    max_body_bytes: int = Field(default=16 * 2**20, ge=1)  # of one request
    max_held_bytes: int = Field(default=128 * 2**20, ge=1)  # of all requests in flight together
    max_queries: int = Field(default=64, ge=1)  # of one request

    @field_validator("origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [origin for origin in origins if not ORIGIN.fullmatch(origin)]:
            raise ValueError(
                f"{shown(wrong[0])} is no origin of a web page; expected scheme and host as browsers send them, "
                "such as https://example.org or http://localhost:3000 (lower case, no path, no default port), or null, "
                "or *"
            )
        return origins

    @field_validator("tokens")
    @classmethod
    def _are_long(cls, tokens: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(token) < 16 or not token.isascii() for token in tokens):
            raise ValueError(
                "a token must have at least 16 ASCII characters; make one: openssl rand -hex 32"
            )
        return tokens

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in {"127.0.0.1", "::1", "localhost"}


class OpenIndex:
    """One index, open with its default settings; several threads may use it."""

    def __init__(self, name: str, path: Path, config: RecommendConfig) -> None:
        """Open the index and its models.

        Raises:
            CiterecError: If one cannot be opened.
        """
        self.name, self.index = name, open_index(path)
        self.default = Recommender(self.index, config)
        self._variants: OrderedDict[RecommendConfig, Recommender] = OrderedDict()
        self._lock = Lock()

    def recommender(self, config: RecommendConfig) -> Recommender:
        """Return the recommender of other settings; those used last stay open.

        Raises:
            CiterecError: If a part cannot be opened.
        """
        if config == self.default.config:
            return self.default
        with self._lock:
            found = self._variants.get(config) or Recommender(self.index, config)
            self._variants[config] = found
            self._variants.move_to_end(config)
            if len(self._variants) > MAX_VARIANTS:
                self._variants.popitem(last=False)
            return found

    @property
    def version(self) -> str:
        """The time of the build, and the start of a sha256 of files and models."""
        manifest = self.index.manifest
        digest = hashlib.sha256(orjson.dumps([manifest.checksums, manifest.settings]))
        for sums in sorted(self.index.models.glob(f"*/{MODEL_SUMS}")):
            digest.update(sums.read_bytes())
        return f"{manifest.created} {digest.hexdigest()[:12]}"


class Service:
    """Open indexes by name, the first one is the default, and the requests in flight."""

    def __init__(
        self,
        indexes: Mapping[str, Path],
        configs: Mapping[str, RecommendConfig] | None = None,
        settings: ServeConfig | None = None,
        rerankers: tuple[str, ...] = (),
    ) -> None:
        """Open the indexes and their models.

        Args:
            indexes: Index folders by name.
            configs: How papers are found and ordered where a request does not say otherwise, by index.
            settings: What the server accepts.
            rerankers: The models that requests may name, besides auto and none.

        Raises:
            CiterecError: If an index or a model cannot be opened.
        """
        self.settings, self.rerankers = settings or ServeConfig(), rerankers
        self.indexes = {
            name: OpenIndex(name, path, (configs or {}).get(name) or DEFAULT)
            for name, path in indexes.items()
        }
        self.hidden = {
            str(place): name for name, path in indexes.items() for place in (path.resolve(), path)
        }
        self.in_flight, self.is_closed = 0, False
        self._lock = Lock()
        self._seconds = 0.1  # of a query, a running mean
        self._models = ThreadPoolExecutor(1, "citerec-models")
        self._lookups = ThreadPoolExecutor(LOOKUPS, "citerec-lookups")

    def warm_up(self) -> None:
        """Answer a query by each index, so that the first request finds everything loaded."""
        with suppress(ImportError, RuntimeError):
            import_module("numba")  # BM25's loops are compiled from the first request on
        for one in self.indexes.values():
            one.default.recommend(title="a first search", explain=True)

    def open_index(self, name: str | None = None) -> OpenIndex:
        """Return an index by its name, by default the first one.

        Raises:
            ProblemError: If there is no such index.
        """
        names = [*self.indexes]
        if name is not None and name not in self.indexes:
            raise ProblemError(
                "not-found", f"no index {name[:60]!r}; there are: {', '.join(names)}"
            )
        return self.indexes[name or names[0]]

    def recommend(self, work: Callable[[OpenIndex], T], index: str | None) -> "Future[T]":
        """Start work that runs models; a future that is cancelled before it starts costs nothing.

        Raises:
            ProblemError: If there is no such index, too many requests are in flight, or the server is being stopped.
        """
        return self._start(self._models, work, index)

    def look_up(self, work: Callable[[OpenIndex], T], index: str | None) -> "Future[T]":
        """Start a short piece of work, as `recommend` does."""
        return self._start(self._lookups, work, index)

    def close(self) -> None:
        """Refuse new requests, and end; what waits is cancelled: the web server has drained before."""
        self.is_closed = True
        for pool in (self._lookups, self._models):
            pool.shutdown(cancel_futures=True)

    def _start(
        self, pool: ThreadPoolExecutor, work: Callable[[OpenIndex], T], index: str | None
    ) -> "Future[T]":
        opened = self.open_index(index)
        with self._lock:
            if self.is_closed:
                raise ProblemError(
                    "stopping", "the server is being stopped", headers={"Retry-After": "5"}
                )
            if self.in_flight >= self.settings.queue_size:
                wait = min(LONGEST_WAIT, max(1, round(self.in_flight * self._seconds)))
                raise ProblemError(
                    "queue-full",
                    f"{self.in_flight} requests are in flight; try again in {wait} s",
                    headers={"Retry-After": str(wait)},
                )
            self.in_flight += 1

        def run() -> T:
            started = monotonic()
            try:
                return work(opened)
            finally:
                self._seconds += 0.1 * (monotonic() - started - self._seconds)

        future = pool.submit(run)
        future.add_done_callback(self._leave)
        return future

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self.in_flight -= 1
