"""Files: written completely or not at all, decoded, checked against checksums, and the user's cache.

A name that citerec chose, such as that of a backup, may be a link that came with somebody else's folder. It is never
written through: `replacing` replaces the link, `locked` and `refuse_links` refuse it.
"""

import ctypes
import errno
import glob
import hashlib
import os
import re
import shutil
import socket
import stat
import sys
import time
import tomllib  # noqa: TID251 (here alone)
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from citerec.errors import (
    BadInputError,
    LockedError,
    ModelDamagedError,
    OutputError,
    shown,
    writing,
)
from citerec.inputs import read_whole

MAX_NAME = 1024  # bytes of a path within a folder
MAX_RECORD = 2**26  # bytes of a record in JSON
CACHED_SIZE = 2**20  # bytes; checksums of files of at least this size in total are cached
# seconds since the last change; a later change within the same clock tick would be missed
SETTLED_SECONDS = 2
MODEL_SUMS = "checksums.json"  # of a model that citerec trained
TRAINING = "training.json"  # the record of its training
CARD = "README.md"  # its model card, which users may edit
# linux/fs.h
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_FOREIGN = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as Python keeps them
is_regular = os.path.isfile  # of a path or a link; `Path.is_file` may raise an error


# --- writing


@contextmanager
def building(target: Path) -> Generator[Path]:
    """Yield a temporary folder next to `target`, which replaces `target` when the block ends without an error.

    Temporary folders of killed builds of `target` are removed. If `target` is a link, its destination is replaced.
    OutputError if the folder cannot be created or moved.
    """
    with writing(target):
        target = Path(os.path.realpath(target))
        with _parents(target):
            workspace = _temporary(target)
            try:
                workspace.mkdir()
                yield workspace
                replace_folder(workspace, target)
            finally:
                _remove(workspace)


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


