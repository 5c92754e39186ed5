"""Serves the application of `citerec serve` by Ray Serve, in as many replicas as the requests need."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citerec.config import RecommendConfig
from citerec.distributed.cluster import Cluster
from citerec.errors import ConfigError, extra

if TYPE_CHECKING:
    from citerec.serve.service import ServeConfig

NAME = "citerec"  # of the application in Ray Serve


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many replicas there are; each has the indexes and models open."""

    least: int = 1
    most: int = 4
    requests: int = 8  # in flight per replica; more start another one
    cpus: int = 1  # processors and threads of a replica

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise ConfigError(
                f"replicas must be at least 1, and at most as many as {self.most}, got {self.least}"
            )
        if self.requests < 1 or self.cpus < 1:
            raise ConfigError("requests and cpus of a replica must be at least 1")


@contextmanager
def served(
    cluster: Cluster,
    indexes: Mapping[str, Path],
    *,
    configs: Mapping[str, RecommendConfig] | None = None,
    settings: "ServeConfig | None" = None,
    replicas: Replicas | None = None,
) -> Generator[str]:
    """Serve indexes on a cluster until the block ends; yield the URL on this machine.

    Limits and tokens of the settings hold in each replica.

    Args:
        cluster: Where the replicas run; each node needs the indexes and models at the same paths.
        indexes: Index folders by name, the default first.
        configs: How papers are found and ordered, by index.
        settings: What the server accepts.
        replicas: How many replicas.

    Raises:
        MissingExtraError: If the extra `serve` is not installed.
    """
    with extra("serve"):
        from citerec.serve.app import create_app
        from citerec.serve.service import ServeConfig, Service
    replicas, settings = replicas or Replicas(), settings or ServeConfig()
    folders = {name: path.absolute() for name, path in indexes.items()}

    def build() -> Any:  # in each replica
        service = Service(folders, configs, settings)
        service.warm_up()
        return create_app(service)

    with extra("ray"):
        serve: Any = import_module("ray.serve")
    deployment = serve.deployment(
        name=NAME,
        max_ongoing_requests=settings.queue_size,
        ray_actor_options={"num_cpus": replicas.cpus},
        autoscaling_config={
            "min_replicas": replicas.least,
            "max_replicas": replicas.most,
            "target_ongoing_requests": replicas.requests,
        },
    )
    serve.start(http_options={"host": settings.host, "port": settings.port})
    serve.run(deployment(serve.ingress(build)()).bind(), name=NAME, route_prefix="/")
    try:
        yield f"http://{settings.host}:{settings.port}/"
    finally:
        serve.shutdown()
