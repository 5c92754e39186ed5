"""Runs the MCP server over stdio, for the assistant that starts it, or over streamable HTTP, for several."""

import os
import signal
from types import FrameType
from typing import NoReturn

from citerec.serve.mcp.server import create_server, http_app
from citerec.serve.mcp.worker import Worker
from citerec.serve.settings import ServeConfig
from citerec.types import Log, no_log


def run_stdio(worker: Worker) -> None:
    """Serve the process that started this one until it closes stdin; only messages of MCP are written to stdout.

    A signal ends the process at once: the thread that waits for stdin cannot be interrupted, and no file is written
    that could be left unfinished.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):  # Windows has no SIGHUP
            signal.signal(number, _end)
    create_server(worker, reads_files=True).run("stdio")


def run_http(worker: Worker, settings: ServeConfig, log: Log = no_log) -> None:
    """Serve until a signal ends the process.

    Args:
        worker: It runs the calls.
        settings: Address, tokens, host names and limits.
        log: Receives the URL.

    Raises:
        OutputError: If the address is in use.
    """
    import uvicorn

    from citerec.serve.run import address, bound

    with bound(settings) as listening:
        host, port = address(listening)
        log(f"serving MCP at http://{host}:{port}/mcp (Ctrl-C to stop)")
        app = http_app(worker, settings)
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listening])


def _end(number: int, _: FrameType | None) -> NoReturn:
    os._exit(128 + number)
