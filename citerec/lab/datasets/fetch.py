"""Fetches a dataset: downloads or copies its files, checks them, and prepares a corpus.

Downloads are kept in `_downloads/<name>` next to the dataset; datasets of one release share `_downloads/<release>`,
since one archive may contain them all. The folder of a dataset is created complete, with its record `SOURCE.json`.
This module and `public` alone import httpx here.
"""

import hashlib
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import orjson

from citerec.errors import BadInputError, ConfigError, writing
from citerec.files.atomic import building, refuse_links, replacing
from citerec.files.checksums import indented_json, sha256_of
from citerec.lab.datasets.catalogue import (
    SOURCE,
    UNSTATED,
    Convert,
    Dataset,
    DatasetFile,
)
from citerec.lab.datasets.public import DatasetError, fetch_repository
from citerec.types import Log, Progress

DOWNLOADS = "_downloads"  # corpus readers skip folders with a leading underscore
SECONDS = 20  # timeout of a response, or of its next bytes
TRIES = 5  # of a download that breaks off
CHUNK = 2**20
BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How a dataset is fetched."""

    source: Path | None = None  # a folder with its files; None for the network
    force: bool = False  # replace an existing dataset
    # download the complete archive if the single file is not available
    archive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRecord:
    """`SOURCE.json`: the origin and checksums of the files of a dataset, and the counts of the prepared corpus."""

    dataset: str
    title: str
    licence: str
    citation: str
    fetched: str  # ISO 8601, UTC
    citerec: str  # version that prepared it
    files: Mapping[str, Mapping[str, Any]]  # by name: origin, bytes and sha256
    counts: Mapping[str, int]
    # dropped train queries, by held-out dataset
    without: Mapping[str, int] = field(default_factory=dict[str, int])


def read_record(folder: Path) -> DatasetRecord | None:
    """Read the record of a dataset folder; None if there is none.

    Raises:
        BadInputError: If it cannot be read.
    """
    path = folder / SOURCE
    if not path.is_file():
        return None
    try:
        return DatasetRecord(**orjson.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        advice = f"remove {folder} and fetch it again"
        raise BadInputError(
            path, f"is no valid dataset record ({error}); {advice}"
        ) from error


def write_record(folder: Path, record: DatasetRecord) -> None:
    """Write a record as a whole, over several lines, so that no corpus reader takes it for a paper."""
    with replacing(folder / SOURCE) as temporary:
        temporary.write_bytes(indented_json(asdict(record)))


def fetch(
    dataset: Dataset, folder: Path, config: FetchConfig, progress: Progress, log: Log
) -> DatasetRecord:
    """Fetch a dataset into a folder and prepare it, unless it exists; return its record.

    Args:
        dataset: The dataset.
        folder: The folder to create; other commands use `catalogue.where(name)`.
        config: How.
        progress: Receives the downloaded bytes ("fetching"), and the preparation.
        log: Receives each URL before its download.

    Raises:
        DatasetError: If it is not available, or a file has a wrong checksum.
        BadInputError: If an archive is damaged, or a corpus cannot be read.
        ConfigError: If the folder contains something else.
        OutputError: If the folder cannot be written.
    """
    first = read_record(folder) if folder.is_dir() else None
    if first and first.dataset != dataset.name:
        other = f"{folder} contains {first.dataset}, not {dataset.name}"
        raise ConfigError(f"{other}; choose another folder with --output")
    if folder.exists() and not first and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(
            f"{folder} is a file, or contains no dataset; choose another folder with --output"
        )
    if first and not config.force:
        return first
    downloads = folder.absolute().parent / DOWNLOADS / (dataset.release or dataset.name)
    if dataset.convert and not config.source:
        return _converted(dataset, dataset.convert, folder, downloads, progress, log)
    find = _given if config.source else _downloaded
    paths: dict[str, Path] = {}
    for file in dataset.files:
        path = find(dataset, file, downloads, config, progress, log)
        # a prepared file has the name of its item; an unchanged one keeps its suffix
        is_packed = (
            config.source and not dataset.prepare and path.is_relative_to(config.source)
        )
        name = str(path.relative_to(config.source)) if is_packed else file.name  # pyright: ignore[reportArgumentType]
        paths[name] = path
        _check(path, file, name, first)
    with building(folder) as made:
        if dataset.prepare:
            [path] = paths.values()
            counts = dict(dataset.prepare(path, made, progress))
        else:
            for name, path in paths.items():
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                with path.open("rb") as source, (made / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy)
            counts = {"files": len(paths)}
        files = {
            name: {
                "origin": str(path),
                "bytes": path.stat().st_size,
                "sha256": sha256_of(path),
            }
            for name, path in paths.items()
        }
        record = _record(dataset, files, counts)
        write_record(made, record)
    return record


def _converted(
    dataset: Dataset,
    convert: Convert,
    folder: Path,
    downloads: Path,
    progress: Progress,
    log: Log,
) -> DatasetRecord:
    """Fetch the repositories of a public corpus, and convert them."""
    fetched = [
        fetch_repository(repository, downloads, progress, log)
        for repository in dataset.repositories
    ]
    files = {
        repository.name: {
            "origin": repository.url,
            "bytes": sum(path.stat().st_size for path in paths.values()),
            "sha256": repository.listing,
        }
        for repository, paths in zip(dataset.repositories, fetched, strict=True)
    }
    with building(folder) as made:
        record = _record(dataset, files, convert(fetched, made))
        write_record(made, record)
    log(f"terms of {dataset.name}: {record.licence}")
    return record


def _record(
    dataset: Dataset,
    files: Mapping[str, Mapping[str, Any]],
    counts: Mapping[str, int],
) -> DatasetRecord:
    return DatasetRecord(
        dataset=dataset.name,
        title=dataset.title,
        licence=dataset.licence or UNSTATED,
        citation=dataset.citation or UNSTATED,
        fetched=datetime.now(UTC).isoformat(timespec="seconds"),
        citerec=version("citerec"),
        files=files,
        counts=counts,
    )


def _check(
    path: Path, file: DatasetFile, name: str, first: DatasetRecord | None
) -> None:
    """Refuse a file with another checksum than its authors state, or than an earlier fetch recorded."""
    if file.md5:
        with path.open("rb") as stream:
            found = hashlib.file_digest(
                stream, lambda: hashlib.md5(usedforsecurity=False)
            )
        if found.hexdigest() != file.md5:
            raise DatasetError(
                f"{path} has md5 {found.hexdigest()}, its authors state {file.md5}; remove it and fetch it again"
            )
    recorded = first.files.get(name) if first else None
    if first and recorded and sha256_of(path) != recorded["sha256"]:
        raise DatasetError(
            f"{path} is another file than that fetched on {first.fetched[:10]}, of sha256 "
            f"{recorded['sha256']}; remove {SOURCE} to take it"
        )


def _given(
    dataset: Dataset,
    file: DatasetFile,
    downloads: Path,
    config: FetchConfig,
    progress: Progress,
    log: Log,
) -> Path:
    """Find a file in the folder of `--from`, or extract it from an archive there."""
    source = config.source
    assert source is not None
    for place in (file.name, *file.aliases):
        if (source / place).is_file():
            return source / place
    if file.archive and (source / file.archive_name).is_file():
        (downloads / file.name).unlink(missing_ok=True)  # it may be of another archive
        return _extracted(source / file.archive_name, file, downloads, progress)
    names = " or ".join(filter(None, (file.name, *file.aliases[:1], file.archive_name)))
    raise DatasetError(
        f"{source} has no {names}; name a folder that contains it: --from FOLDER"
    )


def _downloaded(
    dataset: Dataset,
    file: DatasetFile,
    downloads: Path,
    config: FetchConfig,
    progress: Progress,
    log: Log,
) -> Path:
    """Return a file that was downloaded before, else download it or the archive that contains it."""
    if dataset.url is None:
        names = " or ".join((file.name, *file.aliases[:1]))
        raise DatasetError(
            f"{dataset.name} is not published; name a folder with {names}: --from FOLDER"
        )
    target = downloads / file.name
    archive = downloads / file.archive_name
    if target.is_file():
        return target
    if file.archive and archive.is_file():
        return _extracted(archive, file, downloads, progress)
    of_archive = bool(file.archive) and (config.archive or not file.urls)
    if _download(
        file.archive if of_archive else file.urls,
        archive if of_archive else target,
        progress,
        log,
    ):
        return _extracted(archive, file, downloads, progress) if of_archive else target
    advice = (
        "add --archive to download the archive that contains it, or name"
        if file.archive and not of_archive
        else "name"
    )
    raise DatasetError(
        f"{(file.archive if of_archive else file.urls)[-1]} is not available; {advice} a folder that contains "
        f"{file.name}: --from FOLDER"
    )


def _download(
    urls: tuple[str, ...], target: Path, progress: Progress, log: Log
) -> bool:
    """Download the first of some URLs that exists; return False if none does.

    An incomplete download stays in `target`.part, and is resumed.
    """
    import httpx

    part = target.with_name(f"{target.name}.part")
    with writing(target):
        refuse_links(part)
        target.parent.mkdir(parents=True, exist_ok=True)
    for url in urls:
        for attempt in range(TRIES):
            try:
                if not _resume(
                    url, part, progress, log if attempt == 0 else lambda _: None
                ):
                    break  # not there: try the next URL
                part.replace(target)
                return True
            except (httpx.RequestError, httpx.InvalidURL) as error:
                reason = " ".join(str(error).split())[:120] or type(error).__name__
                if attempt == TRIES - 1:
                    raise DatasetError(
                        f"{url} cannot be reached ({reason}); run the command again to resume, or download it on "
                        "another machine and name its folder: --from FOLDER"
                    ) from error
    return False


def _resume(url: str, part: Path, progress: Progress, log: Log) -> bool:
    """Download the missing bytes of a file; return False if the server does not have it."""
    import httpx

    start = part.stat().st_size if part.is_file() else 0
    # uncompressed bytes, which ranges refer to
    headers = {
        "Accept-Encoding": "identity",
        **({"Range": f"bytes={start}-"} if start else {}),
    }
    with (
        httpx.Client(headers=headers, follow_redirects=True, timeout=SECONDS) as client,
        client.stream("GET", url) as response,
    ):
        if response.status_code == 416:  # the part is the whole file
            return True
        if response.status_code >= 500:
            raise httpx.RequestError(f"the server returned {response.status_code}")
        if response.status_code >= 300:
            return False  # S3 returns 403 for a missing file
        start = start if response.status_code == 206 else 0
        length = response.headers.get("content-length", "")
        total = start + int(length) if length.isdigit() else 0
        log(f"fetching {url} ({total:,} bytes)" if total else f"fetching {url}")
        with writing(part), part.open("ab" if start else "wb") as stream:
            for chunk in response.iter_raw():
                stream.write(chunk)
                start += len(chunk)
                progress("fetching", start, total)
    return True


def _extracted(
    archive: Path, file: DatasetFile, downloads: Path, progress: Progress
) -> Path:
    """Write one member of a zip or tar archive, as a whole, under a path of citerec."""
    target = downloads / file.name
    if target.is_file():
        return target
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                same = [
                    name
                    for name in packed.namelist()
                    if Path(name).name == Path(file.member).name
                ]
                if len(same) == 1:
                    with packed.open(same[0]) as stream:
                        size = packed.getinfo(same[0]).file_size
                        return _write_member(stream, size, target, progress)
        else:
            with tarfile.open(archive, "r|*") as packed:
                # one pass, since listing a tar file decompresses all of it
                for entry in packed:
                    if entry.isfile() and entry.name.removeprefix("./") == file.member:
                        stream = packed.extractfile(entry)
                        assert stream is not None
                        return _write_member(stream, entry.size, target, progress)
    except (*BROKEN, RuntimeError) as error:  # RuntimeError: it is encrypted
        reason = " ".join(str(error).split())[:120]
        advice = "remove it and fetch it again"
        raise BadInputError(
            archive, f"is incomplete or damaged ({reason}); {advice}"
        ) from error
    raise BadInputError(
        archive, f"contains no {file.member}; expected the published archive"
    )


def _write_member(
    stream: IO[bytes], size: int, target: Path, progress: Progress
) -> Path:
    done = 0
    with replacing(target) as temporary, temporary.open("wb") as sink:
        while chunk := stream.read(CHUNK):
            sink.write(chunk)
            done += len(chunk)
            progress("MB unpacked", done >> 20, size >> 20)
    return target
