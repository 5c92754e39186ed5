"""What a client gets: JSON, or a problem in the form of RFC 9457 (`application/problem+json`).

| kind | status | when |
|---|---|---|
| invalid-request | 422 | a value of the request is wrong; `errors` says where |
| not-found | 404 | no such index, paper or path |
| method-not-allowed | 405 | the path has other methods |
| unauthorized | 401 | no valid bearer token |
| wrong-host | 421 | the Host header names another server |
| too-large | 413 | the body is too large |
| timeout | 504 | the answer took too long |
| slow-body | 408 | the body took too long to arrive |
| queue-full | 429 | too many requests; `Retry-After` says when to try again |
| stopping | 503 | the server is being stopped |
| internal | 500 | a fault of the server; its log says more |
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from http import HTTPStatus
from re import sub
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from citerec.errors import (
    BadInputError,
    CiterecError,
    ConfigError,
    InvalidValueError,
    MissingExtraError,
    PaperNotFoundError,
)

T = TypeVar("T")
MEDIA_TYPE = "application/problem+json"
KINDS = {  # status by kind
    "invalid-request": 422,
    "not-found": 404,
    "method-not-allowed": 405,
    "unauthorized": 401,
    "wrong-host": 421,
    "too-large": 413,
    "timeout": 504,
    "slow-body": 408,
    "queue-full": 429,
    "stopping": 503,
    "internal": 500,
}
CLIENT_CLOSED = 499  # the client closed the connection, as nginx calls it
PHRASES = {CLIENT_CLOSED: "Client Closed Request"}  # of statuses that Python does not name
MAX_DETAIL = 1000  # characters
# advice for the command line, and what a client may do instead
ADVICE = {
    "give it yourself: --query FILE --title T": "send it as title",
    "pass its text: pdftotext paper.pdf - | citerec recommend --query -": "send its text",
}


class ProblemError(Exception):
    """A request that is answered by an error of one of `KINDS`."""

    def __init__(
        self,
        kind: str,
        detail: str,
        errors: Sequence[Mapping[str, Any]] = (),
        *,
        headers: Mapping[str, str] | None = None,
        status_code: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.errors = kind, detail, errors
        self.headers, self.status = headers or {}, status_code or KINDS[kind]

    def as_json(self, request_id: str = "") -> dict[str, Any]:
        """Return the body of the answer."""
        body: dict[str, Any] = {
            "type": f"urn:citerec:problem:{self.kind}",
            "title": PHRASES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail[:MAX_DETAIL],
        }
        if request_id:
            body["instance"] = f"urn:citerec:request:{request_id}"
        return body | ({"errors": [*self.errors]} if self.errors else {})


def problem_of(error: CiterecError, hidden: Mapping[str, str] | None = None) -> ProblemError:
    """Return what a client gets for an error: its message if the request is at fault.

    Options are named as in requests: `year_max`, not `--year-max`.

    Args:
        error: The error.
        hidden: Paths that must not be shown, with what takes their place.
    """
    if isinstance(error, ConfigError | BadInputError | InvalidValueError):
        detail = str(error)
        for old, new in {**(hidden or {}), **ADVICE}.items():
            detail = detail.replace(old, new)
        detail = sub(r"--([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_"), detail)
        return ProblemError("invalid-request", detail)
    if isinstance(error, PaperNotFoundError):
        return ProblemError("not-found", str(error))
    if isinstance(error, MissingExtraError):
        return ProblemError("internal", f"the server lacks a package: {error}", status_code=501)
    return ProblemError("internal", "the server cannot answer; its log says why")


def problem_response(problem: ProblemError, request_id: str, **more: Any) -> JSONResponse:
    """Return the answer of an error, with `more` members."""
    body = problem.as_json(request_id) | more
    return JSONResponse(body, problem.status, dict(problem.headers), MEDIA_TYPE)


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of problems."""
    schema = {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            **{name: {"type": "string"} for name in ("type", "title", "detail", "instance")},
            "status": {"type": "integer"},
            "errors": {"type": "array", "items": {"type": "object"}},
        },
    }
    content = {MEDIA_TYPE: {"schema": schema}}
    return {s: {"description": HTTPStatus(s).phrase, "content": content} for s in statuses}


def json(content: object) -> Response:
    """Return an answer; floats are written as `citerec recommend --format json` writes them."""
    return Response(orjson.dumps(content), media_type="application/json")


async def finished(request: Request, future: "Future[T]", seconds: float) -> T:
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
            raise ProblemError("timeout", "the client is gone", status_code=CLIENT_CLOSED)
        raise ProblemError(
            "timeout", "the answer took too long; send fewer queries at once, or try again later"
        )
    finally:
        answer.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
