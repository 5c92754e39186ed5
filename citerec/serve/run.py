"""Runs the server: binds its sockets, and stops gracefully on SIGTERM and Ctrl-C."""

import socket
from contextlib import ExitStack
from pathlib import Path

import uvicorn

from citerec.errors import OutputError
from citerec.serve.app import create_app
from citerec.serve.local import socket_path
from citerec.serve.service import Service
from citerec.serve.settings import ServeConfig


def serve(service: Service, settings: ServeConfig) -> None:
    """Serve until a signal ends the process; requests in flight are answered first.

    Raises:
        OutputError: If an address is in use.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(_tcp(settings.host, settings.port))]
        if settings.unix_socket:
            sockets.append(stack.enter_context(_unix(socket_path())))
            stack.callback(socket_path().unlink, missing_ok=True)
        config = uvicorn.Config(create_app(service), log_level="warning", lifespan="off")
        uvicorn.Server(config).run(sockets=sockets)
        service.close()


def _tcp(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise OutputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error


def _unix(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    path.chmod(0o600)
    return bound
