"""Metrics in the text format of Prometheus; the only module that imports its client."""

from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

if TYPE_CHECKING:
    from citerec.serve.service import Service

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
QUERIES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """The metrics of one application."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        own: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "citerec_requests", "Requests by route and status.", ["route", "status"], **own
        )
        self._seconds = Histogram(
            "citerec_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, **own
        )
        self._batch = Histogram(
            "citerec_batch_queries", "Queries that ran together.", buckets=QUERIES, **own
        )
        self._models = Histogram(
            "citerec_batch_seconds", "Time of a batch in the models.", buckets=SECONDS, **own
        )
        in_flight = Gauge("citerec_queries_in_flight", "Queries not answered yet.", **own)
        in_flight.set_function(lambda: service.admission.in_flight)
        waiting = Gauge("citerec_requests_waiting", "Requests that wait for the models.", **own)
        waiting.set_function(lambda: service.batcher.waiting)
        self._papers = Gauge("citerec_index_papers", "Papers of an index.", ["index"], **own)
        service.on_batch = self._on_batch

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that ids in paths make no new series."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics."""
        indexes = self._service.indexes
        for name in indexes.names:
            with indexes.use(name) as version:
                self._papers.labels(name).set(len(version.index.papers))
        return generate_latest(self._registry)

    def _on_batch(self, queries: int, seconds: float) -> None:
        self._batch.observe(queries)
        self._models.observe(seconds)
