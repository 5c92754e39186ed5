"""Sends requests to one service: politely, with retries, and each only once. The only module that imports httpx here.

hishel, an HTTP cache for httpx, stores answers to GET and HEAD only, and whole URLs, which hold the key of OpenAlex.
Answers are therefore stored by `ResponseCache`, by a hash of the request without the key.
"""

import gzip
import hashlib
import logging
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from citerec.collect.source import CollectError, Service
from citerec.errors import writing
from citerec.io import locked, replacing
from citerec.types import Log

if TYPE_CHECKING:
    from httpx import Request, Response

WORK = ".collect"  # readers of corpora skip folders whose name begins with a dot
MAX_AGE = 30 * 24 * 3600  # seconds after which a stored response is fetched again
LONGEST_PAUSE = 60.0  # seconds between two tries
LONGEST_WAIT = 900.0  # seconds; a service that asks for a longer pause ends the run
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
OFFLINE_TRIES = 3  # of the first request
KEPT = "what was fetched is kept: the same command continues"


class ResponseCache:
    """The responses of an unfinished run in a folder, a file each by the hash of the request without the key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, digest: str) -> bytes | None:
        """Return the body of a stored response; None if there is none."""
        file = self._folder / digest
        if not file.is_file() or file.stat().st_mtime < time.time() - MAX_AGE:
            return None
        return gzip.decompress(file.read_bytes())

    def put(self, digest: str, body: bytes) -> None:
        """Store a response."""
        with writing(self._folder), replacing(self._folder / digest) as temporary:
            temporary.write_bytes(gzip.compress(body, 1))

    def __len__(self) -> int:
        return sum(1 for _ in self._folder.iterdir())


@contextmanager
def open_cache(folder: Path, run: str) -> Generator[ResponseCache]:
    """Open the responses of a run in the folder of a corpus; those of another run are removed.

    If the block ends without an error, the run is finished, and its responses are removed.

    Raises:
        OutputError: If the folder cannot be written.
        IndexLockedError: If another process fills it.
    """
    work = folder / WORK
    responses = work / hashlib.sha256(run.encode()).hexdigest()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        for other in work.iterdir() if work.is_dir() else ():
            if other != responses:
                shutil.rmtree(other)
        with writing(folder):
            responses.mkdir(parents=True, exist_ok=True)
        yield ResponseCache(responses)
        shutil.rmtree(work)


class _TransientError(Exception):
    """A failure that may pass; `wait` are the seconds that the service asks for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class RefusedError(CollectError):
    """The service does not accept this request: HTTP 400 or 413."""


