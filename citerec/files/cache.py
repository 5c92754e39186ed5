"""The user's cache: every file in it can be made again, and commands run without it."""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from citerec.errors import (
    OutputError,
)
from citerec.files.atomic import is_regular, replacing

# bytes; checksums of files of at least this size in total are cached
CACHED_SIZE = 2**20
# seconds since the last change; a later change within the same clock tick would be missed
SETTLED_SECONDS = 2


def cache_folder() -> Path | None:
    """Return citerec's folder in the user's cache, which may not exist yet; None where the system names none."""
    from platformdirs import user_cache_path

    folder = user_cache_path("citerec", appauthor=False)
    # "~" stays where the home folder is unknown
    return folder if folder.is_absolute() else None


def is_private(file: Path) -> bool:
    """Whether a cached file exists, is no link, and no other user could have written it."""
    if not is_regular(file) or file.is_symlink():
        return False
    # Windows protects users' folders
    status = file.stat()
    getuid = getattr(os, "geteuid", None)
    return getuid is None or (status.st_uid == getuid() and not status.st_mode & 0o022)


def private_folder(folder: Path) -> bool:
    """Create a folder in the cache if it does not exist; return whether it can be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def kept(place: str) -> bytes:
    """Return what a file of the cache holds; empty if there is none that can be read, and is this user's own."""
    cache = cache_folder()
    with suppress(OSError):
        if cache and is_private(cache / place):
            return (cache / place).read_bytes()
    return b""


def keep(place: str, content: bytes) -> None:
    """Write a file of the cache, where it can be written."""
    cache = cache_folder()
    if cache and private_folder((cache / place).parent):
        with suppress(OSError, OutputError), replacing(cache / place) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_bytes(content)


def sha256_of_files(files: Sequence[Path]) -> str:
    """Return one sha256 of the contents of files, in the given order; for one file its own sha256.

    Checksums of large files are cached. A cached one is used while the system reports the same inodes, sizes and change
    times; unlike the time of the last write, the change time cannot be set by programs.
    """

    def identity() -> str:
        stats = [file.stat() for file in files]
        return repr(
            [
                (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
                for s in stats
            ]
        )

    is_large = sum(file.stat().st_size for file in files) >= CACHED_SIZE
    before = identity()
    place = f"sha256/{hashlib.sha256(before.encode()).hexdigest()}"
    cached = kept(place) if is_large else b""
    if re.fullmatch(b"[0-9a-f]{64}", cached):
        return cached.decode()
    hashed = hashlib.sha256()
    for member in files:
        with member.open("rb") as stream:
            hashlib.file_digest(stream, lambda: hashed)
    digest = hashed.hexdigest()
    if is_large and before == identity():
        newest = max(file.stat().st_ctime for file in files)
        if abs(time.time() - newest) > SETTLED_SECONDS:
            keep(place, digest.encode())
    return digest
