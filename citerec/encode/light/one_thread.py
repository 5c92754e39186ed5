"""Lets OpenBLAS compute on one thread: on a busy machine its own threads cost more than they gain."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_LOCK = Lock()
_users = 0  # blocks that are entered, in all threads
_limit: Any = None  # of the first of them


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Let OpenBLAS use one thread until the last of overlapping blocks, in any threads of this process, ends."""
    global _users, _limit  # noqa: PLW0603
    with _LOCK:
        if not _users:
            _limit = _openblas().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _LOCK:
            _users -= 1
            if not _users:
                _limit.restore_original_limits()


@cache
def _openblas() -> Any:
    return ThreadpoolController().select(internal_api="openblas")
