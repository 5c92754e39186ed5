"""A mail server on this machine that keeps what it gets (RFC 5321), or refuses it."""

import socketserver
from collections.abc import Generator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from typing import cast

from support.http_server import running


class MailServer(socketserver.ThreadingTCPServer):
    """Accepts mails without encryption, for loopback."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, host: str) -> None:
        super().__init__((host, 0), Session)
        self.mails: list[Message] = []
        self.is_full = False  # whether it refuses mails

    @property
    def address(self) -> str:
        return "{}:{}".format(*self.server_address)


class Session(socketserver.StreamRequestHandler):
    """One connection of a client."""

    def handle(self) -> None:
        server = cast("MailServer", self.server)
        self.wfile.write(b"220 ready\r\n")
        for line in self.rfile:
            command = line[:4].upper().strip()
            if command == b"DATA" and not server.is_full:
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                server.mails.append(message_from_bytes(b"".join(lines)))
            if command == b"DATA" and server.is_full:
                self.wfile.write(b"452 the disk is full\r\n")
            else:
                self.wfile.write(
                    b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n"
                )


@contextmanager
def receiving(host: str = "127.0.0.1") -> Generator[MailServer]:
    """Receive mails until the block ends."""
    server = MailServer(host)
    with running(server):
        yield server
