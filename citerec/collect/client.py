"""Sends requests to one service: politely, with retries, and each only once. The only module that imports httpx here.

hishel, an HTTP cache for httpx, stores answers to GET and HEAD only, and whole URLs, which hold the key of OpenAlex.
Answers are therefore stored by `ResponseCache`, by a hash of the request without the key.
"""

import hashlib
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any
from urllib.parse import urljoin, urlsplit

import orjson

from citerec.collect.service import Politeness, Service, address, retry_after
from citerec.collect.store import ResponseCache
from citerec.collect.work import CollectError
from citerec.types import Log

MAX_BODY = 64 * 2**20  # bytes of a response, unpacked
LONGEST_WAIT = 900.0  # seconds; a service that asks for a longer pause ends the run
MAX_REDIRECTS = 3
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
OFFLINE_TRIES = 3  # of the first request


@dataclass(frozen=True, slots=True)
class Request:
    """A request without the key."""

    path: str
    params: Mapping[str, str]
    ids: Sequence[str] | None = None  # the body of a POST: {"ids": [...]}
    optional: bool = False  # whether it may be missing (HTTP 404)

    @property
    def description(self) -> str:
        """The request as text, equal for equal requests."""
        return orjson.dumps([self.path, sorted(self.params.items()), self.ids]).decode()

    def digest(self, url: str) -> str:
        """Return the hash of this request to the service at `url`."""
        return hashlib.sha256(f"{url} {self.description}".encode()).hexdigest()


class _TransientError(Exception):
    """A failure that may pass; `wait` are the seconds that the service asks for."""

    def __init__(self, reason: str, wait: float | None = None, *, connected: bool = True) -> None:
        super().__init__(reason)
        self.wait, self.connected = wait, connected


class RefusedError(CollectError):
    """The service does not accept this request: HTTP 400 or 413."""


