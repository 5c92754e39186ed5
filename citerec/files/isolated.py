"""Readers in a process of their own: a file may be made to loop, to recurse or to fill the memory."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import TypeVar

from citerec.errors import BadInputError, CiterecError

T = TypeVar("T")
# of a process of its own, and of each program that it runs
MAX_SECONDS = 20  # of a processor
# seconds until it ends, for what the thread reads
MAX_WAIT = ContextVar("MAX_WAIT", default=60.0)
MAX_MEMORY = 2**30  # bytes
MAX_ANSWER = 64 * 2**20  # bytes of what it returns
_ISOLATED = "_CITEREC_ISOLATED"  # environment variable


def isolated(read: Callable[[], T], name: str, instead: str = "send less at once") -> T:
    """Return what `read`, which can be pickled, returns in a process of its own.

    A file may be made to loop, to recurse or to fill the memory; no other work waits for it then. BadInputError if it
    exceeds a limit, which advises `instead`; errors of `read` are raised here.
    """
    if _ISOLATED in os.environ:
        return read()
    path = os.pathsep.join(folder for folder in sys.path if folder)
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-c",
                "from citerec.files.isolated import main; main()",
            ],
            input=pickle.dumps((read, MAX_SECONDS)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MAX_WAIT.get(),
            env=os.environ | {"PYTHONPATH": path, _ISOLATED: "1"},
            check=False,
        )
        answer = pickle.loads(done.stdout)
    except (subprocess.TimeoutExpired, EOFError, pickle.UnpicklingError):
        fault = f"reading this needs too much time or memory; {instead}"
        raise BadInputError(name, fault) from None
    if isinstance(answer, CiterecError):
        raise answer
    if isinstance(answer, Exception):
        fault = f"cannot be read: {type(answer).__name__}: {answer}"
        raise BadInputError(name, fault) from answer
    return answer


def main() -> None:
    """Write what the pickled reader on standard input returns or raises, pickled, to standard output."""

    def late(*_: object) -> None:
        raise TimeoutError

    read, seconds = pickle.load(sys.stdin.buffer)
    with suppress(ImportError, ValueError):  # Windows; there are lower limits
        import resource

        os.nice(5)
        signal.signal(signal.SIGXCPU, late)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    output = sys.stdout.buffer
    sys.stdout = sys.stderr
    try:
        answer = read()
    except (MemoryError, RecursionError, TimeoutError):
        return
    except Exception as error:
        answer = error
    if len(data := pickle.dumps(answer)) <= MAX_ANSWER:
        output.write(data)
