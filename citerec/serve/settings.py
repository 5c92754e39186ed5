"""The settings of a server: addresses, limits, and who may use it."""

import re
from dataclasses import dataclass, field

from citerec.errors import ConfigError, shown
from citerec.settings import check_least

MAX_RESULTS = 1000  # papers of one answer
# As browsers send it, since the header is compared as text: lower case, and no default port.
ORIGIN = re.compile(
    r"\*|null|(?!http://[^/]*:80$|https://[^/]*:443$)"
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeConfig:
    """What a server accepts, and how much of it."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0 for a free one
    tokens: tuple[str, ...] = field(default=(), repr=False)  # bearer tokens; empty: none is needed
    hosts: tuple[str, ...] = ()  # more names by which clients may address it; "*" for any
    # origins of other web pages that may call the API (CORS); "*" for any, "null" for those without an origin
    origins: tuple[str, ...] = ()
    max_body_bytes: int = 16 * 2**20  # of one request
    max_held_bytes: int = 128 * 2**20  # of all requests in flight together
    max_queries: int = 64  # of one request
    queue_size: int = 128  # queries in flight; one more is answered by 429
    batch_size: int = 16  # queries that go through the models together; 1 turns batching off
    # whether the reranker scores the pairs of all requests of a batch together: faster on a GPU, but a score may
    # then differ from that of the request alone in the last digits
    rerank_together: bool = False
    timeout_seconds: float = 60.0  # from the arrival of a request to its answer

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port must lie in [0, 65535], got {self.port}")
        least = {"max_body_bytes": 1, "max_held_bytes": 1, "max_queries": 1, "queue_size": 1}
        check_least(self, {**least, "batch_size": 1, "timeout_seconds": 0.001})
        if wrong := [origin for origin in self.origins if not ORIGIN.fullmatch(origin)]:
            raise ConfigError(
                f"{shown(wrong[0])} is no origin of a web page; expected scheme and host as browsers send them, "
                "such as https://example.org or http://localhost:3000 (lower case, no path, no default port), or null, "
                "or *"
            )
        if any(len(token) < 16 or not token.isascii() for token in self.tokens):
            raise ConfigError(
                "a token must have at least 16 ASCII characters; make one: openssl rand -hex 32"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in {"127.0.0.1", "::1", "localhost"}
