"""Fetches one file over HTTP so that it can be broken off at any byte and gone on with; the door to httpx.

httpx, since huggingface_hub is built on it and so it is installed in any case; it knows proxies, redirects and
timeouts, and tells a body that was cut off from one that ended.
"""

import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import OutputError, writing
from citerec.lab.datasets.dataset import DatasetError, megabytes

SECONDS = 20  # to wait for an answer, or for the next bytes of one
TRIES = 5  # in a row that bring no byte more
PAUSE = 1.0  # seconds between tries
RESERVE = 64 * 2**20  # bytes that stay free on the disk
NO_HEAD = {405, 501}  # what a server answers that tells nothing before it sends
GONE = {401, 403, 404, 410}  # S3 answers 403 for a file that is not there


class GoneError(DatasetError):
    """The server has no such file, or does not give it."""


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """What a server says of a file before it is fetched."""

    url: str
    size: int | None  # bytes
    mark: str  # its ETag, else when it was last modified; "" if it says neither


def ask(url: str) -> RemoteStatus:
    """Ask a server for the size of a file.

    Raises:
        GoneError: If it has none there.
        DatasetError: If it cannot be reached.
    """
    try:
        with _client() as client, _reaching():
            answer = client.head(url)
            if answer.status_code in NO_HEAD:
                return RemoteStatus(url, None, "")
            _check(url, answer.status_code)
            return _offered(url, answer)
    except _BrokenOffError as error:
        raise DatasetError(
            f"{url} cannot be reached ({error}); fetch it on a machine that is online and name its folder here: "
            "--from FOLDER"
        ) from error


def download(
    offered: RemoteStatus, target: Path, progress: Callable[[int], None], pause: float = PAUSE
) -> None:
    """Fetch a file to `target`; what was fetched before a break lies in `target`.part and is gone on with.

    Args:
        offered: What `ask` said.
        target: Where it goes; it is there once it is whole.
        progress: Receives how many bytes there are.
        pause: Seconds between two tries.

    Raises:
        GoneError: If the server does not have it any more.
        DatasetError: If it cannot be reached, or breaks off again and again.
        OutputError: If the disk is too small, or the file cannot be written.
    """
    part = target.with_name(f"{target.name}.part")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    _keep_only_parts_of(offered, part)
    check_space(target.parent, missing(offered, target), what=target.name)
    tries = 0
    while True:
        before = _size(part)
        try:
            _go_on(offered, part, progress)
            break
        except _BrokenOffError as broken:
            tries = 0 if _size(part) > before else tries + 1
            if tries == TRIES:
                raise DatasetError(
                    f"{offered.url} breaks off after {megabytes(_size(part))} ({broken}); what there is stays "
                    f"in {part}: run this again to go on"
                ) from broken
            time.sleep(pause)
    with writing(target):
        part.replace(target)
        _note_of(part).unlink(missing_ok=True)


def missing(offered: RemoteStatus, target: Path) -> int:
    """Return how many bytes of a file are still to be fetched; 0 where the server does not tell its size."""
    return max((offered.size or 0) - _size(target.with_name(f"{target.name}.part")), 0)


def check_space(folder: Path, needed: int, *, what: str) -> None:
    """Refuse to write what the disk has no room for.

    Raises:
        OutputError: If fewer than `needed` bytes, and a reserve, are free.
    """
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(there).free
    if needed > 0 and free < needed + RESERVE:
        raise OutputError(
            f"{folder} has {megabytes(free)} free, but {what} needs {megabytes(needed)} more; make room, or "
            "name a folder on another disk with --to"
        )


class _BrokenOffError(Exception):
    """An answer ended before its end."""


def _go_on(offered: RemoteStatus, part: Path, progress: Callable[[int], None]) -> None:
    """Fetch what is missing of a part.

    Raises:
        _BrokenOffError: If the answer ends early.
    """
    start = _size(part)
    if start == offered.size:
        part.touch()
        return
    headers = {"Range": f"bytes={start}-"} if start else {}
    if start and offered.mark and not offered.mark.startswith("W/"):
        headers["If-Range"] = offered.mark  # else the answer is the whole of what is there now
    with (
        _client() as client,
        _reaching(),
        client.stream("GET", offered.url, headers=headers) as answer,
    ):
        if answer.status_code == 416:  # more is here than is there: it was replaced
            part.unlink()
            raise _BrokenOffError("it was replaced meanwhile")
        _check(offered.url, answer.status_code)
        goes_on = answer.status_code == 206
        if goes_on and _starts_at(answer) != start:
            raise _BrokenOffError("the server answers with another part")
        _append(answer, part, "ab" if goes_on else "wb", progress)
    if offered.size is not None and _size(part) != offered.size:
        raise _BrokenOffError(f"{megabytes(_size(part))} of {megabytes(offered.size)}")


def _append(answer: Any, part: Path, mode: str, progress: Callable[[int], None]) -> None:
    with writing(part):
        stream = part.open(mode)
    done = 0 if mode == "wb" else _size(part)
    with stream:
        for (
            chunk
        ) in answer.iter_raw():  # as they come: what a chunker holds back is lost at a break
            with writing(part):
                stream.write(chunk)
            done += len(chunk)
            progress(done)


def _keep_only_parts_of(offered: RemoteStatus, part: Path) -> None:
    """Drop a part that was fetched of another version of the file, and note which version this is."""
    about = {"url": offered.url, "size": offered.size, "mark": offered.mark}
    note = _note_of(part)
    with writing(part):
        if part.exists() and _noted(note) != about:
            part.unlink()
        beside = note.with_name(f".{note.name}.new")
        beside.write_bytes(orjson.dumps(about))
        beside.replace(note)


def _noted(note: Path) -> Any:
    """Return which version a part is of, None if nobody knows."""
    try:
        return orjson.loads(note.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _offered(url: str, answer: Any) -> RemoteStatus:
    headers: Mapping[str, str] = answer.headers
    length = headers.get("content-length", "")
    mark = headers.get("etag") or headers.get("last-modified") or ""
    return RemoteStatus(url, int(length) if length.isdigit() else None, mark)


def _starts_at(answer: Any) -> int:
    said = str(answer.headers.get("content-range", ""))  # bytes 5-9/10
    first = said.removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _check(url: str, status: int) -> None:
    if status in GONE:
        raise GoneError(f"{url} is not to be had: the server answered {status}")
    if status >= 500:
        raise _BrokenOffError(f"the server answered {status}")
    if status >= 300:
        raise DatasetError(f"{url} is not to be had: the server answered {status}")


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


@contextmanager
def _reaching() -> Generator[None]:
    """Turn what httpx raises into one kind of break."""
    import httpx

    try:
        yield
    except (httpx.RequestError, httpx.InvalidURL) as error:  # of redirects without end, too
        raise _BrokenOffError(_said(error)) from error


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


@contextmanager
def _client() -> Generator[Any]:
    import httpx

    headers = {"Accept-Encoding": "identity"}  # the bytes as they lie there, which ranges count
    with httpx.Client(headers=headers, follow_redirects=True, timeout=SECONDS) as client:
        yield client
