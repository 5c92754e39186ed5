"""Checks the entries of a folder that may have been downloaded: names stay inside it, and only files are read.

An index and a model name their files in records of citerec (`manifest.json`, `checksums.json`, `ranker.json`) and of
those of other libraries. Each name is checked here before it becomes a path.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from citerec.text import normalized

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
    """Return the faults of the names in a record, one line each.

    Two names that differ in case only are a fault, too: they are one file on some systems. So is a name that is both a
    file and a folder.
    """
    if wrong := [f"{shown(name)} {fault}" for name in names if (fault := name_fault(name))]:
        return wrong
    first: dict[str, str] = {}
    for name in map(str, names):
        other = first.setdefault(normalized("NFC", name).casefold(), name)
        if other is not name:
            wrong.append(f"{shown(other)} and {shown(name)} differ in case only")
    folders = {parent for key in first for parent in _parents(key)}
    return wrong + [
        f"{shown(first[key])} is a file and a folder" for key in sorted(folders & {*first})
    ]


def shown(name: object) -> str:
    """Return a name for a message: quoted and shortened."""
    text = ascii(name)
    return text if len(text) <= 80 else f"{text[:77]}..."


def entry_faults(
    folder: Path, names: Iterable[str], *, links_into: Path | None = None
) -> dict[str, str]:
    """Return the fault of each name that is not a file of a folder: missing, a link, or of another kind.

    The folder itself may be a link; entries inside it may not, except for links into `links_into`.
    """
    parents: dict[str, str | None] = {}
    faults = ((name, _entry_fault(folder, name, parents, links_into)) for name in names)
    return {name: fault for name, fault in faults if fault}


def entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield path and kind of every entry of a folder, recursively; links are not followed.

    Kinds: "file", "link", "folder" (yielded if it is empty, hidden or cannot be read) and "special" (a pipe, a
    socket, a device).
    """
    pending = _listed(folder)
    while pending:
        path = pending.pop()
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # removed since its folder was listed, by a rebuild, perhaps
            continue
        name = path.relative_to(folder).as_posix()
        if not stat.S_ISDIR(mode):
            yield name, _kind(mode)
            continue
        try:
            inside = _listed(path)
        except OSError:
            inside = []
        if not inside or path.name.startswith("."):
            yield name, "folder"
        pending += inside


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


def _entry_fault(
    folder: Path, name: str, parents: dict[str, str | None], links_into: Path | None
) -> str | None:
    for parent in _parents(name):
        if parent not in parents:
            parents[parent] = _fault(folder / parent, "folder", links_into)
        if fault := parents[parent]:
            return "is missing" if fault == "is missing" else f"is missing: {parent} {fault}"
    return _fault(folder / name, "file", links_into)


def _fault(path: Path, kind: str, links_into: Path | None) -> str | None:
    try:
        mode = path.lstat().st_mode
        if (
            stat.S_ISLNK(mode)
            and links_into
            and path.resolve().is_relative_to(links_into.resolve())
        ):
            mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    actual = "folder" if stat.S_ISDIR(mode) else _kind(mode)
    names = {
        "link": "a link",
        "special": "a pipe or a device",
        "folder": "a folder",
        "file": "a file",
    }
    return None if actual == kind else f"is {names[actual]}, expected a {kind}"


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "special"


def _listed(folder: Path) -> list[Path]:
    with os.scandir(folder) as directory:
        # a stack: the first entry is the last of the list
        return sorted((Path(entry.path) for entry in directory), reverse=True)


def _parents(name: str) -> list[str]:
    """Return the folders above a path, outermost first."""
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]
