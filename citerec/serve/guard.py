"""What a server accepts, and what every request passes first: its id, the Host header, the token, the size of the body.

Errors are problems in the form of RFC 9457 (`application/problem+json`); the log has one line of JSON per request.
"""

import hmac
import json
import logging
import re
import sys
from asyncio import timeout
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from time import monotonic
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citerec.serve import LOCAL, ServeConfig
from citerec.types import Json

LOG = logging.getLogger("citerec.serve")
MEDIA_TYPE = "application/problem+json"
KINDS = {  # status by kind
    "invalid-request": 422,  # a value of the request is wrong; `errors` says where
    "not-found": 404,  # no such index, paper or path
    "method-not-allowed": 405,
    "unauthorized": 401,
    "foreign-origin": 403,  # a web page of another server sent the request
    "wrong-host": 421,  # the Host header names another server
    "too-large": 413,  # the body
    "timeout": 504,  # of the answer
    "slow-body": 408,  # or the client is gone
    "queue-full": 429,  # `Retry-After` says when to try again
    "stopping": 503,
    "replaced": 409,  # the index, on the disk; the server still answers with its own settings
    "zotero": 424,  # it does not run, or refuses
    "internal": 500,  # a fault of the server; its log says more
}
MAX_HEADERS = 2**16  # bytes of a request line and headers
MAX_DETAIL = 1000  # characters
# The page itself holds no data: its requests do, and send the token.
PUBLIC = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
STATIC = "/static/"
# of the header
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::[0-9]{1,5})?")
READING = frozenset({"GET", "HEAD", "OPTIONS"})
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ProblemError(HTTPException):
    """A request that is answered by an error of one of `KINDS`."""

    def __init__(
        self,
        kind: str,
        detail: str,
        errors: Sequence[Mapping[str, Any]] = (),
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(status or KINDS[kind], detail, headers)
        self.kind = kind
        self.errors = errors

    def response(self, request_id: str, **more: Any) -> JSONResponse:
        """Return the answer, with `more` members."""
        body: Json = {
            "type": f"urn:citerec:problem:{self.kind}",
            "title": HTTPStatus(self.status_code).phrase,
            "status": self.status_code,
            "detail": self.detail[:MAX_DETAIL],
        }
        body |= {"errors": [*self.errors]} if self.errors else {}
        body |= {"instance": f"urn:citerec:request:{request_id}"} | more
        return JSONResponse(body, self.status_code, self.headers, MEDIA_TYPE)


def internal_error() -> ProblemError:
    """Return the problem of a fault of the server, whose text is for its log alone."""
    return ProblemError("internal", "the server cannot answer; its log says why")


class Guard:
    """The outermost layer of the application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeConfig,
        answered: Callable[[str, int, float], None],
    ) -> None:
        """Wrap an application; `answered` receives route, status and seconds of each answer."""
        self._app = app
        self.settings = settings
        self._answered = answered
        self.held = 0  # bytes of the bodies of the requests in flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        started = monotonic()
        status = 0
        size = 0
        given = REQUEST_ID.fullmatch(headers.get("x-request-id", ""))
        request_id = given[0] if given else uuid4().hex[:16]
        scope.setdefault("state", {})["log"] = entry = {"id": request_id}
        # the body, which is read before the application starts
        messages: list[Message] = []

        async def receive_body() -> Message:
            return messages.pop() if messages else await receive()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            self._check(scope, headers)
            body = bytearray()
            more = True
            try:
                async with timeout(self.settings.timeout_seconds):
                    while more:
                        message = await receive()
                        if message["type"] != "http.request":
                            raise ProblemError("slow-body", "the client is gone")
                        body += message.get("body", b"")
                        self.held = self.held + len(body) - size
                        size = len(body)
                        self._check_size(size)
                        more = message.get("more_body", False)
            except TimeoutError:
                raise ProblemError(
                    "slow-body", "the body took too long to arrive"
                ) from None
            messages.append(
                {"type": "http.request", "body": bytes(body), "more_body": False}
            )
            await self._app(scope, receive_body, send_with_id)
        except ProblemError as problem:
            await problem.response(request_id)(scope, receive, send_with_id)
        except Exception:  # a fault of citerec
            LOG.exception("fault", extra={"fields": {"id": request_id}})
            if status:  # the answer has begun
                raise
            await internal_error().response(request_id)(scope, receive, send_with_id)
        finally:
            self.held -= size
            seconds = monotonic() - started
            route = getattr(scope.get("route"), "path", "(none)")
            self._answered(route, status or 500, seconds)
            entry |= {
                "method": scope["method"],
                "route": route,
                "status": status or 500,
                "ms": round(1000 * seconds, 1),
            }
            LOG.info("request", extra={"fields": entry})

    def _check_size(self, size: int) -> None:
        if size > (most := self.settings.max_body_bytes):
            raise ProblemError(
                "too-large", f"the body is too large; at most {most:,} bytes are read"
            )
        if self.held > self.settings.max_held_bytes:
            later = {"Retry-After": "2"}
            raise ProblemError(
                "queue-full", "too many bytes are in flight", headers=later
            )

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Check headers, host, origin and token; other names are those of a web page that rebinds its own (DNS)."""
        settings = self.settings
        # uvicorn has no bound for what arrives in one piece
        pieces = [scope["raw_path"], scope["query_string"]]
        pieces += [piece for header in headers.raw for piece in header]
        if sum(map(len, pieces)) > MAX_HEADERS:
            detail = (
                f"the headers are too large; at most {MAX_HEADERS:,} bytes are read"
            )
            raise ProblemError("too-large", detail, status=431)
        name = headers.get("host", "").lower()
        if "content-length" in headers and "transfer-encoding" in headers:
            # a proxy may see another end of this request than h11 does (RFC 9112, 6.3)
            detail = "a request has either Content-Length or Transfer-Encoding"
            close = {"Connection": "close"}
            raise ProblemError("invalid-request", detail, headers=close, status=400)
        named = HOST.fullmatch(name)
        host = (named[1] or named[2]).rstrip(".") if named else ""
        own = {*settings.hosts, *LOCAL, settings.host}
        is_own = "*" in own or host in own
        if (settings.is_local or settings.hosts) and not is_own:
            raise ProblemError(
                "wrong-host",
                "this server does not answer to that name; the operator can allow it: --allow-host NAME",
            )
        origin = headers.get("origin", "")
        allowed = {"", f"http://{name}", f"https://{name}", *settings.origins}
        if scope["method"] not in READING and not {origin, "*"} & allowed:
            raise ProblemError(
                "foreign-origin",
                "this server takes no requests from that web page; the operator can allow it: --allow-origin ORIGIN",
            )
        if (
            not settings.tokens
            or scope["path"] in PUBLIC
            or scope["path"].startswith(STATIC)
        ):
            return
        kind, _, token = headers.get("authorization", "").partition(" ")
        sent = token.strip().encode(errors="surrogatepass")
        matches = [
            hmac.compare_digest(sent, known.encode()) for known in settings.tokens
        ]
        if kind.lower() != "bearer" or not any(matches):
            raise ProblemError(
                "unauthorized",
                "a bearer token is needed: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )


class JsonLines(logging.Formatter):
    """Writes log records as JSON, one line each; texts of drafts are never logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        entry: Json = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def log_to_stderr(*, quiet: bool = False) -> None:
    """Write the log to stderr; quiet: warnings and errors alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOG.handlers = [handler]
    LOG.propagate = False
    LOG.setLevel(logging.WARNING if quiet else logging.INFO)
