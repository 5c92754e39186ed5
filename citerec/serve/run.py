"""Runs the server: binds its sockets, and stops gracefully on SIGTERM and Ctrl-C."""

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

import uvicorn

from citerec.errors import OutputError
from citerec.serve.app import create_app
from citerec.serve.command import CommandAnswer
from citerec.serve.local import is_private, socket_path
from citerec.serve.service import Service
from citerec.serve.settings import ServeConfig

DRAIN_SECONDS = 30  # for requests in flight, after the first signal
BACKLOG = 512


def bound(settings: ServeConfig) -> list[socket.socket]:
    """Return the sockets of a server, bound but not listening yet: the address is taken before models are loaded.

    Raises:
        OutputError: If an address is in use or not of this machine.
    """
    sockets = [_tcp(settings.host, settings.port)]
    if settings.unix_socket and hasattr(socket, "AF_UNIX"):
        with suppress(
            OutputError
        ):  # another server of this user listens there, or there is no private folder
            sockets.append(_unix(socket_path()))
    return sockets


def address(sockets: list[socket.socket]) -> tuple[str, int]:
    """Return host and port of the first socket."""
    host, port = sockets[0].getsockname()[:2]
    return f"[{host}]" if ":" in host else host, port


def serve(
    service: Service, sockets: list[socket.socket], command: CommandAnswer | None = None
) -> None:
    """Serve on bound sockets until a signal ends the process; requests in flight are answered first.

    A second signal ends it at once. `command` answers the requests of `citerec recommend`.
    """
    config = uvicorn.Config(
        create_app(service, command),
        log_config=None,
        access_log=False,
        lifespan="off",
        backlog=BACKLOG,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=64 * 2**10,
    )
    with ExitStack() as stack:
        stack.callback(_remove, sockets, _files(sockets))
        stack.callback(service.close, 1.0)
        asyncio.run(_run(uvicorn.Server(config), service, sockets))


async def _run(server: uvicorn.Server, service: Service, sockets: list[socket.socket]) -> None:
    with _signals(server, service):
        await server._serve(sockets)  # pyright: ignore[reportPrivateUsage]  # serve() raises signals again


@contextmanager
def _signals(server: uvicorn.Server, service: Service) -> Generator[None]:
    """Let SIGTERM and Ctrl-C stop the server; a second one does not wait for requests in flight.

    Only the main thread receives signals; in another one nothing is changed.
    """
    if current_thread() is not main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        service.admission.closed = True
        server.handle_exit(number, frame)

    former = {one: signal.signal(one, stop) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, handler in former.items():
            signal.signal(one, handler)


def _tcp(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot listen on {host}:{port}: {reason}; choose another with --host or --port"
        ) from error


def _unix(path: Path) -> socket.socket:
    """Bind the user's socket; one that a killed server left is replaced.

    Raises:
        OutputError: If another server listens on it, or its folder is not private.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = path.parent.lstat()
        if not stat.S_ISDIR(folder.st_mode) or folder.st_uid != os.geteuid():
            raise OutputError(f"{path.parent} is not a folder of this user")
        path.parent.chmod(0o700)
        if _listens(path):
            raise OutputError(f"another server listens on {path}")
        path.unlink(missing_ok=True)
        bound_socket = socket.socket(socket.AF_UNIX)
        bound_socket.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        raise OutputError(f"cannot listen on {path}: {error.strerror or error}") from error
    return bound_socket


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        return is_private(path) and probe.connect_ex(str(path)) == 0


def _files(sockets: list[socket.socket]) -> dict[Path, int]:
    """Return the inodes of Unix sockets by their paths, which are known only until uvicorn has closed the sockets."""
    names = [one.getsockname() for one in sockets]
    return {(path := Path(name)): path.stat().st_ino for name in names if isinstance(name, str)}


def _remove(sockets: list[socket.socket], files: dict[Path, int]) -> None:
    for path, inode in files.items():
        with suppress(OSError):
            if path.stat().st_ino == inode:  # else a newer server has put its own there
                path.unlink()
    for one in sockets:
        one.close()
