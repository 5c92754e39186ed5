"""Lets one system call of a process fail, by number, or kills the process there.

The kernel reports each call that writes to a supervisor (`SECCOMP_RET_USER_NOTIF`), which counts those on paths under a
folder. Unlike strace, which counts the calls of each thread, this counts those of a process and of its children.
"""

import atexit
import ctypes
import errno
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

AT_FDCWD = 0xFFFFFF9C
# of x86_64: number, and where its arguments name what it changes: a descriptor, or a path after its folder
CALLS: Mapping[str, tuple[int, str]] = {
    **{name: (n, "f") for name, n in [("write", 1), ("pwrite64", 18), ("writev", 20)]},
    **{
        name: (n, "f")
        for name, n in [("sendfile", 40), ("pwritev", 296), ("ftruncate", 77)]
    },
    **{
        name: (n, "f") for name, n in [("fsync", 74), ("fdatasync", 75), ("fchmod", 91)]
    },
    **{
        name: (n, "p")
        for name, n in [("open", 2), ("creat", 85), ("mkdir", 83), ("rmdir", 84)]
    },
    **{name: (n, "p") for name, n in [("unlink", 87), ("rename", 82), ("chmod", 90)]},
    **{
        name: (n, "dp")
        for name, n in [("openat", 257), ("mkdirat", 258), ("unlinkat", 263)]
    },
    **{name: (n, "dp") for name, n in [("renameat", 264), ("renameat2", 316)]},
    "link": (86, "-p"),
    "linkat": (265, "--dp"),
    "copy_file_range": (326, "--f"),
    "mmap": (9, "----f"),
}
NAMES = {number: (name, where) for name, (number, where) in CALLS.items()}
GROWING = {
    *"write pwrite64 writev pwritev sendfile copy_file_range openat open creat".split()
} | {*"mkdir mkdirat link linkat ftruncate fsync fdatasync".split()}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # linux/seccomp.h
_NOTIFICATION = "=QIIiIQ6Q"


def missing() -> str:
    """Return why calls cannot be trapped here; empty if they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the numbers of system calls are those of Linux on x86_64"
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    return "" if release >= (5, 5) else "the kernel is older than 5.5"


@dataclass
class Fault:
    """What happens at the calls on paths under a folder: from one, or `only` there, an error; or a signal."""

    at: int = 0  # number of the call, from 1; 0 for none
    error: int = 0  # errno; 0 to kill the process
    calls: list[str] = field(default_factory=list[str])  # names of those that were made

    def answer(self, name: str) -> int | None:
        """Count a call; return the errno that it fails with, 0 for none, None to kill the process."""
        self.calls.append(name)
        number = len(self.calls)
        # a disk stays full
        if number == self.at or (
            0 < self.at < number and self.error == errno.ENOSPC and name in GROWING
        ):
            return self.error or None
        return 0


def run_trapped(command: Callable[[], int], root: Path | None, fault: Fault) -> int:
    """Run a command in a child; return its exit code, -9 if it was killed. Without a root, nothing is trapped."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child and not root:
        _end(command)
    if not root:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not child:
        ours.close()
        socket.send_fds(theirs, [b"."], [_load_filter()])
        theirs.close()
        _end(command)
    theirs.close()
    _, [listener], _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while poll.poll()[0][1] & select.POLLIN:  # else no process is left
        notification = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, notification, True)
        except OSError as error:  # the thread ended meanwhile
            if error.errno in (errno.ENOENT, errno.EINTR):
                continue
            raise
        key, thread, _, number, _, _, *arguments = struct.unpack(
            _NOTIFICATION, notification
        )
        name = NAMES[number][0]
        error = 0
        if _target(name, thread, arguments).startswith(f"{root}/"):
            answer = fault.answer(name)
            if answer is None:
                os.kill(child, signal.SIGKILL)
                continue
            error = answer
        response = struct.pack("=QqiI", key, 0, -error, 0 if error else 1)
        try:
            fcntl.ioctl(listener, _SEND, response)
        except OSError as gone:
            if gone.errno != errno.ENOENT:
                raise
    os.close(listener)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _end(command: Callable[[], int]) -> None:
    """Run a forked process to what Python does at its end; C++ libraries, whose threads are in the parent, are not."""
    try:
        code = command()
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _target(name: str, thread: int, arguments: list[int]) -> str:
    """Return the path that a call changes; empty for one that only reads."""
    where = NAMES[CALLS[name][0]][1]
    place = len(where) - len(where.lstrip("-"))
    is_open = name in ("open", "openat")
    if is_open and not arguments[len(where)] & WRITES:
        return ""
    try:
        if where[-1] == "f":
            return str(
                Path(f"/proc/{thread}/fd/{arguments[place] & 0xFFFFFFFF}").readlink()
            )
        with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
            memory.seek(arguments[len(where) - 1])
            path = memory.read(4096).partition(b"\0")[0].decode(errors="replace")
        folder = arguments[place] & 0xFFFFFFFF if where[place] == "d" else AT_FDCWD
        link = "cwd" if folder == AT_FDCWD else f"fd/{folder}"
        return os.path.normpath(Path(f"/proc/{thread}/{link}").readlink() / path)
    except OSError:  # the thread ended, or it is no file
        return ""


def _load_filter() -> int:
    """Filter the calls of this process from now on; return the descriptor of the supervisor."""

    def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("=HBBI", code, yes, no, value)

    # BPF_LD | W | ABS, BPF_JMP | JEQ | K, BPF_RET | K
    load, equal, back = (
        0x20,
        0x15,
        0x06,
    )
    notify, allow = 0x7FC00000, 0x7FFF0000
    program = [op(load, 0)]
    numbers = [number for number, _ in CALLS.values() if number != CALLS["mmap"][0]]
    program += [
        op(equal, number, len(numbers) - n + 3) for n, number in enumerate(numbers)
    ]
    program += [
        op(equal, CALLS["mmap"][0], 0, 2),
        op(load, 16 + 4 * 8),  # the descriptor
        op(equal, 0xFFFFFFFF, 0, 1),
        op(back, allow),
        op(back, notify),
    ]
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    # SECCOMP_SET_MODE_FILTER, with SECCOMP_FILTER_FLAG_NEW_LISTENER
    listener = libc.syscall(
        317, 1, 8, ctypes.create_string_buffer(described, len(described))
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return listener
