"""Sends requests to one service: politely, with retries, and each only once. The only module that imports httpx here.

hishel, an HTTP cache for httpx, stores answers to GET and HEAD only, and whole URLs, which hold the key of OpenAlex.
Answers are therefore stored by citerec, by a hash of the request without the key.
"""

import gzip
import hashlib
import logging
import shutil
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from citerec.display import one_line
from citerec.errors import CiterecError, ConfigError, writing
from citerec.files.atomic import locked, refuse_links, replacing
from citerec.types import Log

if TYPE_CHECKING:
    from httpx import Request, Response

WORK = ".collect"  # readers of corpora skip folders whose name begins with a dot
TIMEOUT = 60.0  # seconds without a byte
# of an answer, unpacked; the services send up to 10 MB
MAX_BYTES = 64 * 2**20
MAX_SECONDS = 300
# of a request; of the first one while nothing answers
TRIES = 8
OFFLINE_TRIES = 3
# seconds between two tries, doubled each time
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
LONGEST_WAIT = 900.0  # seconds; a service that asks for a longer pause ends the run
TRANSIENT = {408, 425, 429, 500, 502, 503, 504}
KEPT = "what was fetched is kept: the same command continues"


class CollectError(CiterecError):
    """A service that cannot be reached, refuses a request, or sends what citerec cannot read."""


class RefusedError(CollectError):
    """The service does not accept this request: HTTP 400 or 413."""


