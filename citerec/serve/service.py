"""Answers requests over open indexes; no web framework is needed here.

A request is prepared by a thread of a small pool: drafts are parsed, lists are matched. Then it waits for a worker,
which runs it through the models, together with others (`batching`).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TypeVar

from citerec.errors import CiterecError
from citerec.export import Result
from citerec.export.jsonl import items
from citerec.missing import stream_any
from citerec.recommend import BatchRecommender
from citerec.recommendations import BatchResult
from citerec.serve.batching import Admission, Batcher, Job, too_late
from citerec.serve.indexes import Indexes
from citerec.serve.options import ModelSettings
from citerec.serve.prepare import Prepared, prepare, read_drafts
from citerec.serve.problems import ProblemError
from citerec.serve.schema import RecommendRequest
from citerec.serve.settings import ServeConfig
from citerec.serve.version import OpenVersion, alone
from citerec.types import Query, Recommendation

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The recommendations for one query."""

    query: Query
    items: tuple[Recommendation, ...]
    why_nothing: str = ""
    notices: tuple[str, ...] = ()

    def to_dicts(self, fields: Sequence[str] = ()) -> list[dict[str, object]]:
        """Return the papers as `citerec recommend --format json` writes them."""
        return items(Result(self.query, self.items, self.why_nothing), fields)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request; `as_json` is what the API sends."""

    index: str
    version: str
    answers: tuple[QueryAnswer, ...]  # one per query, in the order of the request
    notices: tuple[str, ...]
    not_found: tuple[str, ...]
    fields: tuple[str, ...] = ()
    batch: int = 1  # queries that went through the models together
    seconds: float = 0.0  # in the models

    def as_json(self) -> dict[str, object]:
        """Return what `schema.RecommendAnswer` describes."""
        return {
            "index": self.index,
            "version": self.version,
            "answers": [
                {
                    "query": one.query.id,
                    "results": one.to_dicts(self.fields),
                    "why_nothing": one.why_nothing,
                    "notices": list(one.notices),
                }
                for one in self.answers
            ],
            "notices": list(self.notices),
            "not_found": list(self.not_found),
        }


@dataclass(slots=True, eq=False)
class _Work:
    """A request that was prepared."""

    request: RecommendRequest
    prepared: Prepared
    version: OpenVersion
    recommender: BatchRecommender
    started: float = field(default_factory=monotonic)


class Service:
    """Open indexes by name; the first one is the default. Several threads may use it."""

    def __init__(
        self,
        indexes: Mapping[str, Path],
        models: ModelSettings | None = None,
        settings: ServeConfig | None = None,
    ) -> None:
        """Open the indexes and their models.

        Raises:
            CiterecError: If one cannot be opened.
        """
        self.settings = settings or ServeConfig()
        self.indexes = Indexes(indexes, models or ModelSettings())
        self.admission = Admission(self.settings.queue_size)
        self._pool = ThreadPoolExecutor(2, "citerec-prepare")
        self.batcher = Batcher(self._run, batch_size=self.settings.batch_size)
        # receives the queries of each batch, and the seconds that it took
        self.on_batch: Callable[[int, float], None] = lambda queries, seconds: None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the indexes, the default first."""
        return self.indexes.names

    @property
    def is_ready(self) -> bool:
        """Whether requests are answered."""
        return not self.admission.closed and self.batcher.is_alive

    def submit(self, request: RecommendRequest) -> "Future[Answered]":
        """Start to answer a request.

        The future holds a `ProblemError` or a `CiterecError` if it cannot be answered. If it is cancelled before a
        worker has started, no work is done.

        Raises:
            ProblemError: If too many queries are in flight.
        """
        self.admission.admit(1)
        deadline = monotonic() + self.settings.timeout_seconds
        answer: Future[Answered] = Future()
        admitted = [1]
        answer.add_done_callback(lambda _: self.admission.leave(admitted[0]))
        self._pool.submit(self._prepare, request, deadline, answer, admitted)
        return answer

    def call(self, work: Callable[[OpenVersion], Found], index: str | None) -> "Future[Found]":
        """Start a short piece of work on an index, such as a look-up.

        Raises:
            ProblemError: If too many queries are in flight.
        """
        self.admission.admit(1)

        def run() -> Found:
            with self.indexes.use(index) as version:
                return work(version)

        done = self._pool.submit(run)
        done.add_done_callback(lambda _: self.admission.leave(1))
        return done

    def close(self, seconds: float = 30.0) -> None:
        """Refuse new requests, answer those in flight, and close the indexes."""
        self.admission.drain(seconds)
        self._pool.shutdown()
        self.batcher.close()
        self.indexes.close()

    def _prepare(
        self,
        request: RecommendRequest,
        deadline: float,
        answer: "Future[Answered]",
        admitted: list[int],
    ) -> None:
        """Read a request, and put it into the queue; an error becomes the answer."""
        if answer.cancelled():
            return
        version: OpenVersion | None = None
        try:
            drafts = read_drafts(request)
            if (size := len(drafts.queries)) > self.settings.max_queries:
                most = self.settings.max_queries
                raise ProblemError(
                    "invalid-request", f"there are {size:,} queries; send at most {most} at once"
                )
            self.admission.admit(size - 1, more=1)
            admitted[0] = size
            version = self.indexes.acquire(request.index)
            prepared = prepare(request, drafts, version.index.papers)
            work = _Work(request, prepared, version, version.borrow(request))
        except Exception as error:
            if version:
                version.release()
            if answer.set_running_or_notify_cancel():
                answer.set_exception(error)
            return
        job = Job(work, size, _group(work), deadline, answer)
        answer.add_done_callback(lambda _: _release(work))
        self.batcher.put(job)

    def _run(self, jobs: Sequence[Job]) -> None:
        """Run jobs of one group, and set their results."""
        started = monotonic()
        size = sum(job.size for job in jobs)
        found = self._found([job.work for job in jobs])
        seconds = monotonic() - started
        self.admission.measured(size, seconds)
        self.on_batch(size, seconds)
        for job, results in zip(jobs, found, strict=True):
            if monotonic() > job.deadline:
                job.future.set_exception(too_late())
                continue
            try:
                job.future.set_result(_answered(job.work, results, size, seconds))
            except CiterecError as error:
                job.future.set_exception(error)

    def _found(self, works: Sequence[_Work]) -> list[list[BatchResult]]:
        first = works[0]
        if len(works) == 1:
            return [_one(first)]
        k = max(work.request.k for work in works)
        together = first.recommender.with_k(k)
        if not self.settings.rerank_together:
            together = alone(first.recommender, k)
        queries = [query for work in works for query in work.prepared.queries]
        results = together.stream_each(queries, [work.prepared.options for work in works])
        return [[result] for result in results]


