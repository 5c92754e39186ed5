"""The user's cache folder: files that make the next commands start faster.

Every file in it can be recreated. Commands run without the cache if it cannot be written or another user owns it.
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

CHECKSUMS = "sha256"  # folder of the checksums of large files
LARGE = 2**23  # bytes; checksums of files of at least this size in total are cached
# seconds since the last change; a later change within the same clock tick would be missed
SETTLED_SECONDS = 2


def cache_folder() -> Path | None:
    """Return citerec's folder in the user's cache (XDG_CACHE_HOME, else the system's); it may not exist yet.

    Returns None where the system names no such folder.
    """
    from platformdirs import user_cache_path

    folder = user_cache_path("citerec", appauthor=False)
    return folder if folder.is_absolute() else None  # "~" stays where the home folder is unknown


def is_private(file: Path) -> bool:
    """Whether a cached file exists and no other user could have written it."""
    try:
        status = file.stat()
    except OSError:
        return False
    if not hasattr(os, "geteuid"):  # Windows protects the folders of a user
        return file.is_file()
    others_write = status.st_mode & 0o022
    return file.is_file() and status.st_uid == os.geteuid() and not others_write


def private_folder(folder: Path) -> bool:
    """Create a folder in the cache if it does not exist; return whether it can be written."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def write_cached(file: Path, content: bytes) -> None:
    """Write a small cache file completely or not at all; nothing is raised if the cache cannot be written."""
    if not private_folder(file.parent):
        return
    with suppress(OSError, OutputError), replacing(file) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_bytes(content)


def sha256_of_files(files: Sequence[Path]) -> str:
    """Return one sha256 of the contents of files, in the given order; for one file its own sha256.

    Checksums of large files are cached. A cached one is used while the system reports the same paths, inodes, sizes
    and change times; unlike the time of the last write, the change time cannot be set by programs.
    """
    before = _identity(files)
    cache = cache_folder() if sum(size for _, _, _, size, *_ in before) >= LARGE else None
    if cache is None:
        return _sha256(files)
    file = cache / CHECKSUMS / hashlib.sha256(repr(before).encode(errors="replace")).hexdigest()
    cached = _read(file)
    if re.fullmatch("[0-9a-f]{64}", cached):
        return cached
    digest = _sha256(files)
    newest = max(changed for *_, changed in before) / 1e9
    if before == _identity(files) and abs(time.time() - newest) > SETTLED_SECONDS:
        write_cached(file, digest.encode())
    return digest


def _identity(files: Sequence[Path]) -> list[tuple[str, int, int, int, int, int]]:
    """Return what identifies the contents of files: path, device, inode, size, times of the last write and change."""
    statuses = [(str(file.resolve()), file.stat()) for file in files]
    return [
        (path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in statuses
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
