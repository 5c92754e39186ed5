"""Opens a recommender in a thread, and runs all calls of it there, one after the other."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

from citerec.api.recommender import Recommender
from citerec.errors import ConfigError
from citerec.java import leave_thread

MOST_WAITING = 64  # calls

T = TypeVar("T")


class Worker:
    """One thread with a recommender: models are loaded once, and memory does not grow with the clients."""

    def __init__(self, open_recommender: Callable[[], Recommender]) -> None:
        """Prepare; `start` opens the recommender."""
        self._executor = ThreadPoolExecutor(1, "citerec-mcp")
        self._lock, self._waiting = Lock(), 0
        self._open = open_recommender
        self._opened: Future[Recommender] | None = None

    def start(self) -> None:
        """Start to open the recommender in the background, once; an error is raised by each call."""
        if self._opened is None:
            self._opened = self._executor.submit(self._open)

    async def run(self, work: Callable[[Recommender], T]) -> T:
        """Return what `work` returns for the recommender.

        Raises:
            ConfigError: If too many calls wait.
            CiterecError: If the recommender could not be opened, or as `work` raises.
        """
        with self._lock:
            if self._waiting >= MOST_WAITING:
                raise ConfigError(f"{MOST_WAITING} calls are waiting; call again in a few seconds")
            self._waiting += 1
        self.start()
        job = self._executor.submit(lambda: work(self._recommender()))
        job.add_done_callback(self._leave)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """Finish the calls, and close the recommender."""
        self._executor.submit(self._close)
        self._executor.shutdown()

    def _close(self) -> None:
        if self._opened and not self._opened.exception():
            self._opened.result().close()
            leave_thread()

    def _recommender(self) -> Recommender:
        assert self._opened  # `run` has started to open it
        return self._opened.result()

    def _leave(self, _: "Future[Any]") -> None:
        with self._lock:
            self._waiting -= 1
