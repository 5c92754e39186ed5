"""Folders that appear whole or not at all: built beside their place, moved into it at the end."""

import ctypes
import os
import shutil
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from citerec.errors import writing

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # linux/fs.h


@contextmanager
def building(target: Path) -> Generator[Path]:
    """Give a folder to build in; when the block ends well it stands at `target`, replacing what was there.

    If the block fails or is interrupted, nothing is left of it and `target` is as it was.
    What a killed build left beside `target` is removed.

    Raises:
        OutputError: If the folder cannot be made or moved.
    """
    with writing(target):
        made = _make_parents(target.parent)
        _remove_leftovers(target)
        workspace = target.parent / f".{target.name}.building-{socket.gethostname()}-{os.getpid()}"
        try:
            workspace.mkdir()
            yield workspace
            _move(workspace, target)
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
            for folder in made:  # only those that this build made, and only if empty
                with suppress(OSError):
                    folder.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    """Make a folder and its parents; return those made, deepest first."""
    made: list[Path] = []
    while not folder.exists():
        made.append(folder)
        folder = folder.parent
    for new in reversed(made):
        new.mkdir()
    return made


def _remove_leftovers(target: Path) -> None:
    prefix = f".{target.name}.building-{socket.gethostname()}-"
    for folder in target.parent.glob(f"{prefix}*"):
        pid = folder.name.removeprefix(prefix)
        if pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _move(workspace: Path, target: Path) -> None:
    """Put `workspace` at `target`; what was there ends up at `workspace`, to be removed."""
    if not target.exists():
        workspace.rename(target)
    elif not _exchange(workspace, target):
        aside = workspace.with_name(f"{workspace.name}.old")
        target.rename(aside)
        workspace.rename(target)
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step, where the system can: then no reader ever finds neither."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    paths = (os.fsencode(a.absolute()), os.fsencode(b.absolute()))
    return bool(rename) and (
        rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0
    )
