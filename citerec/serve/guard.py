"""What every request passes first: its id, the Host header, the token, the size of the body, one line in the log."""

import hashlib
import hmac
import json
import logging
import re
import sys
from asyncio import timeout
from collections.abc import Callable
from ipaddress import ip_address
from time import monotonic
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from citerec.serve.answers import ProblemError, problem_response
from citerec.serve.service import ServeConfig

LOG = logging.getLogger("citerec.serve")
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# The page itself holds no data: its requests do, and send the token.
PUBLIC = frozenset({"/", "/healthz", "/readyz", "/favicon.ico"})
PUBLIC_FOLDER = "/static/"
Answered = Callable[[str, int, float], None]  # receives route, status, seconds


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServeConfig, answered: Answered) -> None:
        """Wrap an application; `answered` receives route, status and seconds of each answer."""
        self._app, self.settings, self._answered = app, settings, answered
        self._tokens = [_digest(token) for token in settings.tokens]
        self._held = 0  # bytes of the bodies of the requests in flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, started, status = Headers(scope=scope), monotonic(), 0
        given = headers.get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex[:16]
        scope.setdefault("state", {})["log"] = entry = {"id": request_id}

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        body = _Body(receive, self)
        try:
            self._check(scope, headers)
            await body.read(headers.get("content-length", ""))
            await self._app(scope, body.receive, send_with_id)
        except ProblemError as problem:
            await problem_response(problem, request_id)(scope, receive, send_with_id)
        except Exception:  # a fault of citerec
            LOG.exception("fault", extra={"fields": {"id": request_id}})
            if status:  # the answer has begun
                raise
            problem = ProblemError("internal", "the server cannot answer; its log says why")
            await problem_response(problem, request_id)(scope, receive, send_with_id)
        finally:
            self._held -= body.size
            seconds = monotonic() - started
            route = getattr(scope.get("route"), "path", "(none)")
            self._answered(route, status or 500, seconds)
            shown = {"method": scope["method"], "route": route, "status": status or 500}
            fields = entry | shown | {"ms": round(1000 * seconds, 1)}
            LOG.info("request", extra={"fields": fields})

    def hold(self, size: int) -> None:
        """Count bytes of a body.

        Raises:
            ProblemError: If all requests in flight hold too many.
        """
        if self._held + size > self.settings.max_held_bytes:
            raise ProblemError(
                "queue-full", "too many bytes are in flight", headers={"Retry-After": "2"}
            )
        self._held += size

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Check host and token."""
        if not self._is_own(_host_name(headers.get("host", ""))):
            raise ProblemError(
                "wrong-host",
                "this server does not answer to that name; the operator can allow it: --allow-host NAME",
            )
        path = scope["path"]
        if not self._tokens or path in PUBLIC or path.startswith(PUBLIC_FOLDER):
            return
        kind, _, token = headers.get("authorization", "").partition(" ")
        digest = _digest(token.strip())
        matches = [hmac.compare_digest(digest, known) for known in self._tokens]
        if kind.lower() != "bearer" or not any(matches):
            raise ProblemError(
                "unauthorized",
                "a bearer token is needed: Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _is_own(self, host: str) -> bool:
        """Whether a request names this server: other names are those of a web page that rebinds its own (DNS)."""
        hosts = self.settings.hosts
        if "*" in hosts or host in hosts or host in {"localhost", self.settings.host}:
            return True
        try:
            return not self.settings.is_local or ip_address(host).is_loopback
        except ValueError:
            return False


class _Body:
    """The body of one request: read before the application starts, counted as it arrives."""

    def __init__(self, receive: Receive, guard: Guard) -> None:
        self._receive, self._guard, self.size = receive, guard, 0
        self._message: Message | None = None

    async def read(self, length: str) -> None:
        """Read the whole body.

        Raises:
            ProblemError: If it is too large or too slow, or all requests in flight hold too much.
        """
        settings = self._guard.settings
        if length.isdecimal() and int(length) > settings.max_body_bytes:
            raise _too_large(settings)
        parts, more = list[bytes](), True
        try:
            async with timeout(settings.timeout_seconds):
                while more:
                    message = await self._receive()
                    if message["type"] != "http.request":
                        raise ProblemError("slow-body", "the client is gone")
                    parts.append(message.get("body", b""))
                    self._guard.hold(len(parts[-1]))
                    self.size += len(parts[-1])
                    if self.size > settings.max_body_bytes:
                        raise _too_large(settings)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise ProblemError("slow-body", "the body took too long to arrive") from None
        self._message = {"type": "http.request", "body": b"".join(parts), "more_body": False}

    async def receive(self) -> Message:
        """Return the body, then what follows it: the end of the connection."""
        message, self._message = self._message, None
        return message if message is not None else await self._receive()


def _too_large(settings: ServeConfig) -> ProblemError:
    most = settings.max_body_bytes
    return ProblemError("too-large", f"the body is too large; at most {most:,} bytes are read")


def _host_name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    name = (
        host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    )
    return name.lower().rstrip(".")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


class JsonLines(logging.Formatter):
    """Writes log records as JSON, one line each; texts of drafts are never logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=True, default=str)


def log_to_stderr(*, quiet: bool = False) -> None:
    """Write the log to stderr; quiet: warnings and errors alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    LOG.handlers = [handler]
    LOG.setLevel(logging.WARNING if quiet else logging.INFO)
    LOG.propagate = False
