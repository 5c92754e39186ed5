"""Fetches a dataset: downloads or copies its files, checks them, and prepares a corpus.

Downloads are kept in `_downloads/<name>` next to the dataset; datasets of one release share `_downloads/<release>`,
since one archive may contain them all. The folder of a dataset is created complete. Files in the folder of `--from`
are read in place, linked or copied, never moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from citerec.atomic import building
from citerec.errors import ConfigError, writing
from citerec.lab.datasets.dataset import (
    UNSTATED,
    Dataset,
    DatasetError,
    DatasetItem,
    RemoteFile,
    megabytes,
)
from citerec.lab.datasets.download import (
    GoneError,
    RemoteStatus,
    check_space,
    download,
    missing,
    query_server,
)
from citerec.lab.datasets.record import DatasetRecord, FetchedFile, check, read_record, write_record
from citerec.lab.datasets.unpack import link_or_copy, take_member
from citerec.types import Log, Progress

DOWNLOADS = "_downloads"  # corpus readers skip folders with a leading underscore


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How a dataset is fetched."""

    source: Path | None = None  # a folder with its files; None for the network
    force: bool = False  # replace an existing dataset
    archive: bool = False  # download the complete archive if the single file is not available


@dataclass(slots=True)
class _Files:
    """The files of a dataset so far, by name."""

    paths: dict[str, Path] = field(default_factory=dict[str, Path])
    origins: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, name: str, path: Path, origin: str) -> None:
        self.paths[name], self.origins[name] = path, origin


def fetch(
    dataset: Dataset, folder: Path, config: FetchConfig, progress: Progress, log: Log
) -> DatasetRecord:
    """Fetch a dataset into a folder and prepare it, unless it exists; return its record.

    Args:
        dataset: The dataset.
        folder: The folder to create; other commands use `catalogue.where(name)`.
        config: How.
        progress: Receives the downloaded bytes ("fetching"), and the preparation.
        log: Receives URL and size before a download.

    Raises:
        DatasetError: If it is not available, or a file has a wrong checksum.
        BadInputError: If an archive is damaged, or a corpus cannot be read.
        ConfigError: If the folder contains something else.
        OutputError: If the disk is too small, or the folder cannot be written.
    """
    first = _existing_record(dataset, folder)
    if first and not config.force:
        return first
    downloads = folder.absolute().parent / DOWNLOADS / (dataset.release or dataset.name)
    if config.source is not None:
        files = _from_folder(dataset, config.source, downloads, progress)
    else:
        files = _from_network(dataset, downloads, config, progress, log)
    fetched = _check_files(dataset, files, first)
    with building(folder) as made:
        if dataset.prepare:
            counts = dataset.prepare(files.paths, made, progress)
        else:
            for name, path in files.paths.items():
                link_or_copy(path, made / name)
            counts = {"files": len(files.paths)}
        record = _record(dataset, fetched, counts, first)
        write_record(made, record)
    return record


def _existing_record(dataset: Dataset, folder: Path) -> DatasetRecord | None:
    """Return the record of the dataset in a folder; None if the folder is new or empty.

    Raises:
        ConfigError: If it contains something else, or is a file.
    """
    first = read_record(folder)
    if first and first.dataset != dataset.name:
        raise ConfigError(
            f"{folder} contains {first.dataset}, not {dataset.name}; choose another folder with --output"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; choose a folder with --output")
    with writing(folder):
        if first is None and folder.exists() and any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is not empty and contains no dataset; choose another folder with --output"
            )
    return first


def _record(
    dataset: Dataset,
    fetched: Mapping[str, FetchedFile],
    counts: Mapping[str, int],
    first: DatasetRecord | None,
) -> DatasetRecord:
    return DatasetRecord(
        dataset=dataset.name,
        title=dataset.title,
        licence=dataset.licence or UNSTATED,
        citation=dataset.citation or UNSTATED,
        fetched=datetime.now(UTC).isoformat(timespec="seconds"),
        citerec=version("citerec"),
        files={**_earlier_files(dataset, fetched, first), **fetched},
        counts=counts,
    )


def _earlier_files(
    dataset: Dataset, fetched: Mapping[str, FetchedFile], first: DatasetRecord | None
) -> dict[str, FetchedFile]:
    """Return the files of an earlier fetch, except those that were fetched again in another format."""
    again = {
        name
        for item in dataset.items
        if (names := {item.file.name, *item.aliases}) & fetched.keys()
        for name in names
    }
    return {name: one for name, one in (first.files if first else {}).items() if name not in again}


def _check_files(
    dataset: Dataset, files: _Files, first: DatasetRecord | None
) -> dict[str, FetchedFile]:
    remotes = {item.file.name: item.file for item in dataset.items}
    return {
        name: FetchedFile(
            origin=files.origins[name],
            bytes=path.stat().st_size,
            sha256=check(path, remotes.get(name, RemoteFile(name=name)), first),
        )
        for name, path in files.paths.items()
    }


