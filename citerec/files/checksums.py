"""Records and checksums of folders that may have been downloaded: an index, a model."""

import errno
import hashlib
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import (
    ModelDamagedError,
    shown,
)
from citerec.files.cache import sha256_of_files

MAX_NAME = 1024  # bytes of a path within a folder
MAX_RECORD = 2**26  # bytes of a record in JSON
MAX_FILE = 2**36  # bytes of a file of a model
MODEL_SUMS = "checksums.json"  # of a model that citerec trained
TRAINING = "training.json"  # the record of its training
CARD = "README.md"  # its model card, which users may edit


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
        f"{shown(name)} is not a path inside the folder"
        for name in names
        if not is_inside(name)
    ]


def read_record(path: Path) -> bytes:
    """Read a small file, such as a JSON record; OSError if it is far too large, or a pipe, which may block."""
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    if info.st_size > MAX_RECORD:
        raise OSError(errno.EFBIG, f"it has {info.st_size:,} bytes", str(path))
    return path.read_bytes()


def indented_json(content: Any, option: int = 0) -> bytes:
    """Return a value as indented JSON, which ends with a newline; `option` is a further one of orjson."""
    layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(content, option=layout | option)


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON with its seal, the sha256 of the rest; the same content gives the same bytes."""
    rest = indented_json(content, orjson.OPT_SORT_KEYS)
    seal = hashlib.sha256(rest).hexdigest()
    return indented_json({**content, "seal": seal}, orjson.OPT_SORT_KEYS)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksums_of(
    folder: Path, *but: str, known: Collection[str] = ()
) -> dict[str, str]:
    """Return the sha256 of the files of a folder, by name; some of its entries and `known` files are left out."""
    names = [
        name
        for name, kind in entries(folder)
        if kind == "file" and name not in known and name.split("/")[0] not in but
    ]
    names.sort()
    with ThreadPoolExecutor(4) as pool:  # hashing releases Python's lock
        sums = pool.map(sha256_of, map(folder.joinpath, names))
        return dict(zip(names, sums, strict=True))


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and kind ("file", "link", "special") of every entry of a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        # removed meanwhile, as a training's temporary folder is
        with suppress(FileNotFoundError):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                yield from (
                    (f"{path.name}/{name}", kind) for name, kind in entries(path)
                )
            else:
                kind = (
                    "link"
                    if stat.S_ISLNK(mode)
                    else "file"
                    if stat.S_ISREG(mode)
                    else "special"
                )
                yield path.name, kind


def file_faults(
    folder: Path, sums: Mapping[str, str], *, cached: bool, most: int = MAX_FILE
) -> list[str]:
    """Compare files with their checksums, by path within the folder; return the faults, one line each.

    A file of over `most` bytes, which may consist of holes, is not read.
    If `cached`, a large file that was read before is not read again while it stays unchanged; see `sha256_of_files`.
    """

    def fault(name: str) -> str:
        file = folder / name
        try:
            if not file.is_file():
                return "is not a file" if file.exists() else "is missing"
            if (size := file.stat().st_size) > most:
                return f"has {size:,} bytes, more than it can have"
            is_same = cached and sha256_of_files([file]) == sums[name]
            # a cached one may be damaged, too
            is_same = is_same or sha256_of(file) == sums[name]
        except OSError as error:
            return f"cannot be read ({error.strerror})"
        return "" if is_same else "is not what was written"

    # for small files alone, threads cost more than they save
    with ThreadPoolExecutor(4) as pool:
        faults = [*(map if cached else pool.map)(fault, sums)]
    return [
        f"{name} {wrong}" for name, wrong in zip(sums, faults, strict=True) if wrong
    ]


def unexpected(folder: Path, known: Collection[str], *, but: str = "") -> list[str]:
    """Return the entries of a folder that do not belong to it, one line each; files of its folder `but` do."""
    return [
        f"{name} does not belong to it"
        if kind == "file"
        else f"{name} is a {kind} entry"
        for name, kind in entries(folder)
        if kind != "file" or (name not in known and name.split("/")[0] != but)
    ]


def seal_model(folder: Path) -> None:
    """Write the checksums of a model's files into its folder, so that `verify` can check them."""
    record = {"files": checksums_of(folder, MODEL_SUMS)}
    (folder / MODEL_SUMS).write_bytes(sealed(record))


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
        return file_faults(model, sums, cached=False) + unexpected(
            model, {MODEL_SUMS, *sums}
        )
    sums.pop(CARD, None)
    return file_faults(model, sums, cached=True)


def check_model(model: Path) -> None:
    """Check a model when it is opened, if it has checksums; ModelDamagedError if a file is missing or was changed.

    A folder of other software has none.
    """
    has_sums = any((model / name).exists() for name in (MODEL_SUMS, TRAINING))
    if wrong := model_faults(model, whole=False) if has_sums else []:
        raise ModelDamagedError(model, wrong)
