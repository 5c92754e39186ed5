"""Requests of `citerec recommend` and their results as JSON; numbers are exact.

A request is one object. Its answer is a stream of lines, each of one object with one key of `Event`, or empty: an
empty line says that the work goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from citerec.cli.request import NO_CITED, ListedFile, Options, RecommendRequest
from citerec.drafts import QueryFile
from citerec.export.result import Result
from citerec.settings import settings_from
from citerec.types import Paper, Query, Recommendation, StageHit

if TYPE_CHECKING:
    from citerec.bibliography.paper_list import PaperList


class Event(StrEnum):
    """The kinds of lines of an answer."""

    MESSAGE = "message"  # a line for stderr
    READY = "ready"  # the models are open
    PROGRESS = "progress"  # task, done, total
    RESULT = "result"  # of the next query
    END = "end"  # all results were sent
    ERROR = "error"  # the work failed


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as a server receives it."""

    program: dict[str, str]  # of the command
    index: Path  # the absolute path of the index, without links
    named: str  # the path of the index as the command names it
    manifest: str  # the sha256 of the manifest of the index
    request: RecommendRequest


def dump_request(sent: Sent) -> bytes:
    """Return a request as JSON.

    Raises:
        CiterecError: If a list of papers cannot be read.
        TypeError: If a text cannot be written as UTF-8.
    """
    request = sent.request
    is_none = request.cited is not None and request.cited.is_none
    content = {
        "program": sent.program,
        "index": str(sent.index),
        "named": sent.named,
        "manifest": sent.manifest,
        "options": request.options,
        "queries": request.queries,
        "cited_in_draft": request.drafts.cited,
        "cited_from": request.drafts.cited_from,
        "excluded": _listed(request.excluded),
        "cited": {"path": NO_CITED, "papers": None} if is_none else _listed(request.cited),
        "quiet": request.quiet,
        "verbose": request.verbose,
    }
    return orjson.dumps(content)


def load_request(body: bytes) -> Sent:
    """Return the request of a body.

    Raises:
        ValueError: If it is not one.
        CiterecError: If a value in it is invalid.
    """
    try:
        content: Any = orjson.loads(body)
        drafts = QueryFile(
            tuple(settings_from(Query, one) for one in content["queries"]),
            _paper_list(content["cited_in_draft"]),
            content["cited_from"],
        )
        request = RecommendRequest(
            options=settings_from(Options, content["options"]),
            drafts=drafts,
            excluded=_listed_file(content["excluded"]),
            cited=_listed_file(content["cited"]),
            quiet=content["quiet"],
            verbose=content["verbose"],
        )
        index = Path(content["index"])
        return Sent(content["program"], index, content["named"], content["manifest"], request)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a request of citerec recommend: {error}") from error


def dump_event(kind: Event, value: Any) -> bytes:
    """Return a line of an answer."""
    return orjson.dumps({kind.value: value}, default=float, option=orjson.OPT_APPEND_NEWLINE)


def load_event(line: bytes) -> tuple[Event, Any]:
    """Return the kind and the value of a line of an answer.

    Raises:
        ValueError: If it is not one.
    """
    content: Any = orjson.loads(line)
    if not isinstance(content, dict) or len(content) != 1:
        raise ValueError("expected an object with one key")
    [(kind, value)] = content.items()
    return Event(kind), value


def result_values(result: Result) -> dict[str, Any]:
    """Return a result as JSON values; its query is known to the receiver."""
    return {"items": result.recommendations, "why_nothing": result.why_nothing}


def result_of(values: Mapping[str, Any], query: Query) -> Result:
    """Return the result for a query.

    Raises:
        ValueError: If the values are not one.
        CiterecError: If a value in it is invalid.
    """
    try:
        items = tuple(map(_recommendation, values["items"]))
        return Result(query, items, values["why_nothing"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a result: {error}") from error


def _recommendation(values: dict[str, Any]) -> Recommendation:
    paper, stages = values["paper"], values["stages"]
    lists = {name: tuple(paper[name]) for name in ("authors", "citations")}
    return Recommendation(
        rank=values["rank"],
        paper=Paper(**paper | lists),
        score=values["score"],
        probability=values["probability"],
        stages={name: StageHit(hit["rank"], hit["score"]) for name, hit in stages.items()},
        reasons=tuple(values["reasons"]),
    )


def _listed(file: ListedFile | None) -> dict[str, Any] | None:
    return None if file is None else {"path": file.path, "papers": file.read()}


def _listed_file(values: dict[str, Any] | None) -> ListedFile | None:
    """Return a list whose papers are given: a server never reads the file."""
    if values is None:
        return None
    nothing = {"entries": (), "unread": ()}
    return ListedFile(values["path"], _paper_list(values["papers"] or nothing))


def _paper_list(values: dict[str, Any] | None) -> "PaperList | None":
    if values is None:
        return None
    from citerec.bibliography.paper_list import Entry, PaperList

    entries = tuple(settings_from(Entry, one) for one in values["entries"])
    return PaperList(entries, tuple(values["unread"]))