class Client:
    """Sends requests to one service, one at a time.

    A request is tried `tries` times, with pauses in seconds, doubled each time; `timeout` is in seconds without a byte.
    """

    def __init__(
        self,
        service: Service,
        cache: ResponseCache,
        log: Log,
        *,
        tries: int = 8,
        first_pause: float = 1.0,
        timeout: float = 60.0,
    ) -> None:
        import httpx

        for name in ("httpx", "httpcore"):  # their logs hold whole URLs
            logging.getLogger(name).setLevel(logging.WARNING)
        self.service, self._cache, self._log = service, cache, log
        self.sent = self.reused = 0  # requests that were answered, and those that were in the cache
        self.dollars = 0.0
        self._tries, self._first_pause, self._next = tries, first_pause, 0.0
        self._http = httpx.Client(
            timeout=timeout,
            headers={"User-Agent": "citerec", "Accept": "application/json"},
            follow_redirects=True,  # OpenAlex redirects from a merged work to the other one
            event_hooks={"request": [self._prepare]},
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def fetch(
        self,
        path: str,
        params: Mapping[str, str],
        ids: Sequence[str] | None = None,
        *,
        dollars: float = 0.0,
        optional: bool = False,
    ) -> Any:
        """Return the JSON at a path below the address of the service.

        Args:
            path: The path.
            params: The query parameters, without the key.
            ids: Ids to send in the body of a POST; None for a GET.
            dollars: What the request costs.
            optional: Whether HTTP 404 means that the service does not have it; None is returned then.

        Raises:
            RefusedError: If the service does not accept the request.
            CollectError: If the service cannot be reached, or fails repeatedly.
        """
        request = orjson.dumps([self.service.url, path, sorted(params.items()), ids])
        digest = hashlib.sha256(request).hexdigest()
        if (stored := self._cache.get(digest)) is not None:
            self.reused += 1
            return orjson.loads(stored)
        body, tried = b"", 0
        while not body:
            tried += 1
            try:
                body = self._send(path, params, ids, optional=optional)
            except _TransientError as failure:
                self._pause(failure, tried)
        self.dollars += dollars
        self._cache.put(digest, body)
        return orjson.loads(body)

    def _pause(self, failure: _TransientError, tried: int) -> None:
        """Wait before the next try: as long as the service asks for, else longer each time; or give up."""
        name, wait = self.service.title, failure.wait
        if not self.sent and tried >= min(OFFLINE_TRIES, self._tries):
            fault = f"cannot be reached at {self.service.address} ({failure}); citerec collect needs a network"
            raise CollectError(f"{name} {fault}; {KEPT}") from failure
        if wait is not None and wait > LONGEST_WAIT:
            fault = f"asks to wait {wait / 3600:.1f} hours ({failure}); the daily allowance may be used up"
            raise CollectError(f"{name} {fault}; {KEPT} then") from failure
        if tried >= self._tries:
            raise CollectError(f"{name} failed {tried} times ({failure}); {KEPT}") from failure
        if wait is None:
            wait = min(self._first_pause * 2 ** (tried - 1), LONGEST_PAUSE)
        self._log(f"{name}: {failure}; trying again in {wait:.0f} s")
        time.sleep(wait)

    def _send(
        self,
        path: str,
        params: Mapping[str, str],
        ids: Sequence[str] | None,
        *,
        optional: bool,
    ) -> bytes:
        """Return the JSON that answers a request; raise `_TransientError` if a repetition may help."""
        import httpx

        method, content = ("GET", None) if ids is None else ("POST", {"ids": list(ids)})
        url = f"{self.service.url.rstrip('/')}{path}"
        try:
            response = self._http.request(method, url, params=dict(params), json=content)
        except httpx.RequestError as error:
            raise _TransientError(self._clean(str(error)) or type(error).__name__) from None
        self.sent += 1
        if response.status_code == 404 and optional:
            return b"null"
        if not response.is_success:
            self._refuse(response)
        try:
            orjson.loads(response.content)
        except orjson.JSONDecodeError:
            raise _TransientError("the answer is not JSON") from None
        return response.content

    def _prepare(self, request: "Request") -> None:
        """Keep the rate, and add the key to a request; one that is redirected from the service may not receive it."""
        own = urlsplit(self.service.url)
        host = request.url.netloc.decode()
        if (request.url.scheme, host) != (own.scheme, own.netloc.rpartition("@")[2]):
            raise CollectError(f"{self.service.title} redirects to {host}, which is not followed")
        if self.service.key and self.service.parameter:
            request.url = request.url.copy_set_param(self.service.parameter, self.service.key)
        elif self.service.key:
            request.headers[self.service.header] = self.service.key
        now = time.monotonic()
        time.sleep(max(self._next - now, 0.0))
        self._next = max(now, self._next) + 1 / self.service.rate

    def _refuse(self, response: "Response") -> None:
        """Raise the error for an HTTP status."""
        status, value = response.status_code, {}
        with suppress(ValueError):
            value = response.json()
        texts = [value.get(name) for name in ("message", "error", "detail")]
        reason = self._clean(next((text for text in texts if isinstance(text, str)), ""))
        fault = f"HTTP {status}{reason and f': {reason}'}"
        stated = response.headers.get("retry-after", "")
        wait = float(stated) if stated.replace(".", "", 1).isdecimal() else None
        limited = status == 403 and (wait is not None or "rate limit" in reason.lower())
        if status in TRANSIENT or status >= 520 or limited:
            raise _TransientError(fault, wait)
        name, variable = self.service.title, self.service.variable
        if status in {401, 403}:
            advice = f"{'check the' if self.service.key else 'set a'} key in {variable}"
            raise CollectError(f"{name} refused the request ({fault}); {advice}")
        if status in {400, 413, 414}:
            raise RefusedError(f"{name} did not accept a request ({fault})")
        raise CollectError(f"{name} answered {fault}; is {self.service.address} the right address?")

    def _clean(self, text: str) -> str:
        """Return a text for a message: one short line, without the key."""
        if self.service.key:
            text = text.replace(self.service.key, "***")
        return " ".join(text.split())[:160]
