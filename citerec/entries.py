"""The files of a folder that may have been downloaded: their names, kinds and checksums.

An index and a model name their files in records (`manifest.json`, `checksums.json`, `ranker.json`, and those of other
libraries). Each name is checked here before it becomes a path.
"""

import errno
import hashlib
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MAX_RECORD = 2**26  # bytes of a record in JSON
MAX_NAME = 1024  # bytes of a path within a folder
_FORBIDDEN = re.compile(r"[\\:]")  # on Windows they separate folders, drives and streams
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def name_fault(name: object) -> str | None:
    """Return why a name is not the path of a file inside its folder; None if it is valid.

    A valid path is relative and normalised, uses slashes, and names the same file on every system.
    """
    if not isinstance(name, str) or not name:
        return "is not a file name"
    if len(name.encode(errors="surrogatepass")) > MAX_NAME:
        return "is too long for a file name"
    if _FORBIDDEN.search(name) or not name.isprintable():
        return "has a character that a file name here cannot have"
    for part in name.split("/"):
        if part in {"", ".", ".."}:
            return "is not a path inside the folder"
        if part[-1] in " ." or _DEVICE.fullmatch(part):
            return "is not a file name on every system"
    return None


def name_faults(names: Collection[object]) -> list[str]:
    """Return the faults of the names in a record, one line each."""
    return [f"{shown(name)} {fault}" for name in names if (fault := name_fault(name))]


def shown(name: object) -> str:
    """Return a name for a message: quoted and shortened."""
    text = ascii(name)
    return text if len(text) <= 80 else f"{text[:77]}..."


def read_record(path: Path) -> bytes:
    """Read a small file, such as a JSON record; a pipe is refused, so the call never blocks.

    Raises:
        OSError: If it cannot be read, is not a regular file, or is far too large for a record.
    """
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    if info.st_size > MAX_RECORD:
        raise OSError(errno.EFBIG, f"it has {info.st_size:,} bytes", str(path))
    return path.read_bytes()


def is_regular(path: Path) -> bool:
    """Whether a path leads to a file, directly or by a link."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksums_of(folder: Path, names: Collection[str]) -> dict[str, str]:
    """Return the sha256 of files of a folder, by name."""
    ordered = sorted(names)
    with ThreadPoolExecutor(4) as pool:  # hashing releases Python's lock
        return dict(zip(ordered, pool.map(sha256_of, map(folder.joinpath, ordered)), strict=True))


def sizes_of(folder: Path, names: Collection[str]) -> dict[str, int]:
    """Return the sizes of files of a folder in bytes, by name."""
    return {name: (folder / name).stat().st_size for name in sorted(names)}


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and kind ("file", "link", "special") of every entry of a folder; links are not followed."""
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from ((f"{path.name}/{name}", kind) for name, kind in entries(path))
        else:
            kind = "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "special"
            yield path.name, kind


def file_faults(
    folder: Path,
    sums: Mapping[str, str],
    sizes: Mapping[str, int],
    *,
    whole: bool,
    links: bool = False,
) -> list[str]:
    """Compare files with their recorded sizes and checksums; return the faults, one line each.

    Args:
        folder: The folder of the files.
        sums: The sha256 of each file, by its path within the folder.
        sizes: The bytes of each file.
        whole: Whether every file is read; otherwise only the sizes are compared.
        links: Whether files may be links, as in the cache of a hub.
    """
    wrong: dict[str, str] = {}
    for name in sums:
        file = folder / name
        parents = [folder / parent for parent in Path(name).parents if parent.parts]
        if not links and any(path.is_symlink() for path in (file, *parents)):
            wrong[name] = "is a link, expected a file"
        elif not is_regular(file):
            wrong[name] = "is not a file" if file.exists() else "is missing"
        elif file.stat().st_size != sizes.get(name):
            wrong[name] = "is not what was written"
    if whole:
        found = checksums_of(folder, sums.keys() - wrong.keys())
        wrong |= {n: "is not what was written" for n, sha256 in found.items() if sha256 != sums[n]}
    return [f"{name} {wrong[name]}" for name in sums if name in wrong]


def unexpected(folder: Path, known: Collection[str], *, but: str = "") -> list[str]:
    """Return the entries of a folder that do not belong to it, one line each.

    Args:
        folder: The folder.
        known: The files that belong to it.
        but: A folder of it whose files are not examined.
    """
    return [
        f"{name} does not belong to it" if kind == "file" else f"{name} is a {kind} entry"
        for name, kind in entries(folder)
        if kind != "file" or (name not in known and not (but and name.startswith(f"{but}/")))
    ]
