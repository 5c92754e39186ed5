"""The connection to a server: by HTTP, over TCP or over the Unix socket of the user."""

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Self
from urllib.parse import urlsplit

from citerec.serve.local import is_private, socket_path

ROUTE = "/v1/command/recommend"
TOKEN = "CITEREC_TOKEN"  # environment variable: the token that a server asks for
CONNECT_SECONDS = 1.0
SILENT_SECONDS = 5.0  # a server that works sends a line each second
WORK_SECONDS = 60.0  # from one line with content to the next
LONGEST_LINE = 2**26  # bytes of one result


class UnavailableError(Exception):
    """No server answers, or it stops before the end of its answer."""


class RefusedError(Exception):
    """A server does not take the request; the work is done in this process."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    named: str  # as the user names it; empty for the socket of the user's runtime folder
    host: str = ""
    port: int = 0
    is_secure: bool = False  # https
    prefix: str = ""  # of the paths on the server
    socket: Path | None = None  # a Unix socket, in place of host and port

    @classmethod
    def of(cls, named: str) -> Self:
        """Return the address of a URL or of a Unix socket.

        Raises:
            UnavailableError: If it is neither.
        """
        if "://" not in named:
            return cls(named, socket=Path(named) if named else socket_path())
        try:
            url = urlsplit(named)
            port = url.port
        except ValueError as error:
            raise UnavailableError(f"this is not a URL: {error}") from error
        if url.scheme not in {"http", "https"} or not url.hostname:
            raise UnavailableError("expected a URL such as http://127.0.0.1:8000")
        secure = url.scheme == "https"
        port = port or (443 if secure else 80)
        return cls(named, url.hostname, port, secure, url.path.rstrip("/"))


def answer_lines(address: Address, body: bytes) -> Iterator[bytes]:
    """Send a request, and yield the lines of its answer that are not empty.

    Raises:
        RefusedError: If the server does not take the request.
        UnavailableError: If it cannot be reached, is silent for `SILENT_SECONDS`, or answers with something else.
    """
    try:
        with closing(_connection(address)) as connection:
            connection.connect()
            connection.sock.settimeout(SILENT_SECONDS)
            headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
            if address.named and (token := os.environ.get(TOKEN, "").strip()):
                headers["Authorization"] = f"Bearer {token}"
            connection.request("POST", f"{address.prefix}{ROUTE}", body, headers)
            answer = connection.getresponse()
            _check_status(answer)
            since = monotonic()
            while (line := answer.readline(LONGEST_LINE)).endswith(b"\n"):
                if line.strip():
                    yield line
                    since = monotonic()
                elif monotonic() - since > WORK_SECONDS:
                    raise UnavailableError(f"it is not done after {WORK_SECONDS:g} seconds")
    except TimeoutError as error:
        raise UnavailableError(f"it is silent for {SILENT_SECONDS:g} seconds") from error
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise UnavailableError(str(reason)) from error


def _check_status(answer: HTTPResponse) -> None:
    """Raise unless the server takes the request."""
    if answer.status == 200:
        return
    if answer.status in {401, 403}:
        raise UnavailableError(f"it refuses the token; set {TOKEN} to one that it knows")
    if answer.status == 409:
        raise RefusedError(answer.read(2**16).decode(errors="replace").strip())
    if answer.status in {413, 429, 503}:
        raise RefusedError("it is busy, or takes no request of this length")
    raise UnavailableError(f"it answers {answer.status} {answer.reason}; is this a citerec serve?")


def _connection(address: Address) -> HTTPConnection:
    if address.socket:
        return _UnixConnection(address.socket)
    if address.is_secure:
        from http.client import HTTPSConnection

        return HTTPSConnection(address.host, address.port, timeout=CONNECT_SECONDS)
    return HTTPConnection(address.host, address.port, timeout=CONNECT_SECONDS)


class _UnixConnection(HTTPConnection):
    """A connection over a Unix socket that belongs to this user, as does the process that listens on it."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket.

        Raises:
            OSError: If nothing listens on it, or it could be another user's.
        """
        if not is_private(self._path):
            raise OSError(f"{self._path} is not a socket in a folder that only this user can open")
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CONNECT_SECONDS)
        self.sock.connect(str(self._path))
        if hasattr(socket, "SO_PEERCRED"):
            data = self.sock.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
            )
            if struct.unpack("3i", data)[1] != os.geteuid():
                raise OSError(f"another user listens on {self._path}")
