"""A real server on a free port of this machine, in a thread of the test's process."""

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

import httpx
import uvicorn

from citerec.serve.app import create_app
from citerec.serve.service import Service


@contextmanager
def serving(service: Service) -> Generator[httpx.Client]:
    """Serve until the block ends; yields a client. The service is closed at the end."""
    listening = socket.create_server(("127.0.0.1", 0))
    host, port = listening.getsockname()
    config = uvicorn.Config(create_app(service), log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    # Signals are for the main thread.
    thread = Thread(target=lambda: asyncio.run(server._serve([listening])), daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://{host}:{port}", timeout=60) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(30)
        service.close()
