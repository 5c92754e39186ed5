"""The settings of a server: addresses and limits."""

from dataclasses import dataclass

from citerec.errors import ConfigError
from citerec.settings import check_least


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """What a server accepts, and how much of it."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0 for a free one
    unix_socket: bool = True  # whether it also listens on `local.socket_path()`
    max_body_bytes: int = 16 * 2**20
    max_queries: int = 64  # of one request
    max_k: int = 1000  # recommendations per query
    queue_size: int = 128  # queries that wait; one more is answered by 429
    batch_size: int = 16  # queries that go through the models together; 1 turns batching off
    timeout_seconds: float = 60.0  # from the arrival of a request to its answer

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port must lie in [0, 65535], got {self.port}")
        least = {"max_body_bytes": 1, "max_queries": 1, "max_k": 1, "queue_size": 1}
        check_least(self, {**least, "batch_size": 1})
        if not self.timeout_seconds > 0:
            raise ConfigError(f"timeout_seconds must be positive, got {self.timeout_seconds}")
