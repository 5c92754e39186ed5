"""What a service is: its address and key, and how its answers are read as works."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from citerec.corpus.readers.fields import Fields
from citerec.errors import BadRecordError, CiterecError, ConfigError, InvalidValueError
from citerec.types import Paper

_KEY = re.compile(r"[\x21-\x7e]{1,500}")
_LOCAL = {"localhost", "127.0.0.1", "::1"}


class CollectError(CiterecError):
    """A service that cannot be reached, refuses a request, or sends what citerec cannot read."""


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
    rate: float  # requests per second

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(
                f"the address of {self.title} must begin with https://, found {self.address!r}"
            )
        if self.key and not _KEY.fullmatch(self.key):
            raise ConfigError(
                f"{self.variable} holds characters that no key has; copy the key again"
            )
        if self.key and parts.scheme == "http" and parts.hostname not in _LOCAL:
            raise ConfigError(
                f"{self.address} would receive the key in {self.variable} unencrypted; use https://, or unset it"
            )
        if not 0.001 <= self.rate <= 1000:
            raise ConfigError(
                f"--rate must be from 0.001 to 1000 requests a second, got {self.rate}"
            )

    @property
    def address(self) -> str:
        """The address for a message, without a user and a password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, slots=True)
class Work:
    """A paper of a service; its `citations` are ids of the same service."""

    paper: Paper
    times_cited: int = 0  # by all papers that the service knows

    @property
    def id(self) -> str:
        """Its id in the service."""
        return self.paper.id


def read_work(raw: dict[str, Any], count: str, read: Callable[[Fields], Paper]) -> Work | None:
    """Return the work of a JSON object; None if its id or title is missing, or a field has a wrong type.

    Args:
        raw: The object.
        count: The field with the number of its citations.
        read: Makes the paper.
    """
    try:
        paper = read(Fields(raw, Path(), 0))
    except (BadRecordError, InvalidValueError):
        return None
    return Work(paper, number_of(raw, count)) if paper.title else None


def number_of(raw: dict[str, Any], name: str) -> int:
    """Return a number of a JSON object; 0 if it is missing."""
    value = raw.get(name)
    return value if isinstance(value, int) else 0


def text_of(raw: dict[str, Any], name: str) -> str:
    """Return a string of a JSON object; empty if it is missing."""
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def objects(value: object, name: str) -> list[dict[str, Any]]:
    """Return the objects in a list of a JSON object; missing ones are left out."""
    items = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    listed = cast("list[Any]", items) if isinstance(items, list) else []
    return [cast("dict[str, Any]", item) for item in listed if isinstance(item, dict)]


def batches(
    ids: Sequence[str], most: int, weights: Mapping[str, int] | None = None, total: int = 0
) -> Iterator[list[str]]:
    """Yield ids in lists of at most `most`, whose weights add up to at most `total`."""
    batch: list[str] = []
    weight = 0
    for one in ids:
        added = weights[one] if weights else 0
        if batch and (len(batch) == most or weight + added > total):
            yield batch
            batch, weight = [], 0
        batch.append(one)
        weight += added
    if batch:
        yield batch
