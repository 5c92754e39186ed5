"""Runs the server: binds its socket, and stops gracefully on SIGTERM and Ctrl-C."""

import asyncio
import signal
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from citerec.errors import OutputError
from citerec.serve.app import create_app
from citerec.serve.service import ServeConfig, Service

DRAIN_SECONDS = 30  # for requests in flight, after the first signal
BACKLOG = 512


def bound(settings: ServeConfig) -> socket.socket:
    """Return the socket of a server, bound but not listening yet: the address is taken before models are loaded.

    Raises:
        OutputError: If the address is in use or not of this machine.
    """
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot listen on {host}:{port}: {reason}; choose another with --host or --port"
        ) from error


def address(bound_socket: socket.socket) -> tuple[str, int]:
    """Return host and port of a socket."""
    host, port = bound_socket.getsockname()[:2]
    return f"[{host}]" if ":" in host else host, port


def serve(service: Service, listening: socket.socket) -> None:
    """Serve the API and the page on a bound socket until a signal ends the process."""
    serve_app(create_app(service), service, listening)


def serve_app(app: ASGIApp, service: Service, listening: socket.socket) -> None:
    """Serve an application until a signal ends the process; requests in flight are answered first.

    A second signal ends it at once.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="auto",
        backlog=BACKLOG,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    with ExitStack() as stack:
        stack.callback(listening.close)
        stack.callback(service.close)
        asyncio.run(_run(uvicorn.Server(config), service, listening))


async def _run(server: uvicorn.Server, service: Service, listening: socket.socket) -> None:
    with _signals(server, service):
        await server._serve([listening])  # pyright: ignore[reportPrivateUsage]  # serve() raises signals again


@contextmanager
def _signals(server: uvicorn.Server, service: Service) -> Generator[None]:
    """Let SIGTERM and Ctrl-C stop the server; a second one does not wait for requests in flight.

    Only the main thread receives signals; in another one nothing is changed.
    """
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        service.is_closed = True
        server.handle_exit(number, frame)

    former = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)
