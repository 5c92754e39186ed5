"""Dynamic batching: queries that wait while the models are busy go through them together.

Nothing waits for a batch to fill: a worker takes what has come. A query is grouped with others of the same index
version and settings. Batches change no answer: see `version.EachAlone`.
"""

import logging
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import monotonic
from typing import Any

from citerec.java import leave_thread
from citerec.serve.problems import ProblemError

LOG = logging.getLogger("citerec.serve")
LONGEST_WAIT = 60  # seconds of Retry-After


@dataclass(slots=True, eq=False)
class Job:
    """One request in the queue."""

    work: Any  # what the worker receives
    size: int  # queries
    group: Hashable | None  # jobs of an equal group may run together; None: it runs alone
    deadline: float  # of `monotonic`
    future: "Future[Any]" = field(default_factory=Future[Any])
    queued: float = field(default_factory=monotonic)
    batch: int = 0  # queries that ran together with it, and its own


class Admission:
    """Counts the queries in flight, from arrival to answer."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Condition()
        self.in_flight = 0
        self.closed = False
        self._seconds = 0.1  # per query, a running mean

    def admit(self, queries: int, *, more: int = 0) -> None:
        """Count queries as in flight; `more` of them belong to a request that was admitted before.

        Raises:
            ProblemError: If there are too many.
        """
        with self._lock:
            if self.closed and not more:
                raise ProblemError(
                    "stopping", "the server is being stopped", headers={"Retry-After": "5"}
                )
            if self.in_flight + queries > self._most and self.in_flight > more:
                wait = min(LONGEST_WAIT, max(1, round(self.in_flight * self._seconds)))
                raise ProblemError(
                    "queue-full",
                    f"{self.in_flight} queries are in flight; try again in {wait} s",
                    headers={"Retry-After": str(wait)},
                )
            self.in_flight += queries

    def leave(self, queries: int) -> None:
        """Count queries as answered."""
        with self._lock:
            self.in_flight -= queries
            self._lock.notify_all()

    def measured(self, queries: int, seconds: float) -> None:
        """Learn how long queries take."""
        self._seconds += 0.1 * (seconds / max(queries, 1) - self._seconds)

    def drain(self, seconds: float) -> bool:
        """Refuse new requests, and wait until those in flight are answered; returns whether all were."""
        with self._lock:
            self.closed = True
            return self._lock.wait_for(lambda: self.in_flight <= 0, seconds)


class Batcher:
    """Worker threads that run jobs in batches."""

    def __init__(
        self, run: Callable[[Sequence[Job]], None], *, batch_size: int, workers: int = 1
    ) -> None:
        """Start the workers.

        Args:
            run: Runs jobs of one group, and sets the result of each; an exception is set for all of them.
            batch_size: Queries per batch; a larger job runs alone.
            workers: Threads.
        """
        self._run, self._batch_size = run, batch_size
        self._queue: deque[Job] = deque()
        self._changed = Condition()
        self._stopped = False
        self._threads = [
            Thread(target=self._work, name=f"citerec-models-{n}", daemon=True)
            for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """The number of jobs that wait."""
        return len(self._queue)

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        return all(thread.is_alive() for thread in self._threads)

    def put(self, job: Job) -> None:
        """Append a job."""
        with self._changed:
            self._queue.append(job)
            self._changed.notify()

    def close(self) -> None:
        """Run the jobs that wait, and end the workers."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while jobs := self._next():
            try:
                self._run(jobs)
            except Exception as error:
                self._run_each(jobs, error)
        with suppress(Exception):
            leave_thread()

    def _run_each(self, jobs: Sequence[Job], error: Exception) -> None:
        """After an error, run the jobs of a batch one by one: one of them is at fault, not all."""
        waiting = [job for job in jobs if not job.future.done()]
        if len(jobs) == 1:
            for job in waiting:
                job.future.set_exception(error)
            return
        for job in waiting:
            try:
                self._run([job])
            except Exception as own:
                if not job.future.done():
                    job.future.set_exception(own)

    def _next(self) -> list[Job]:
        """Wait for jobs, and return those of the next batch; none once the batcher is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopped)
                if not self._queue:
                    return []
                batch = self._take()
            if ready := [job for job in batch if _is_wanted(job)]:
                size = sum(job.size for job in ready)
                for job in ready:
                    job.batch = size
                return ready

    def _take(self) -> list[Job]:
        """Remove the first job from the queue, and those that fit into its batch."""
        first = self._queue.popleft()
        batch, size = [first], first.size
        if first.group is None:
            return batch
        left = deque[Job]()
        while self._queue:
            job = self._queue.popleft()
            if job.group == first.group and size + job.size <= self._batch_size:
                batch.append(job)
                size += job.size
            else:
                left.append(job)
        self._queue = left
        return batch


def _is_wanted(job: Job) -> bool:
    """Whether the client still waits; a job that is too late gets an error."""
    if not job.future.set_running_or_notify_cancel():
        return False
    if monotonic() > job.deadline:
        job.future.set_exception(too_late())
        return False
    return True


def too_late() -> ProblemError:
    """Return the error of a request that was not answered in time."""
    return ProblemError(
        "timeout", "the answer took too long; send fewer queries at once, or try again later"
    )