def _one(work: _Work) -> list[BatchResult]:
    options = work.prepared.options
    results = stream_any(
        work.recommender.with_k(work.request.k),
        work.prepared.queries,
        year_max=options.year_max,
        excluded=options.excluded,
        cited=options.cited,
        explain=options.explain,
    )
    return list(results)


def _group(work: _Work) -> tuple[int, int, int] | None:
    """Return what requests that run together have in common; None for a request that runs alone.

    A list of fewer papers is the start of a longer one, unless the stages depend on `k`.
    """
    if len(work.prepared.queries) > 1 or work.prepared.is_list:
        return None
    config, k = work.recommender.config, work.request.k
    cascade = work.recommender.cascade
    depends = config.diversity > 0 or bool(cascade and cascade.early_stop)
    depth = work.recommender.with_k(k).pipeline.depth
    return id(work.recommender), depth, k if depends else 0


def _answered(work: _Work, results: Sequence[BatchResult], batch: int, seconds: float) -> Answered:
    pairs = zip(work.prepared.queries, results, strict=True)
    answers = tuple(_query_answer(work, query, result) for query, result in pairs)
    return Answered(
        work.version.name,
        work.version.version,
        answers,
        work.prepared.notices,
        work.prepared.not_found,
        tuple(field.value for field in work.request.fields),
        batch,
        seconds,
    )


def _query_answer(work: _Work, query: Query, result: BatchResult) -> QueryAnswer:
    options, recommender = work.prepared.options, work.recommender
    found, why = result.items[: work.request.k], ""
    if not found:
        why = recommender.explain_no_results(
            query, year_max=options.year_max, excluded=options.excluded
        )
    return QueryAnswer(query, found, why, result.notices)


def _release(work: _Work) -> None:
    work.version.give_back(work.recommender)
    work.version.release()
