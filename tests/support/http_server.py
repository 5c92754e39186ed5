"""What the servers of the tests share: short answers without a log, in a thread until a block ends."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for an acknowledgement

    def log_message(self, format: str, *args: object) -> None:
        pass

    def body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        cut_at: int | None = None,  # bytes after which the connection breaks
    ) -> None:
        self.send_response(status)
        about = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in (about | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut_at])
        self.close_connection = self.close_connection or cut_at is not None


@contextmanager
def running(server: TCPServer) -> Generator[str]:
    """Run a server until the block ends; yield its address."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
