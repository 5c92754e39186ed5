"""Writes files and folders that appear complete or not at all: under a temporary name first, then moved."""

import ctypes
import os
import shutil
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

from citerec.errors import IndexLockedError, OutputError, writing

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # linux/fs.h
MAX_NAME = 150  # bytes of a folder's name: 255 less the longest prefix and suffix of a workspace

_ASIDE = ".old"  # suffix of the folder that is being replaced, where two folders cannot be swapped in one step

MAX_STEM = 60  # characters of a file's name in that of its temporary file: at most 240 of 255 bytes

_in_use: set[Path] = set()  # workspaces of builds that run in this process
# numbers the builds of this process: several threads may build one folder at once
_numbers = count()


@contextmanager
def building(target: Path) -> Generator[Path]:
    """Yield a temporary folder next to `target`, which replaces `target` when the block ends without an error.

    If the block fails or is interrupted, the temporary folder is removed and `target` stays as it was.
    Temporary folders of killed builds of `target` are removed. If `target` is a link, its destination is replaced.
    If two builds of one folder run at once, the one that ends last counts.

    Raises:
        OutputError: If the folder cannot be created or moved.
    """
    with writing(target):
        check_name(target)
        target = destination(target)
        created = _make_parents(target.parent)
        try:
            _remove_leftovers(target)
            with _workspace(target) as workspace:
                yield workspace
                replace_folder(workspace, target)
        finally:
            for folder in created:  # only those that this build made, and only if empty
                with suppress(OSError):
                    folder.rmdir()


@contextmanager
def replacing(path: Path, shown: Path | None = None) -> Generator[Path]:
    """Yield the path of a temporary file next to `path`, which replaces `path` when the block ends without an error.

    The block creates the file. It is removed if the block or the move fails; `path` then stays as it was.
    Concurrent writers of one path use different temporary files; the last one to finish counts.

    Args:
        path: The file.
        shown: The path as the user gave it, for the error; `path` by default.

    Raises:
        OutputError: If the file cannot be moved to `path`. Errors of the block are passed on as they are.
    """
    temporary = path.with_name(f".{path.name[:MAX_STEM]}.{uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        try:
            temporary.replace(path)
        except OSError as error:
            raise OutputError(f"cannot write {shown or path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Lock a folder that is about to be replaced, by a file next to it; readers need no lock.

    Raises:
        IndexLockedError: If another process has locked it.
        OutputError: If the lock cannot be written.
    """
    from filelock import FileLock, Timeout

    target = destination(folder)
    with writing(target):
        lock = FileLock(target.with_name(f".{target.name}.lock"), is_singleton=False)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise IndexLockedError(folder) from error
    try:
        yield
    finally:
        with suppress(OSError):  # before it is released: a waiting process opens a new file
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def destination(target: Path) -> Path:
    """Return the path that a file or folder to be written has after all links are followed.

    Raises:
        OutputError: If links lead to each other.
    """
    path = Path(os.path.realpath(target))
    if path.is_symlink():  # what `realpath` leaves of a loop
        raise OutputError(f"cannot write {target}: it is a link that leads to itself; name another")
    return path


def check_name(target: Path) -> None:
    """Refuse a folder whose name is too long: its workspaces need longer names than it has.

    Raises:
        OutputError: If the name has more than `MAX_NAME` bytes.
    """
    name = os.path.realpath(target).rpartition(os.sep)[2]
    if (length := len(os.fsencode(name))) > MAX_NAME:
        raise OutputError(
            f"the name {name[:20]!r}... has {length} bytes, expected at most {MAX_NAME}; name another folder"
        )


def check_writable(target: Path) -> None:
    """Refuse a folder or file that cannot be created, before the work that fills it starts.

    Raises:
        OutputError: If its nearest existing parent is not a folder, or cannot be written to.
    """
    with writing(target):
        parent = destination(target).parent
        while not parent.exists() and parent != parent.parent:
            parent = parent.parent
        if not parent.is_dir():
            raise OutputError(f"cannot write {target}: Not a directory: {parent}")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise OutputError(f"cannot write {target}: no permission to write in {parent}")


@contextmanager
def _workspace(target: Path) -> Generator[Path]:
    workspace = target.with_name(f"{_prefix(target)}{os.getpid()}-{next(_numbers)}")
    try:
        # registered before it exists: another thread may be removing leftovers
        _in_use.add(workspace)
        workspace.mkdir()
        yield workspace
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
        _in_use.discard(workspace)


def _make_parents(folder: Path) -> list[Path]:
    """Create a folder and its parents; return those that were created, deepest first."""
    created: list[Path] = []
    while not folder.exists():
        created.append(folder)
        folder = folder.parent
    for new in reversed(created):
        new.mkdir(exist_ok=True)  # another build may have come first
    return created


def _prefix(target: Path) -> str:
    return f".{target.name}.building-{socket.gethostname()}-"


def _remove_leftovers(target: Path) -> None:
    prefix = _prefix(target)
    for folder in target.parent.iterdir():
        workspace = folder.with_name(folder.name.removesuffix(_ASIDE))
        pid = workspace.name.removeprefix(prefix).partition("-")[0]
        if not folder.name.startswith(prefix) or not pid.isdigit():
            continue
        # Containers share process ids: the id of this process does not prove that it made the folder.
        if workspace in _in_use or (int(pid) != os.getpid() and _is_alive(int(pid))):
            continue
        if folder.name.endswith(_ASIDE) and not target.exists():
            folder.rename(target)
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    """Whether a process of this host exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def replace_folder(workspace: Path, target: Path) -> None:
    """Move `workspace` to `target`; a folder that was at `target` is removed."""
    if not target.exists():
        with suppress(OSError):  # another build may create it in between; then it is replaced below
            workspace.rename(target)
            return
    if not target.exists():
        workspace.rename(target)  # raises with the reason
    elif _exchange(workspace, target):
        shutil.rmtree(workspace, ignore_errors=True)
    else:
        aside = workspace.with_name(f"{workspace.name}{_ASIDE}")
        target.rename(aside)
        try:
            workspace.rename(target)
        except BaseException:
            aside.rename(target)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step where the system supports it, so that a reader always sees one of them."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (os.fsencode(a.absolute()), os.fsencode(b.absolute()))
    return bool(rename) and (
        rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0
    )
