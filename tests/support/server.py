"""A real server on this machine, in a thread of the test's process."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx

from citerec.serve.app import create_app, web_server
from citerec.serve.desk import Desk
from citerec.serve.service import Service


@contextmanager
def listening(
    service: Service,
    port: int = 0,
    desk: Desk | None = None,
    collections: Path | None = None,
) -> Generator[str]:
    """Serve on loopback until the block ends; yields the URL. Connections that are open then are cut."""
    bound = socket.create_server(("127.0.0.1", port))
    server = web_server(create_app(service, desk, collections))
    server.config.lifespan = "off"  # the end cuts connections, and waits for nothing
    thread = Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(30)
        bound.close()


@contextmanager
def serving(service: Service) -> Generator[httpx.Client]:
    """Serve until the block ends; yields a client. The service is closed at the end."""
    try:
        with (
            listening(service) as url,
            httpx.Client(base_url=url.removesuffix("/"), timeout=60) as client,
        ):
            yield client
    finally:
        service.close()
