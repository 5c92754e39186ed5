"""Writing files and folders: complete or not at all, one process at a time, and through no link."""

import ctypes
import glob
import os
import shutil
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from uuid import uuid4

from citerec.errors import (
    LockedError,
    OutputError,
    writing,
)

# linux/fs.h
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
is_regular = os.path.isfile  # of a path or a link; `Path.is_file` may raise an error


@contextmanager
def building(target: Path) -> Generator[Path]:
    """Yield a temporary folder next to `target`, which replaces `target` when the block ends without an error.

    Temporary folders of killed builds of `target` are removed. If `target` is a link, its destination is replaced.
    OutputError if the folder cannot be created or moved.
    """
    with writing(target):
        target = Path(os.path.realpath(target))
        with _parents(target), _workspace(target) as workspace:
            yield workspace
            replace_folder(workspace, target)


@contextmanager
def _parents(target: Path) -> Generator[None]:
    """Create the missing parents of a path; those that are empty at the end are removed."""
    with writing(target):
        created = [path for path in target.parents if not path.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for folder in created:  # the deepest first
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def _workspace(target: Path) -> Generator[Path]:
    """Yield a new folder next to `target`, which is removed at the end; those that killed processes left are, too.

    It is locked meanwhile. The system ends a lock with its process, whatever machine, container or number that had.
    """
    # 30 characters are at most 120 bytes; a file's name has at most 255
    prefix = f".{target.name[:30]}.building-"
    for left in target.parent.glob(f"{glob.escape(prefix)}*"):
        with _flock(left) as is_left:
            if is_left:
                _remove(left)
    # several threads may write one file or folder
    workspace = target.with_name(prefix + uuid4().hex[:16])
    try:
        with ExitStack() as stack:
            # another process may take it for a killed one's until it is locked
            while not workspace.exists():
                try:
                    workspace.mkdir()
                except OSError as error:
                    error.filename = None  # a name that no user knows
                    raise
                stack.enter_context(_flock(workspace, wait=True))
            yield workspace
    finally:
        _remove(workspace)


@contextmanager
def _flock(folder: Path, *, wait: bool = False) -> Generator[bool]:
    """Lock a folder itself, unless the system has no such locks, or it is locked and not waited for; yield whether."""
    with ExitStack() as stack:
        is_locked = False
        with suppress(ImportError, OSError):
            import fcntl  # Windows has none

            opened = os.open(folder, os.O_RDONLY | os.O_NONBLOCK)
            stack.callback(os.close, opened)
            fcntl.flock(opened, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_locked = True
        yield is_locked


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def replace_folder(workspace: Path, target: Path) -> None:
    """Move `workspace` to `target`; a folder that was at `target` is removed. OutputError if that fails."""
    with writing(target):
        if not target.exists():
            workspace.rename(target)
        elif not _exchange(workspace, target):
            old = workspace.with_name(f"{workspace.name}.old")
            target.rename(old)
            workspace.rename(target)
            workspace = old
    shutil.rmtree(workspace, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step where the system can, so that a reader always sees one of them."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (os.fsencode(a.absolute()), os.fsencode(b.absolute()))
    return bool(rename) and (
        rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0
    )


@contextmanager
def replacing(path: Path, *, follow: bool = False) -> Generator[Path]:
    """Yield the path of a temporary file next to `path`, which replaces `path` when the block ends without an error.

    The block creates the file. If `path` is a link, the link is replaced; with `follow`, for a name that the user gave,
    its destination. Of concurrent writers of one path, the last one to finish counts. Files that killed writers of
    `path` left are removed. Errors of the block are passed on, but an OSError, which becomes an OutputError for `path`.
    """
    with writing(path):
        target = Path(os.path.realpath(path)) if follow else path
        with _workspace(target) as workspace:
            temporary = workspace / target.name
            try:
                yield temporary
                temporary.replace(target)
            except OSError as error:
                if error.filename == str(temporary):  # a name that no user knows
                    error.filename = str(path)
                raise


@contextmanager
def locked(path: Path, *, seconds: float = 0) -> Generator[None]:
    """Lock a folder or file that the block replaces, by a file next to it.

    Readers need no lock. LockedError if another process still has it after so many seconds.
    """
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    with _parents(target):
        with writing(target):
            lock = FileLock(
                target.with_name(f".{target.name}.lock"), is_singleton=False
            )
            try:
                lock.acquire(timeout=seconds)
            except Timeout as error:
                fault = f"{path} is being changed by another process"
                raise LockedError(
                    f"{fault}; wait until it is done, then run this again"
                ) from error
        try:
            yield
        finally:
            # before it is released: a waiting process opens a new file
            with suppress(OSError):
                Path(lock.lock_file).unlink(missing_ok=True)
            lock.release()


def link(file: Path, destination: Path) -> None:
    """Link a file to a second path, or copy it where the disk has no links; a symbolic link is not followed."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, destination, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(file, destination, follow_symlinks=False)  # noqa: TID251 (here alone)


def refuse_links(path: Path) -> None:
    """Refuse a file or folder of citerec's that an earlier run left, if it is or holds a link: an OutputError."""
    for file in chain([path], path.rglob("*")):
        if file.is_symlink():
            raise OutputError(
                f"{file} is a link, which citerec does not follow here; remove it"
            )


def check_parent(file: Path) -> None:
    """Refuse a file in a folder that does not exist, before the work, by an OutputError."""
    if not file.parent.is_dir():
        raise OutputError(f"cannot write {file}: there is no folder {file.parent}")


def check_writable(target: Path) -> None:
    """Refuse a folder or file that cannot be created, before the work that fills it starts, by an OutputError."""
    with writing(target):
        parents = Path(os.path.realpath(target)).parents
        parent = next(parent for parent in parents if parent.exists())
        if not parent.is_dir():
            raise OutputError(f"cannot write {target}: Not a directory: {parent}")
        if not os.access(parent, os.W_OK | os.X_OK):
            raise OutputError(
                f"cannot write {target}: no permission to write in {parent}"
            )
