"""The data that both services return, and what a service must offer."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from citerec.errors import CiterecError, InvalidValueError
from citerec.text import one_line
from citerec.types import MAX_ABSTRACT, MAX_TITLE, YEARS, Paper, id_fault

_MARKUP = re.compile(
    r"</?(?:i|b|em|p|sub|sup|sc|scp|strong|span|(?:jats|mml):[\w-]+)(?:\s[^<>]*)?>"
)


class CollectError(CiterecError):
    """A service that cannot be reached, refuses a request, or sends what citerec cannot read."""


@dataclass(frozen=True, slots=True)
class Work:
    """A paper of a service; its `citations` are ids of the same service."""

    paper: Paper
    times_cited: int = 0  # by all papers that the service knows

    @property
    def id(self) -> str:
        """Its id in the service."""
        return self.paper.id


@dataclass(frozen=True, slots=True)
class Link:
    """One citation, found in a list of citing works."""

    citing: str
    cited: str


class Source(Protocol):
    """A service that knows papers and their citations."""

    @property
    def title(self) -> str:
        """The name of the service in messages."""
        ...

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that the service knows."""
        ...

    def find_title(self, title: str) -> list[Work]:
        """Return works with a similar title, best first; their references may be missing."""
        ...

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that match a query, best first."""
        ...

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Work]:
        """Return the works with these ids; unknown ones, and works without a title, are left out."""
        ...

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the ids of the references of works that `fetch` returned before."""
        ...

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[Link]:
        """Yield citations of these works, which `fetch` returned before.

        Args:
            ids: The cited works.
            most: Citing works of one work; the most cited ones if the service can sort them.
            since: A date, YYYY-MM-DD; only works published on that day or later. Empty for all.
        """
        ...

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited; 0 for unknown ones."""
        ...


def make_work(times_cited: object, **fields: Any) -> Work | None:
    """Return a work of raw fields; a field of a wrong type counts as missing.

    Returns None if there is no usable id or title.
    """
    if id_fault(fields["id"]) or not text_of(fields["title"]):
        return None
    title = plain(text_of(fields["title"]))[:MAX_TITLE]
    abstract = plain(text_of(fields.pop("abstract", "")))[:MAX_ABSTRACT]
    year = fields.pop("year", None)
    values: dict[str, Any] = {
        name: tuple(cast("list[str]", value)) if isinstance(value, list) else one_line(value)
        for name, value in fields.items()
    }
    values |= {"title": title, "abstract": abstract}
    is_year = isinstance(year, int) and not isinstance(year, bool) and year in YEARS
    values["year"] = year if is_year else None
    try:
        paper = Paper(**values)
    except InvalidValueError:
        return None
    return Work(paper, times_cited if isinstance(times_cited, int) and times_cited > 0 else 0)


def plain(text: str) -> str:
    """Return a title or abstract in one line, without tags and entities."""
    return one_line(html.unescape(_MARKUP.sub("", html.unescape(text))))


def text_of(value: object) -> str:
    """Return a string of JSON; empty for another type."""
    return value.strip() if isinstance(value, str) else ""


def dict_of(value: object) -> dict[str, Any]:
    """Return an object of JSON; empty for another type."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list of JSON; empty for another type."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def texts_of(value: object) -> list[str]:
    """Return the strings of a list of JSON that are not empty; empty for another type."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and item]


def chunks(ids: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    """Yield the ids in parts of at most `most`."""
    for start in range(0, len(ids), most):
        yield ids[start : start + most]
