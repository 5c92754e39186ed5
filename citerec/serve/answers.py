"""What routes share: waiting for a future while the client is connected, and the answers of errors."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from typing import Any, TypeVar

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from citerec.errors import CiterecError
from citerec.serve.batching import too_late
from citerec.serve.guard import problem_response
from citerec.serve.problems import CLOSED, MEDIA_TYPE, ProblemError, problem_of
from citerec.serve.service import Service

LOG = logging.getLogger("citerec.serve")
Found = TypeVar("Found")
MAX_ERRORS = 20  # faults of one request that an answer names
EXPECTED = 'send an object, such as {"title": "Late interaction"}'
_NO_OBJECT = ("missing", "model_attributes_type", "model_type", "dict_type")  # Pydantic's names

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_DESCRIPTIONS = {
    400: "The request cannot be parsed.",
    401: "A token is needed.",
    404: "No such index or paper.",
    422: "A value is wrong.",
    429: "Too many requests: see Retry-After.",
    503: "The server is being stopped.",
    504: "It took too long.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of errors."""
    content = {MEDIA_TYPE: {"schema": PROBLEM_SCHEMA}}
    return {s: {"description": _DESCRIPTIONS[s], "content": content} for s in statuses}


def json(content: object) -> Response:
    """Return an answer; floats are written as `citerec recommend --format json` writes them."""
    return Response(orjson.dumps(content), media_type="application/json")


async def finished(request: Request, future: "Future[Found]", seconds: float) -> Found:
    """Wait for a future; it is cancelled if the client goes away or the time is over.

    Raises:
        ProblemError: If it takes too long.
    """
    answer = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({answer, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        if gone.done():
            raise ProblemError("timeout", "the client is gone", status_code=CLOSED)
        raise too_late()
    finally:
        answer.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def hidden_of(service: Service) -> dict[str, str]:
    """Return the paths that errors must not show, with the names of their indexes."""
    return service.indexes.hidden


async def on_problem(request: Request, error: Exception) -> Response:
    """Answer a `ProblemError`."""
    assert isinstance(error, ProblemError)
    return _response(request, error)


async def on_citerec_error(request: Request, error: Exception) -> Response:
    """Answer a `CiterecError`; one that is not the client's fault is logged."""
    assert isinstance(error, CiterecError)
    problem = problem_of(error, hidden_of(request.app.state.service))
    if problem.status >= 500:
        LOG.error("%s: %s", type(error).__name__, error, extra={"fields": _entry(request)})
    return _response(request, problem)


async def on_invalid(request: Request, error: Exception) -> Response:
    """Answer a request that its schema refuses."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if found and found[0].get("type") == "json_invalid":
        detail = _not_json(str(error.body), int(found[0]["loc"][1]), found[0]["ctx"]["error"])
        return _response(request, ProblemError("invalid-request", detail, status_code=400))
    faults = list(islice(_faults(found, error.body), MAX_ERRORS))
    first = f"{faults[0]['pointer'] or 'the body'}: {faults[0]['detail']}" if faults else "invalid"
    return _response(request, ProblemError("invalid-request", first, faults))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an error of the framework, such as an unknown path."""
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "invalid-request")
    headers = dict(error.headers or {})
    detail = str(error.detail)
    if isinstance(error.__cause__, (UnicodeDecodeError, RecursionError)):  # of the body's JSON
        fault = "not UTF-8" if isinstance(error.__cause__, UnicodeError) else "nested too deeply"
        detail = f"the body is {fault}; {EXPECTED}"
    return _response(
        request, ProblemError(kind, detail, headers=headers, status_code=error.status_code)
    )


def _response(request: Request, problem: ProblemError) -> Response:
    # Clients of Semantic Scholar read "error".
    more = {"error": problem.detail} if request.url.path.startswith("/recommendations/") else {}
    return problem_response(problem, _entry(request).get("id", ""), **more)


def _entry(request: Request) -> dict[str, Any]:
    return getattr(request.state, "log", {})


def _not_json(body: str, position: int, reason: str) -> str:
    """Return the message for a body that is not JSON."""
    line = body.count("\n", 0, position) + 1
    character = position - body.rfind("\n", 0, position)
    return f"the body is not JSON: line {line}, character {character}: {reason.lower()}; {EXPECTED}"


def _faults(found: Sequence[Mapping[str, Any]], body: object) -> Iterator[dict[str, str]]:
    """Yield the faults, one for each place.

    A value that may be of several types has a fault for each of them; of these, the one counts whose type it has.
    """
    by_place: dict[tuple[int | str, ...], list[Mapping[str, Any]]] = {}
    for one in found:
        by_place.setdefault(_place(one, body), []).append(one)
    for place, ones in by_place.items():
        if place == () and ones[0]["type"] in _NO_OBJECT:
            fault = "it is no JSON object of the Content-Type application/json"
            yield {"pointer": "", "detail": f"{fault}; {EXPECTED}"}
            continue
        kept = [one for one in ones if not one["type"].endswith("_type")]
        if kept or not any(other[: len(place)] == place != other for other in by_place):
            texts = dict.fromkeys(str(one["msg"]) for one in kept or ones)
            yield {"pointer": _pointer(place), "detail": ", or ".join(texts)}


def _place(fault: Mapping[str, Any], body: object) -> tuple[int | str, ...]:
    """Return the keys that lead to a fault; Pydantic's names of the types that it tried are left out."""
    source, *parts = fault["loc"]
    if source != "body":
        return tuple(parts)
    place: list[int | str] = []
    value: Any = body
    for part in parts:
        is_there = (
            part in value
            if isinstance(value, dict)
            else isinstance(value, list) and isinstance(part, int)
        )
        if is_there:
            value = value[part]
        if is_there or fault["type"] == "missing":
            place.append(part)
    return tuple(place)


def _pointer(place: tuple[int | str, ...]) -> str:
    """Return a place as a JSON pointer into the body, or the name of a parameter."""
    inside = [str(part).replace("~", "~0").replace("/", "~1") for part in place]
    return "".join(f"/{part}" for part in inside)
