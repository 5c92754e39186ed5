"""Metrics in the text format of Prometheus; the only module that imports its client."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from citerec.serve.service import Service

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """The metrics of one application."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, service: Service) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter(
            "citerec_requests",
            "Requests by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "citerec_request_seconds",
            "Time to answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._queries = Counter("citerec_queries", "Queries that were ranked.", registry=registry)
        self._models = Histogram(
            "citerec_model_seconds",
            "Time of a request in the models.",
            buckets=SECONDS,
            registry=registry,
        )
        in_flight = Gauge(
            "citerec_requests_in_flight", "Requests not answered yet.", registry=registry
        )
        in_flight.set_function(lambda: service.in_flight)
        papers = Gauge("citerec_index_papers", "Papers of an index.", ["index"], registry=registry)
        for name, opened in service.indexes.items():
            papers.labels(name).set(len(opened.index.papers))

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that ids in paths make no new series."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def ranked(self, queries: int, seconds: float) -> None:
        """Count the queries of a request."""
        self._queries.inc(queries)
        self._models.observe(seconds)

    def text(self) -> bytes:
        """Return all metrics."""
        return generate_latest(self._registry)