def _from_folder(dataset: Dataset, source: Path, downloads: Path, progress: Progress) -> _Files:
    """Find the files of a dataset in a folder.

    Raises:
        DatasetError: If there is no such folder, or files are missing.
    """
    if not source.is_dir():
        raise DatasetError(
            f"{source} is no folder; expected a folder with {_expected_files(dataset)}"
        )
    files, missing = _Files(), list[str]()
    for item in dataset.items:
        if file := _find_file(item, source):
            # Prepared files have the name of their item; unchanged files keep their suffix.
            name = item.file.name if dataset.prepare else str(file.relative_to(source))
            files.add(name, file, str(file))
        elif item.archive and (source / item.archive.name).is_file():
            archive = source / item.archive.name
            (downloads / item.file.name).unlink(missing_ok=True)  # it may be of another archive
            files.add(item.file.name, _unpacked(item, archive, downloads, progress), str(archive))
        elif item.required:
            missing.append(item.file.name)
    if missing:
        raise DatasetError(
            f"{source} has no {', '.join(missing)}; expected {_expected_files(dataset)}"
        )
    return files


def _find_file(item: DatasetItem, source: Path) -> Path | None:
    places = (item.file.name, *item.aliases)
    return next((source / place for place in places if (source / place).is_file()), None)


def _expected_files(dataset: Dataset) -> str:
    item = dataset.items[0]
    names = [item.file.name, *item.aliases[:1], *([item.archive.name] if item.archive else [])]
    others = len(dataset.items) - 1
    return " or ".join(names) + (f", and {others} more as published" if others else "")


def _from_network(
    dataset: Dataset, downloads: Path, config: FetchConfig, progress: Progress, log: Log
) -> _Files:
    """Download the missing files of a dataset.

    Raises:
        DatasetError: If it is not published, or not available.
    """
    if dataset.url is None:
        raise DatasetError(
            f"{dataset.name} is not published; name a folder with {_expected_files(dataset)}: --from FOLDER"
        )
    files, pending = _Files(), dict[str, tuple[RemoteFile, RemoteStatus]]()
    for item in dataset.items:
        remote = item.archive if item.archive and (config.archive or not item.file.urls) else None
        remote = remote or item.file
        downloaded = [path for r in (item.file, remote) if (path := downloads / r.name).is_file()]
        if not downloaded and (status := _query(item, remote, log)):
            pending[item.file.name] = remote, status
    _download(dataset, downloads, pending, progress, log)
    for item in dataset.items:
        name, path = item.file.name, downloads / item.file.name
        origin = pending[name][1].url if name in pending else f"{path} (downloaded before)"
        if not path.is_file() and item.archive and (downloads / item.archive.name).is_file():
            path = _unpacked(item, downloads / item.archive.name, downloads, progress)
        if path.is_file():
            files.add(name, path, origin)
    return files


def _query(item: DatasetItem, remote: RemoteFile, log: Log) -> RemoteStatus | None:
    """Query a file at each of its URLs; None if it is not available and not required."""
    gone: list[GoneError] = []
    for url in remote.urls:
        try:
            return query_server(url)
        except GoneError as error:
            gone.append(error)
    if not item.required:
        log(f"{gone[0]}; it is not required")
        return None
    if item.archive and remote is item.file:
        size = "" if item.archive.size is None else f", about {megabytes(item.archive.size)}"
        raise DatasetError(
            f"{gone[0]}; it is also in {item.archive.urls[0]}{size}: add --archive to download that, or --from FOLDER"
        )
    raise DatasetError(f"{gone[-1]}; name a folder that contains it: --from FOLDER")


def _download(
    dataset: Dataset,
    downloads: Path,
    pending: Mapping[str, tuple[RemoteFile, RemoteStatus]],
    progress: Progress,
    log: Log,
) -> None:
    if not pending:
        return
    total = sum(status.size or 0 for _, status in pending.values())
    sizes_known = all(status.size is not None for _, status in pending.values())
    first = next(iter(pending.values()))[1].url
    place = first if len(pending) == 1 else f"{dataset.url} ({len(pending)} files)"
    size = megabytes(total) if sizes_known else "of unknown size"
    log(f"fetching {dataset.title} from {place}: {size}, to {downloads}")
    needed = sum(missing(status, downloads / remote.name) for remote, status in pending.values())
    check_space(downloads, needed, what=dataset.title)
    done = 0
    for remote, status in pending.values():
        start = done
        download(
            status,
            downloads / remote.name,
            lambda n, start=start: progress("fetching", start + n, total),
        )
        done += (downloads / remote.name).stat().st_size


def _unpacked(item: DatasetItem, archive: Path, downloads: Path, progress: Progress) -> Path:
    target = downloads / item.file.name
    if not target.is_file():
        take_member(
            archive,
            item.member,
            target,
            lambda n, size: progress("MB unpacked", n >> 20, size >> 20),
        )
    return target
