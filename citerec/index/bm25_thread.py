"""Builds the Lucene part of an index in a separate thread, so that the other parts are read and written meanwhile."""

import sys
from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from citerec.folder import BM25
from citerec.index.bm25 import Bm25Builder, write_rows
from citerec.index.write_postings import add_postings
from citerec.java import leave_thread
from citerec.sums import checksums_of, files_in
from citerec.types import Log, Paper

_QUEUE = 2  # batches that may wait for Lucene
# Seconds. By default, a thread that comes back from Java or from the disk waits 5 milliseconds for the Python code of
# the other one, at each of many short calls.
_SWITCH_INTERVAL = 2e-4

Result = tuple[int, dict[str, str]]


class Bm25Thread:
    """Adds papers to Lucene's index, completes it and stores its postings."""

    def __init__(self, folder: Path, builder: Bm25Builder, pool: ThreadPoolExecutor) -> None:
        self._folder, self._builder, self._pool = folder, builder, pool
        self._waiting: deque[Future[None]] = deque()
        self._finished: Future[Result] | None = None

    def add(self, batch: list[Paper]) -> None:
        """Add a batch of papers; wait if several are waiting.

        Raises:
            OutputError: If Lucene could not write an earlier batch.
        """
        if len(self._waiting) == _QUEUE:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._builder.add, batch))

    def finish(self, rows: Mapping[str, int], log: Log | None = None) -> None:
        """Complete the index and store its postings, without waiting for that.

        Args:
            rows: The row of each docid.
            log: Receives the reason if the postings are not stored.

        Raises:
            OutputError: If Lucene could not write a batch.
        """
        for done in self._waiting:
            done.result()
        self._finished = self._pool.submit(self._finish, rows, log)

    def result(self) -> Result:
        """Wait for the end of `finish`; return the number of Lucene's documents, and the checksums of its files.

        Raises:
            OutputError: If a file cannot be written.
        """
        assert self._finished
        return self._finished.result()

    def _finish(self, rows: Mapping[str, int], log: Log | None) -> Result:
        self._builder.close()
        documents = write_rows(self._folder / BM25, rows)
        names = [f"{BM25}/{name}" for name in files_in(self._folder / BM25)]
        sums = checksums_of(self._folder, names)
        add_postings(self._folder, sums, log)
        return documents, sums


@contextmanager
def bm25_thread(folder: Path, threads: int) -> Generator[Bm25Thread]:
    """Open Lucene's index in the folder of an index; it is closed when the block ends.

    Within the block, the threads of this process take turns more often.

    Args:
        folder: The folder of the index.
        threads: The number of threads that add papers.
    """
    builder = Bm25Builder(folder / BM25, threads=threads)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with ThreadPoolExecutor(1) as pool:
        try:
            yield Bm25Thread(folder, builder, pool)
        except BaseException:
            pool.submit(builder.abandon)
            raise
        finally:
            pool.submit(leave_thread)
            sys.setswitchinterval(interval)
