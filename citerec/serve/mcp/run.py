"""Runs the MCP server over stdio, for the assistant that starts it, or over streamable HTTP, for several."""

import os
import signal
import socket
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from citerec.errors import OutputError
from citerec.serve.mcp.server import create_server
from citerec.serve.mcp.worker import Worker
from citerec.serve.tokens import Application, BearerTokens
from citerec.types import Log, no_log

PATH = "/mcp"


def run_stdio(worker: Worker) -> None:
    """Serve the process that started this one until it closes stdin; only messages of MCP are written to stdout.

    A signal ends the process at once: the thread that waits for stdin cannot be interrupted, and no file is written
    that could be left unfinished.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):  # Windows has no SIGHUP
            signal.signal(number, _end)
    create_server(worker, reads_files=True).run("stdio")


def http_app(worker: Worker, host: str, tokens: Sequence[str] = ()) -> Application:
    """Return the application that serves `PATH`; on a loopback address it refuses requests for other hosts.

    Args:
        worker: It runs the calls.
        host: The address that the application is served at.
        tokens: One of them must be in each request, if there are any.
    """
    server = create_server(worker)
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, host=host
    )
    return BearerTokens(app, tokens) if tokens else app


def run_http(
    worker: Worker, host: str, port: int, *, tokens: Sequence[str] = (), log: Log = no_log
) -> None:
    """Serve until a signal ends the process.

    Args:
        worker: It runs the calls.
        host: The address to listen on.
        port: The port; 0 for a free one.
        tokens: As for `http_app`.
        log: Receives the URL.

    Raises:
        OutputError: If the address is in use.
    """
    import uvicorn

    try:
        listening = socket.create_server((host, port))
    except OSError as error:
        raise OutputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    with listening:
        log(f"serving MCP at http://{host}:{listening.getsockname()[1]}{PATH}")
        config = uvicorn.Config(
            http_app(worker, host, tokens), log_level="warning", access_log=False
        )
        uvicorn.Server(config).run(sockets=[listening])


def _end(number: int, _: FrameType | None) -> NoReturn:
    os._exit(128 + number)
