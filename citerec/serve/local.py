"""The Unix socket on which a server of this user listens, so that the command line finds it.

A light client imports this module alone: it needs neither FastAPI nor anything else of `citerec.serve`. A client that
finds a socket at `socket_path()` speaks HTTP/1.1 on it, with the same paths and bodies as on TCP, such as

    GET /healthz
    POST /v1/recommend

`is_private` must be true before a client sends a draft to the socket. A socket that nothing listens on (connection
refused) is left by a server that was killed: the client then works without a server. Requests on the socket need no
token: the folder admits only its user.
"""

import os
import stat
import warnings
from pathlib import Path

SOCKET = "citerec.sock"
ADDRESS = (
    "CITEREC_SERVER"  # environment variable: the URL of a server, or the path of its Unix socket
)


def socket_path() -> Path:
    """Return the path of the socket: `citerec/citerec.sock` in the user's runtime folder.

    That is XDG_RUNTIME_DIR, else /run/user/<id> where it exists, else a folder of the user under the system's
    temporary folder. The path may not exist.
    """
    from platformdirs import user_runtime_path

    with warnings.catch_warnings(action="ignore"):  # of a session without a runtime folder
        return user_runtime_path("citerec", appauthor=False) / SOCKET


def is_private(socket: Path) -> bool:
    """Whether a socket is this user's, in a folder of mode 0700 that is this user's, so that no other user owns it."""
    try:
        folder, found = socket.parent.lstat(), socket.lstat()
    except OSError:
        return False
    owner = os.geteuid() if hasattr(os, "geteuid") else folder.st_uid
    closed = stat.S_ISDIR(folder.st_mode) and not folder.st_mode & 0o077
    return closed and stat.S_ISSOCK(found.st_mode) and folder.st_uid == found.st_uid == owner
