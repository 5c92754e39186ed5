"""Errors of the API: what a client gets, in the form of RFC 9457 (`application/problem+json`).

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

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from re import sub
from typing import Any

from citerec.errors import (
    BadInputError,
    CiterecError,
    ConfigError,
    InvalidValueError,
    MissingExtraError,
    PaperNotFoundError,
)

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
CLIENT_ERRORS = (ConfigError, BadInputError, InvalidValueError)
CLOSED = 499  # the client closed the connection, as nginx calls it
PHRASES = {CLOSED: "Client Closed Request"}  # of statuses that Python does not name
MAX_DETAIL = 1000  # characters


class ProblemError(Exception):
    """A request that is answered by an error."""

    def __init__(
        self,
        kind: str,
        detail: str,
        errors: Sequence[Mapping[str, Any]] = (),
        *,
        headers: Mapping[str, str] | None = None,
        status_code: int | None = None,
    ) -> None:
        """Describe the error.

        Args:
            kind: One of `KINDS`.
            detail: What happened, and what to do.
            errors: Where: `pointer` (RFC 6901) and `detail` of each fault.
            headers: Of the answer.
            status_code: In place of the status of the kind.
        """
        super().__init__(detail)
        self.kind, self.detail, self.errors = kind, detail, errors
        self.headers, self.status_code = headers or {}, status_code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.status_code or KINDS[self.kind]

    def as_json(self, instance: str = "") -> dict[str, Any]:
        """Return the body of the answer; `instance` is the id of the request."""
        body: dict[str, Any] = {
            "type": f"urn:citerec:problem:{self.kind}",
            "title": PHRASES.get(self.status) or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail[:MAX_DETAIL],
        }
        if instance:
            body["instance"] = f"urn:citerec:request:{instance}"
        return body | ({"errors": [*self.errors]} if self.errors else {})


# advice for the command line, and what a client may do instead
ADVICE = {
    "give it yourself: --query FILE --title T": "send it as title",
    "pass its text: pdftotext paper.pdf - | citerec recommend --query -": "send its text",
}


def problem_of(error: CiterecError, hidden: Mapping[str, str] | None = None) -> ProblemError:
    """Return what a client gets for an error: its message if the request is at fault.

    Options are named as in requests: `year_max`, not `--year-max`.

    Args:
        error: The error.
        hidden: Texts that must not be shown, such as paths, with what takes their place.
    """
    if isinstance(error, CLIENT_ERRORS):
        detail = str(error)
        for secret, shown in (hidden or {}).items():
            detail = detail.replace(secret, shown)
        for advice, instead in ADVICE.items():
            detail = detail.replace(advice, instead)
        detail = sub(r"--([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_"), detail)
        return ProblemError("invalid-request", detail)
    if isinstance(error, PaperNotFoundError):
        return ProblemError("not-found", str(error))
    if isinstance(error, MissingExtraError):
        return ProblemError("internal", f"the server lacks a package: {error}", status_code=501)
    return ProblemError("internal", "the server cannot answer; its log says why")