def _temporary(target: Path) -> Path:
    """Return a new path next to `target` for what will replace it; what killed processes left there is removed."""
    # 30 characters are at most 120 bytes; a file's name has at most 255
    prefix = f".{target.name[:30]}.building-{socket.gethostname()}-"
    for left in target.parent.glob(f"{glob.escape(prefix)}*"):
        pid = left.name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit():
            try:
                os.kill(int(pid), 0)
            except ProcessLookupError:
                _remove(left)
            except OSError:  # it is another user's
                continue
    # several threads may write one file or folder
    return target.with_name(f"{prefix}{os.getpid()}-{uuid4().hex[:8]}")


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def replace_folder(workspace: Path, target: Path) -> None:
    """Move `workspace` to `target`; a folder that was at `target` is removed. OutputError if that fails."""
    with writing(target):
        if target.exists() and not _exchange(workspace, target):
            old = workspace.with_name(f"{workspace.name}.old")
            target.rename(old)
            workspace.rename(target)
            workspace = old
        elif not target.exists():
            workspace.rename(target)
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
    `path` left are removed. Errors of the block are passed on; an OSError if the file cannot be moved names `path`.
    """
    with writing(path):
        target = Path(os.path.realpath(path)) if follow else path
        temporary = _temporary(target)
    try:
        yield temporary
        temporary.replace(target)
    except OSError as error:
        if error.filename == str(temporary):  # a name that no user knows
            error.filename = str(path)
        raise
    finally:
        _remove(temporary)


@contextmanager
def locked(path: Path, *, seconds: float = 0) -> Generator[None]:
    """Lock a folder or file that the block replaces, by a file next to it.

    Readers need no lock. LockedError if another process still has it after so many seconds.
    """
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    with _parents(target):
        with writing(target):
            lock = FileLock(target.with_name(f".{target.name}.lock"), is_singleton=False)
            try:
                lock.acquire(timeout=seconds)
            except Timeout as error:
                raise LockedError(path) from error
        try:
            yield
        finally:
            with suppress(OSError):  # before it is released: a waiting process opens a new file
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
            raise OutputError(f"{file} is a link, which citerec does not follow here; remove it")


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
            raise OutputError(f"cannot write {target}: no permission to write in {parent}")


# --- texts


def decoded(data: bytes) -> tuple[str, int]:
    r"""Return UTF-8 as text, without a byte order mark, with lines ended by `\n`, and how many bytes were foreign.

    A byte that is not UTF-8 is read as Windows-1252, whose letters are those of Latin-1; the others are not affected.
    """
    text = data.decode("utf-8-sig", "surrogateescape")
    text, foreign = _FOREIGN.subn(_from_windows, text)
    return text.replace("\r\n", "\n").replace("\r", "\n"), foreign


def _from_windows(byte: re.Match[str]) -> str:
    return bytes([ord(byte[0]) - 0xDC00]).decode("cp1252", "replace")


# --- records and checksums of folders that may have been downloaded


def is_inside(name: object) -> bool:
    """Whether a name in a record is the path of a file inside its folder: relative, normalised, with slashes.

    Backslashes and colons separate folders, drives and streams on Windows.
    """
    return (
        isinstance(name, str)
        and len(name.encode(errors="surrogatepass")) <= MAX_NAME
        and name.isprintable()
        and not re.search(r"[\\:]", name)
        and {"", ".", ".."}.isdisjoint(name.split("/"))
    )


def name_faults(names: Collection[object]) -> list[str]:
    """Return the faults of the names in a record, one line each."""
    return [
        f"{shown(name)} is not a path inside the folder" for name in names if not is_inside(name)
    ]


def read_record(path: Path) -> bytes:
    """Read a small file, such as a JSON record; OSError if it is far too large, or a pipe, which may block."""
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    if info.st_size > MAX_RECORD:
        raise OSError(errno.EFBIG, f"it has {info.st_size:,} bytes", str(path))
    return path.read_bytes()


def indented_json(content: Any) -> bytes:
    """Return a value as indented JSON, which ends with a newline."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON with its seal, the sha256 of the rest; the same content gives the same bytes."""

    def serialised(values: Mapping[str, Any]) -> bytes:
        return orjson.dumps(values, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"

    return serialised({**content, "seal": hashlib.sha256(serialised(content)).hexdigest()})


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; BadInputError if it is none."""
    try:
        return tomllib.loads(read_whole(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # also no UTF-8, a 32nd of May
        raise BadInputError(path, f"not TOML: {error}") from error


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksums_of(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return the sha256 of files of a folder, by name."""
    ordered = sorted(names)
    with ThreadPoolExecutor(4) as pool:  # hashing releases Python's lock
        return dict(zip(ordered, pool.map(sha256_of, map(folder.joinpath, ordered)), strict=True))


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and kind ("file", "link", "special") of every entry of a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        with suppress(FileNotFoundError):  # removed meanwhile, as a training's temporary folder is
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                yield from ((f"{path.name}/{name}", kind) for name, kind in entries(path))
            else:
                kind = "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "special"
                yield path.name, kind


def file_faults(folder: Path, sums: Mapping[str, str], *, cached: bool) -> list[str]:
    """Compare files with their checksums, by path within the folder; return the faults, one line each.

    If `cached`, a large file that was read before is not read again while it stays unchanged; see `sha256_of_files`.
    """

    def fault(name: str) -> str:
        file = folder / name
        try:
            if not file.is_file():
                return "is not a file" if file.exists() else "is missing"
            is_same = cached and sha256_of_files([file]) == sums[name]
            is_same = is_same or sha256_of(file) == sums[name]  # a cached one may be damaged, too
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        return "" if is_same else "is not what was written"

    with ThreadPoolExecutor(4) as pool:  # for small files alone, threads cost more than they save
        faults = [*(map if cached else pool.map)(fault, sums)]
    return [f"{name} {wrong}" for name, wrong in zip(sums, faults, strict=True) if wrong]


def unexpected(folder: Path, known: Collection[str], *, but: str = "") -> list[str]:
    """Return the entries of a folder that do not belong to it, one line each; files of its folder `but` do."""
    return [
        f"{name} does not belong to it" if kind == "file" else f"{name} is a {kind} entry"
        for name, kind in entries(folder)
        if kind != "file" or (name not in known and not (but and name.startswith(f"{but}/")))
    ]


# --- models


def seal_model(folder: Path) -> None:
    """Write the checksums of a model's files into its folder, so that `verify` can check them."""
    names = [name for name, kind in entries(folder) if kind == "file" and name != MODEL_SUMS]
    (folder / MODEL_SUMS).write_bytes(sealed({"files": checksums_of(folder, names)}))


def model_faults(model: Path, *, whole: bool = True) -> list[str]:
    """Compare the files of a model with the checksums in its folder; return the faults, one line each.

    If `whole`, every file is read, and additional files are faults, too; otherwise see `file_faults`.
    """
    try:
        content: Any = orjson.loads(raw := read_record(model / MODEL_SUMS))
        content.pop("seal")
        sums = dict(content["files"])
        if raw != sealed(content):
            return [f"{MODEL_SUMS} is not what was written"]
    except (FileNotFoundError, NotADirectoryError):
        return [f"{MODEL_SUMS} is missing"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [f"{MODEL_SUMS} cannot be read"]
    if wrong := name_faults(sums):
        return wrong
    if whole:
        return file_faults(model, sums, cached=False) + unexpected(model, {MODEL_SUMS, *sums})
    sums.pop(CARD, None)
    return file_faults(model, sums, cached=True)


def check_model(model: Path) -> None:
    """Check a model when it is opened, if it has checksums; ModelDamagedError if a file is missing or was changed.

    A folder of other software has none.
    """
    has_sums = any((model / name).exists() for name in (MODEL_SUMS, TRAINING))
    if wrong := model_faults(model, whole=False) if has_sums else []:
        raise ModelDamagedError(model, wrong)


# --- the user's cache: every file in it can be made again, and commands run without it


def cache_folder() -> Path | None:
    """Return citerec's folder in the user's cache, which may not exist yet; None where the system names none."""
    from platformdirs import user_cache_path

    folder = user_cache_path("citerec", appauthor=False)
    return folder if folder.is_absolute() else None  # "~" stays where the home folder is unknown


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


def sha256_of_files(files: Sequence[Path]) -> str:
    """Return one sha256 of the contents of files, in the given order; for one file its own sha256.

    Checksums of large files are cached. A cached one is used while the system reports the same inodes, sizes and change
    times; unlike the time of the last write, the change time cannot be set by programs.
    """

    def identity() -> str:
        stats = [file.stat() for file in files]
        return repr([(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats])

    is_large = sum(file.stat().st_size for file in files) >= CACHED_SIZE
    cache = cache_folder() if is_large else None
    before = identity()
    name = hashlib.sha256(before.encode()).hexdigest()
    file = cache / "sha256" / name if cache else None
    cached = file.read_text(errors="replace") if file and is_private(file) else ""
    if re.fullmatch("[0-9a-f]{64}", cached):
        return cached
    hashed = hashlib.sha256()
    for member in files:
        with member.open("rb") as stream:
            hashlib.file_digest(stream, lambda: hashed)
    digest = hashed.hexdigest()
    if file:
        newest = max(file.stat().st_ctime for file in files)
        settled = before == identity() and abs(time.time() - newest) > SETTLED_SECONDS
        if settled and private_folder(file.parent):
            with suppress(OSError, OutputError), replacing(file) as temporary:
                temporary.touch(mode=0o600)
                temporary.write_text(digest)
    return digest
