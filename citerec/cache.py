"""The user's cache folder: what citerec keeps between commands to start faster.

Nothing in it is needed. Where it cannot be written, or belongs to somebody else, commands do without it.
"""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from citerec.atomic import replacing
from citerec.errors import OutputError

CHECKSUMS = "sha256"  # the folder of those of large files
LARGE = 2**23  # bytes from which on a sum is kept
SETTLED_SECONDS = (
    2  # a file that changed less long ago may change again without a trace in its times
)


def cache_folder() -> Path | None:
    """Return citerec's folder in the user's cache (XDG_CACHE_HOME, else the system's), which may not exist yet.

    None where the system names no such folder.
    """
    from platformdirs import user_cache_path

    folder = user_cache_path("citerec", appauthor=False)
    return folder if folder.is_absolute() else None  # "~" where nobody knows the home folder


def is_private(file: Path) -> bool:
    """Whether a cached file is there and only this user could have written it."""
    try:
        status = file.stat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):  # Windows keeps the folder of a user to the user
        return file.is_file()
    others_write = status.st_mode & 0o022
    return file.is_file() and status.st_uid == os.geteuid() and not others_write


def private_folder(folder: Path) -> bool:
    """Make a folder in the cache if need be; return whether it can be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def write_cached(file: Path, content: bytes) -> None:
    """Write a small file of the cache whole, or not at all; a cache that cannot be written stays as it is."""
    if not private_folder(file.parent):
        return
    with suppress(OSError, OutputError), replacing(file) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_bytes(content)


def sha256_of_files(files: Sequence[Path]) -> str:
    """Return one sha256 of the contents of files, in their order; of a single one, its own.

    That of large files is kept in the cache folder, and taken from there as long as the system reports the same
    places on the disk, sizes, and times of the last change (which, unlike that of the last write, nobody can set).
    """
    before = _identity(files)
    kept = cache_folder() if sum(size for _, _, _, size, *_ in before) >= LARGE else None
    if kept is None:
        return _sha256(files)
    file = kept / CHECKSUMS / hashlib.sha256(repr(before).encode(errors="replace")).hexdigest()
    known = _read(file)
    if re.fullmatch("[0-9a-f]{64}", known):
        return known
    digest = _sha256(files)
    newest = max(changed for *_, changed in before) / 1e9
    if before == _identity(files) and abs(time.time() - newest) > SETTLED_SECONDS:
        write_cached(file, digest.encode())
    return digest


def _identity(files: Sequence[Path]) -> list[tuple[str, int, int, int, int, int]]:
    """Return what changes when a file does: path, device, inode, size, times of the last write and change."""
    found = [(str(file.resolve()), file.stat()) for file in files]
    return [
        (path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in found
    ]


def _read(file: Path) -> str:
    if not is_private(file):
        return ""
    with suppress(OSError):
        return file.read_text(encoding="ascii", errors="replace")
    return ""


def _sha256(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
