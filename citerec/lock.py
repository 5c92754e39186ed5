"""A lock of an index: one process at a time changes it; readers need no lock."""

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from citerec.atomic import is_alive
from citerec.errors import IndexLockedError, writing


@contextmanager
def locked(index: Path) -> Generator[None]:
    """Lock an index for this process until the block ends; the lock is a file next to it.

    The system releases the lock of a process that ends in any way. Where it has no locks, the file itself is the lock,
    and that of a dead process on this host is removed.

    Raises:
        IndexLockedError: If another process has locked it.
        OutputError: If the lock cannot be written.
    """
    target = Path(os.path.realpath(index))
    path = target.with_name(f".{target.name}.lock")
    with writing(path):
        descriptor = _acquire(index, path)
    try:
        yield
    finally:
        with suppress(OSError):  # removed before it is released: a waiting process opens a new file
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(index: Path, path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            free = try_lock(descriptor)
            if free is False or (free is None and _names_a_process(descriptor)):
                raise IndexLockedError(index, _owner(path))
            if _is_same(descriptor, path):  # else its last owner removed it in between
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(_self()).encode(), 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _self() -> dict[str, Any]:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": started}


def _owner(path: Path) -> str:
    """Describe the process that locked an index: its id, host and the time."""
    try:
        content = json.loads(path.read_bytes())
        return f"process {content['pid']} on {content['host']} since {content['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file until it is closed.

    Returns:
        True if it is locked now, False if another process has locked it, None if the system has no such locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network disks have no locks
        return None
    return True


def _names_a_process(descriptor: int) -> bool:
    """Whether the file names a process that may be running: one of another host, or one that is alive."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
        return content["host"] != socket.gethostname() or is_alive(int(content["pid"]))
    except (ValueError, KeyError, TypeError):
        return False