class Client:
    """Sends requests to one service, one at a time."""

    def __init__(
        self, service: Service, politeness: Politeness, cache: ResponseCache, log: Log
    ) -> None:
        import httpx

        for name in ("httpx", "httpcore"):  # their logs hold whole URLs
            logging.getLogger(name).setLevel(logging.WARNING)
        self.service, self.politeness, self._cache, self._log = service, politeness, cache, log
        self.sent = self.reused = 0  # requests that were sent, and those that were in the cache
        self.dollars = 0.0
        self._answered = False
        self._next = 0.0
        self._random = random.Random(politeness.seed)
        self._http = httpx.Client(
            timeout=politeness.timeout,
            headers={"User-Agent": "citerec", "Accept": "application/json"},
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def get(
        self, path: str, params: Mapping[str, str], dollars: float = 0.0, *, optional: bool = False
    ) -> Any:
        """Return the JSON at a path.

        Args:
            path: The path below the address of the service.
            params: The query parameters, without the key.
            dollars: What the request costs.
            optional: Whether HTTP 404 means that the service does not have it; None is returned then.

        Raises:
            RefusedError: If the service does not accept the request.
            CollectError: If the service cannot be reached, or fails repeatedly.
        """
        return self._once(Request(path, params, optional=optional), dollars)

    def post(self, path: str, params: Mapping[str, str], ids: Sequence[str]) -> Any:
        """Return the JSON that answers a list of ids; otherwise as `get`."""
        return self._once(Request(path, params, tuple(ids)), 0.0)

    def _once(self, request: Request, dollars: float) -> Any:
        digest = request.digest(self.service.url)
        stored = self._cache.get(digest)
        if stored is not None:
            self.reused += 1
            return orjson.loads(stored)
        body = self._repeat(request)
        self.dollars += dollars
        self._cache.put(digest, request.description, body)
        return orjson.loads(body)

    def _repeat(self, request: Request) -> bytes:
        tried = 0
        while True:
            tried += 1
            try:
                return self._send(request)
            except _TransientError as failure:
                self._give_up(failure, tried)
                pause = self._pause(tried, failure.wait)
                self._log(f"{self.service.title}: {failure}; trying again in {pause:.0f} s")
                time.sleep(pause)

    def _give_up(self, failure: _TransientError, tried: int) -> None:
        """Raise if a failed request is not to be repeated."""
        name, kept = self.service.title, "what was fetched is kept: the same command continues"
        if not self._answered and not failure.connected and tried >= OFFLINE_TRIES:
            raise CollectError(
                f"{name} cannot be reached at {address(self.service.url)} ({failure}); citerec collect needs a "
                f"network; {kept}"
            ) from failure
        if failure.wait is not None and failure.wait > LONGEST_WAIT:
            hours = f"{failure.wait / 3600:.1f} hours" if isfinite(failure.wait) else "a long time"
            raise CollectError(
                f"{name} asks to wait {hours} ({failure}); the daily allowance may be used up; {kept} then"
            ) from failure
        if tried >= self.politeness.tries:
            raise CollectError(f"{name} failed {tried} times ({failure}); {kept}") from failure

    def _pause(self, tried: int, wait: float | None) -> float:
        """Return the seconds before the next try: what the service asks for, else exponential with jitter."""
        most = min(self.politeness.first_pause * 2 ** (tried - 1), self.politeness.longest_pause)
        jitter = self._random.uniform(0.5, 1.0) * most
        return jitter if wait is None else wait + 0.1 * jitter

    def _send(self, request: Request) -> bytes:
        """Send a request; return the body of the answer, which is JSON.

        Raises:
            _TransientError: If a repetition may help.
            CollectError: If not.
        """
        import httpx

        self._keep_rate()
        try:
            status, headers, body = self._exchange(request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _TransientError(
                self._clean(str(error)) or "no connection", connected=False
            ) from None
        except httpx.TimeoutException:
            raise _TransientError("no answer in time") from None
        except httpx.RequestError as error:
            raise _TransientError(self._clean(str(error)) or type(error).__name__) from None
        except httpx.InvalidURL:
            raise CollectError(
                f"{self.service.title}: not an address: {address(self.service.url)}"
            ) from None
        self._answered = True
        if status == 404 and request.optional:
            return b"null"
        if status >= 300:
            self._refuse(status, headers, body)
        return self._checked(body, headers)

    def _exchange(self, request: Request) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request, follow redirects within the service, and read the answer within limits."""
        url = f"{self.service.url.rstrip('/')}{request.path}"
        for _ in range(MAX_REDIRECTS + 1):
            with self._http.stream(
                "GET" if request.ids is None else "POST",
                url,
                params={**request.params, **self._key_of(self.service.parameter)},
                headers=self._key_of(self.service.header),
                json=None if request.ids is None else {"ids": list(request.ids)},
            ) as response:
                self.sent += 1
                target = response.headers.get("location", "")
                if not (response.is_redirect and self._is_own(urljoin(url, target))):
                    return response.status_code, response.headers, self._read(response)
                url = urljoin(url, target).partition("?")[0]
        raise _TransientError("endless redirects")

    def _read(self, response: Any) -> bytes:
        deadline, body = time.monotonic() + 5 * self.politeness.timeout, bytearray()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_BODY:
                raise CollectError(
                    f"{self.service.title} sent more than {MAX_BODY >> 20} MB in one answer"
                )
            if time.monotonic() > deadline:
                raise _TransientError("the answer came too slowly")
        return bytes(body)

    def _is_own(self, url: str) -> bool:
        """Whether a redirect stays with the service, which alone may receive the key."""
        ours, theirs = urlsplit(self.service.url), urlsplit(url)
        return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc)

    def _key_of(self, name: str) -> dict[str, str]:
        return {name: self.service.key} if name and self.service.key else {}

    def _checked(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            found = "damaged JSON" if "json" in kind else self._clean(kind) or "no content type"
            raise _TransientError(f"the answer is not JSON ({found})") from error
        if not isinstance(value, (dict, list)):
            raise _TransientError(
                f"the answer is JSON, but neither an object nor a list: {body[:20]!r}"
            )
        return body

    def _refuse(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raise the error for an HTTP status."""
        reason, wait = (
            self._reason(body),
            retry_after(headers.get("retry-after", ""), datetime.now(UTC)),
        )
        fault = f"HTTP {status}{reason and f': {reason}'}"
        limited = status == 403 and (wait is not None or "rate limit" in reason.lower())
        if status in TRANSIENT or status >= 520 or limited:
            raise _TransientError(fault, wait)
        name, variable = self.service.title, self.service.variable
        if status in {401, 403}:
            advice = (
                f"check the key in {variable}" if self.service.key else f"set a key in {variable}"
            )
            raise CollectError(f"{name} refused the request ({fault}); {advice}")
        if status in {400, 413, 414}:
            raise RefusedError(f"{name} did not accept a request ({fault})")
        raise CollectError(
            f"{name} answered {fault}; is {address(self.service.url)} the right address?"
        )

    def _reason(self, body: bytes) -> str:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError:
            return ""
        if not isinstance(value, dict):
            return ""
        texts = [value.get(name) for name in ("message", "error", "detail")]
        return self._clean(next((text for text in texts if isinstance(text, str) and text), ""))

    def _clean(self, text: str) -> str:
        """Return a text for a message: one short line, without the key."""
        if self.service.key:
            text = text.replace(self.service.key, "***")
        return " ".join(text.split())[:160]

    def _keep_rate(self) -> None:
        now = time.monotonic()
        if now < self._next:
            time.sleep(self._next - now)
        self._next = max(now, self._next) + 1 / self.politeness.rate
