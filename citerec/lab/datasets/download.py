"""Downloads one file over HTTP; an interrupted download is resumed. The only module that imports httpx.

httpx is always installed, as huggingface_hub depends on it. It supports proxies, redirects and timeouts, and detects
truncated bodies.
"""

import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.atomic import replacing
from citerec.errors import OutputError, writing
from citerec.lab.datasets.dataset import DatasetError, megabytes

SECONDS = 20  # timeout of a response, or of its next bytes
TRIES = 5  # consecutive tries without a new byte
PAUSE = 1.0  # seconds between tries
RESERVE = 64 * 2**20  # bytes that stay free on the disk
NO_HEAD = {405, 501}  # status codes of a server that does not support HEAD
GONE = {401, 403, 404, 410}  # S3 returns 403 for a missing file


class GoneError(DatasetError):
    """The server does not provide the file."""


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """Facts of a file on a server, before the download."""

    url: str
    size: int | None  # bytes
    mark: str  # its ETag, else its modification time; "" if the server sends neither


def query_server(url: str) -> RemoteStatus:
    """Query the size and version of a file on a server.

    Raises:
        GoneError: If the server does not provide it.
        DatasetError: If the server cannot be reached.
    """
    try:
        with _client() as client, _reaching():
            response = client.head(url)
            if response.status_code in NO_HEAD:
                return RemoteStatus(url, None, "")
            _check(url, response.status_code)
            return _status(url, response)
    except _InterruptedError as error:
        raise DatasetError(
            f"{url} cannot be reached ({error}); download it on another machine and name its folder: "
            "--from FOLDER"
        ) from error


def download(
    remote: RemoteStatus, target: Path, progress: Callable[[int], None], pause: float = PAUSE
) -> None:
    """Download a file to `target`; an incomplete download is in `target`.part and is resumed.

    Args:
        remote: The status of the file from `query_server`.
        target: The file to create, when the download is complete.
        progress: Receives the number of downloaded bytes.
        pause: Seconds between two tries.

    Raises:
        GoneError: If the server no longer provides the file.
        DatasetError: If the server cannot be reached, or the download fails repeatedly.
        OutputError: If the disk is too small, or the file cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    _keep_only_parts_of(remote, part)
    check_space(target.parent, missing(remote, target), what=target.name)
    tries = 0
    while True:
        before = _size(part)
        try:
            _resume(remote, part, progress)
            break
        except _InterruptedError as broken:
            tries = 0 if _size(part) > before else tries + 1
            if tries == TRIES:
                raise DatasetError(
                    f"the download of {remote.url} stopped after {megabytes(_size(part))} ({broken}); the data is in "
                    f"{part}: run the command again to resume"
                ) from broken
            time.sleep(pause)
    with writing(target):
        part.replace(target)
        _note_of(part).unlink(missing_ok=True)


def missing(remote: RemoteStatus, target: Path) -> int:
    """Return the number of bytes that are still to be downloaded; 0 if the size is unknown."""
    return max((remote.size or 0) - _size(target.with_name(f"{target.name}.part")), 0)


def check_space(folder: Path, needed: int, *, what: str) -> None:
    """Refuse to write files that the disk has no room for.

    Raises:
        OutputError: If fewer than `needed` bytes plus a reserve are free.
    """
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(there).free
    if needed > 0 and free < needed + RESERVE:
        raise OutputError(
            f"{folder} has {megabytes(free)} free, but {what} needs {megabytes(needed)} more; free space, or "
            "choose a folder on another disk with --output"
        )


class _InterruptedError(Exception):
    """A response ended early."""


def _resume(remote: RemoteStatus, part: Path, progress: Callable[[int], None]) -> None:
    """Download the missing bytes of a part.

    Raises:
        _InterruptedError: If the response ends early.
    """
    start = _size(part)
    if start == remote.size:
        part.touch()
        return
    headers = {"Range": f"bytes={start}-"} if start else {}
    if start and remote.mark and not remote.mark.startswith("W/"):
        headers["If-Range"] = remote.mark  # otherwise the response is the complete new file
    with (
        _client() as client,
        _reaching(),
        client.stream("GET", remote.url, headers=headers) as response,
    ):
        if response.status_code == 416:  # the part is longer than the file: the file was replaced
            part.unlink()
            raise _InterruptedError("the file was replaced")
        _check(remote.url, response.status_code)
        goes_on = response.status_code == 206
        if goes_on and _starts_at(response) != start:
            raise _InterruptedError("the server sent another part")
        _append(response, part, "ab" if goes_on else "wb", progress)
    if remote.size is not None and _size(part) != remote.size:
        raise _InterruptedError(f"{megabytes(_size(part))} of {megabytes(remote.size)}")


def _append(response: Any, part: Path, mode: str, progress: Callable[[int], None]) -> None:
    with writing(part):
        stream = part.open(mode)
    done = 0 if mode == "wb" else _size(part)
    with stream:
        for chunk in response.iter_raw():  # unbuffered, so that nothing is lost at an interruption
            with writing(part):
                stream.write(chunk)
            done += len(chunk)
            progress(done)


def _keep_only_parts_of(remote: RemoteStatus, part: Path) -> None:
    """Remove a part of another version of the file, and record the current version."""
    about = {"url": remote.url, "size": remote.size, "mark": remote.mark}
    note = _note_of(part)
    with writing(part):
        if part.exists() and _noted(note) != about:
            part.unlink()
        with replacing(note) as temporary:
            temporary.write_bytes(orjson.dumps(about))


def _noted(note: Path) -> Any:
    """Return the recorded version of a part; None if it is unknown."""
    try:
        return orjson.loads(note.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _status(url: str, response: Any) -> RemoteStatus:
    headers: Mapping[str, str] = response.headers
    length = headers.get("content-length", "")
    mark = headers.get("etag") or headers.get("last-modified") or ""
    return RemoteStatus(url, int(length) if length.isdigit() else None, mark)


def _starts_at(response: Any) -> int:
    range_header = str(response.headers.get("content-range", ""))  # bytes 5-9/10
    first = range_header.removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _check(url: str, status: int) -> None:
    if status in GONE:
        raise GoneError(f"{url} is not available: the server returned {status}")
    if status >= 500:
        raise _InterruptedError(f"the server returned {status}")
    if status >= 300:
        raise DatasetError(f"{url} is not available: the server returned {status}")


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


@contextmanager
def _reaching() -> Generator[None]:
    """Turn the errors of httpx into `_InterruptedError`."""
    import httpx

    try:
        yield
    except (httpx.RequestError, httpx.InvalidURL) as error:  # including endless redirects
        raise _InterruptedError(_error_text(error)) from error


def _error_text(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


@contextmanager
def _client() -> Generator[Any]:
    import httpx

    headers = {"Accept-Encoding": "identity"}  # uncompressed bytes, which ranges refer to
    with httpx.Client(headers=headers, follow_redirects=True, timeout=SECONDS) as client:
        yield client
