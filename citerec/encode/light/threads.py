"""Runs NumPy on several texts in parallel, on one thread each.

OpenBLAS's own threads would share a text, and on a busy machine they cost more than they gain.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class TextThreads:
    """Threads that compute one text each."""

    def __init__(self, threads: int) -> None:
        from threadpoolctl import ThreadpoolController

        self._threads = threads
        self._blas = ThreadpoolController().select(internal_api="openblas")

    def each(self, texts: int, compute: Callable[[int], Result]) -> Iterator[Result]:
        """Yield the result for each text, by its number from 0; after an error or Ctrl-C no further text is started."""
        with self._blas.limit(limits=1):
            if min(texts, self._threads) < 2:
                yield from map(compute, range(texts))
                return
            with ThreadPoolExecutor(min(texts, self._threads)) as workers:
                try:
                    yield from workers.map(compute, range(texts))
                finally:
                    workers.shutdown(wait=False, cancel_futures=True)