class _TransientError(Exception):
    """A failure that may pass; `wait` are the seconds that the service asks for."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


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
        if (
            self.key
            and parts.scheme == "http"
            and parts.hostname not in ("localhost", "127.0.0.1")
        ):
            raise ConfigError(
                f"{self.address} would receive the key in {self.variable} unencrypted; use https://, or unset it"
            )

    @property
    def address(self) -> str:
        """The address for a message, without a user and a password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def open_cache(folder: Path, run: str) -> Generator[Path]:
    """Yield where the responses of a run are kept in the folder of a corpus; those of another run are removed.

    If the block ends without an error, the run is finished, and its responses are removed. OutputError if the folder
    cannot be written; LockedError if another process fills it.
    """
    work = folder / WORK
    responses = work / hashlib.sha256(run.encode()).hexdigest()
    with locked(folder):
        refuse_links(work)
        for other in {*work.glob("*")} - {responses}:
            shutil.rmtree(other, ignore_errors=True)
        with writing(folder):
            responses.mkdir(parents=True, exist_ok=True)
        yield responses
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def reading_answers(service: Service) -> Generator[None]:
    """Turn what cannot be read of an answer, such as a missing field, into a `CollectError`."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        fault = f"{type(error).__name__}: {error}"[:100]
        raise CollectError(
            f"{service.title} sent an answer of another shape than its API has ({fault}); is {service.address} the "
            f"right address? remove the folder {WORK} of the corpus before you try again"
        ) from error


class Client:
    """Sends requests to one service, one at a time."""

    def __init__(
        self, service: Service, cache: Path, log: Log, most: int = 10_000
    ) -> None:
        """Prepare; responses are kept in the folder `cache`, and at most `most` are fetched."""
        import httpx

        for name in ("httpx", "httpcore"):  # their logs hold whole URLs
            logging.getLogger(name).setLevel(logging.WARNING)
        self.service = service
        self.log = log
        self._cache = cache
        # requests that were answered, and those that were in the cache
        self.sent = self.reused = 0
        self.answers = 0
        self._most = most
        self._next = 0.0  # when the rate allows the next request
        self.http = httpx.Client(
            timeout=TIMEOUT,
            headers={
                "User-Agent": "citerec",
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
            },
            follow_redirects=True,  # OpenAlex redirects from a merged work to the other one
            event_hooks={"request": [self._prepare]},
        )

    def fetch(
        self,
        path: str,
        params: Mapping[str, str],
        ids: Sequence[str] | None = None,
        *,
        optional: bool = False,
    ) -> Any:
        """Return the JSON at a path below the address of the service.

        Ids are sent in the body of a POST. If `optional`, HTTP 404 means that the service does not have it: None.
        RefusedError if the service does not accept the request; CollectError if the service cannot be reached, or fails
        repeatedly.
        """
        self.answers += 1
        if self.answers > self._most:
            raise CollectError(
                f"{self.service.title} has more than {self._most:,} pages, far more than was "
                f"estimated; {KEPT}"
            )
        request = orjson.dumps([self.service.url, path, sorted(params.items()), ids])
        stored = self._cache / hashlib.sha256(request).hexdigest()
        if stored.is_file():
            self.reused += 1
            return orjson.loads(gzip.decompress(stored.read_bytes()))
        body = b""
        tried = 0
        while not body:
            tried += 1
            try:
                body = self._send(path, params, ids, optional=optional)
            except _TransientError as failure:
                self._pause(failure, tried)
        with replacing(stored) as temporary:
            temporary.write_bytes(gzip.compress(body, 1))
        return orjson.loads(body)

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
        body = bytearray()
        started = time.monotonic()
        try:
            with self.http.stream(
                method, url, params=dict(params), json=content
            ) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if (
                        len(body) > MAX_BYTES
                        or time.monotonic() - started > MAX_SECONDS
                    ):
                        raise _TransientError(
                            f"the answer takes more than {MAX_BYTES >> 20} MB or {MAX_SECONDS} s"
                        )
        except httpx.RequestError as error:
            raise _TransientError(
                self._clean(str(error)) or type(error).__name__
            ) from None
        self.sent += 1
        if response.status_code == 404 and optional:
            return b"null"
        if not response.is_success:
            self._refuse(response, bytes(body))
        try:
            orjson.loads(body)
        except orjson.JSONDecodeError:  # such as the page of a hotel's network
            raise _TransientError("the answer is not JSON") from None
        return bytes(body)

    def _prepare(self, request: "Request") -> None:
        """Keep the rate, and add the key to a request; one that is redirected from the service may not receive it."""
        service = self.service
        own = urlsplit(service.url)
        host = request.url.netloc.decode()
        if (request.url.scheme, host) != (own.scheme, own.netloc.rpartition("@")[2]):
            raise CollectError(
                f"{service.title} redirects to {host}, which is not followed"
            )
        if service.key and service.parameter:
            request.url = request.url.copy_set_param(service.parameter, service.key)
        elif service.key:
            request.headers[service.header] = service.key
        now = time.monotonic()
        time.sleep(max(self._next - now, 0.0))
        self._next = max(now, self._next) + 1 / service.rate

    def _pause(self, failure: _TransientError, tried: int) -> None:
        """Wait before the next try: as long as the service asks for, else longer each time; or give up."""
        name = self.service.title
        wait = failure.wait
        if not self.sent and tried >= OFFLINE_TRIES:
            fault = f"cannot be reached at {self.service.address} ({failure}); citerec collect needs a network"
        elif wait is not None and wait > LONGEST_WAIT:
            fault = f"asks to wait {wait / 3600:.1f} hours ({failure}); the daily allowance may be used up"
        elif tried >= TRIES:
            fault = f"failed {tried} times ({failure})"
        else:
            if wait is None:
                wait = min(FIRST_PAUSE * 2 ** (tried - 1), LONGEST_PAUSE)
            self.log(f"{name}: {failure}; trying again in {wait:.0f} s")
            time.sleep(wait)
            return
        raise CollectError(f"{name} {fault}; {KEPT}") from failure

    def _refuse(self, response: "Response", body: bytes) -> None:
        """Raise the error for an HTTP status."""
        status = response.status_code
        value = {}
        with suppress(ValueError):
            value = orjson.loads(body)
        names = ("message", "error", "detail") if isinstance(value, dict) else ()
        texts = [value.get(name) for name in names]
        reason = self._clean(
            next((text for text in texts if isinstance(text, str)), "")
        )
        fault = f"HTTP {status}{reason and f': {reason}'}"
        stated = response.headers.get("retry-after", "")
        wait = float(stated) if stated.replace(".", "", 1).isdecimal() else None
        if status in TRANSIENT or status >= 520 or wait is not None:
            raise _TransientError(fault, wait)
        name = self.service.title
        if status in {401, 403}:
            raise CollectError(
                f"{name} refused the request ({fault}); "
                f"{'check the' if self.service.key else 'set a'} key in {self.service.variable}"
            )
        if status in {400, 413, 414}:
            raise RefusedError(f"{name} did not accept a request ({fault})")
        raise CollectError(
            f"{name} answered {fault}; is {self.service.address} the right address?"
        )

    def _clean(self, text: str) -> str:
        """Return a text for a message: one short line, without the key."""
        if self.service.key:
            text = text.replace(self.service.key, "***")
        return one_line(text)[:160]
