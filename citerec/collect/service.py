"""A service: its address, its key, and how politely it is used."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from urllib.parse import urlsplit

from citerec.errors import ConfigError

_KEY = re.compile(r"[\x21-\x7e]{1,500}")
_LOCAL = {"localhost", "127.0.0.1", "::1"}


class SourceName(StrEnum):
    """The services."""

    OPENALEX = "openalex"
    S2 = "s2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service and its key, which is sent, but never printed or stored."""

    title: str
    url: str
    key: str = field(default="", repr=False)
    variable: str  # the environment variable of the key
    parameter: str = ""  # the query parameter of the key
    header: str = ""  # the header of the key

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(
                f"the address of {self.title} must begin with https://, found {address(self.url)!r}"
            )
        if self.key and not _KEY.fullmatch(self.key):
            raise ConfigError(
                f"{self.variable} holds characters that no key has; copy the key again"
            )
        if self.key and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ConfigError(
                f"{address(self.url)} would receive the key in {self.variable} unencrypted; use https://, or unset it"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """How fast requests are sent, and how often a failed one is repeated."""

    rate: float  # requests per second
    tries: int = 8  # of one request
    first_pause: float = 1.0  # seconds; doubled at each try
    longest_pause: float = 60.0  # seconds
    timeout: float = 60.0  # seconds without a byte; a response may take five times as long
    seed: int = 0  # of the jitter

    def __post_init__(self) -> None:
        if not 0.001 <= self.rate <= 1000:
            raise ConfigError(
                f"--rate must be from 0.001 to 1000 requests a second, got {self.rate}"
            )


def retry_after(value: str, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for: a number, or a date; None if it has neither."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value.strip()):
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    return max((date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds(), 0.0)


def address(url: str) -> str:
    """Return an address for a message, without a user and a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
