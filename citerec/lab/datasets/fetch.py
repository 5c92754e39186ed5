"""Fetches a dataset: gets its files from the network or a folder, checks them, makes a corpus of them.

What is downloaded lies in `_downloads/<name>` beside the dataset, and stays there; datasets of one release share
`_downloads/<release>`, since one archive may hold them all. The dataset's own folder appears whole or not at all. A
file that `--from` names is read where it lies, or linked or copied; it is never moved.
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
    ask,
    check_space,
    download,
    missing,
)
from citerec.lab.datasets.record import DatasetRecord, FetchedFile, check, read_record, write_record
from citerec.lab.datasets.unpack import link_or_copy, take_member
from citerec.types import Log, Progress

DOWNLOADS = "_downloads"  # no reader of a corpus looks into a folder that begins so


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """How a dataset is fetched."""

    source: Path | None = None  # a folder that holds its files; None for the network
    force: bool = False  # make it anew where it is there
    archive: bool = False  # fetch the whole archive where the file by itself is not to be had


@dataclass(slots=True)
class _Files:
    """The files of a dataset that have been got so far, by name."""

    paths: dict[str, Path] = field(default_factory=dict[str, Path])
    origins: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, name: str, path: Path, origin: str) -> None:
        self.paths[name], self.origins[name] = path, origin


def fetch(
    dataset: Dataset, folder: Path, config: FetchConfig, progress: Progress, log: Log
) -> DatasetRecord:
    """Fetch a dataset into a folder and prepare it there, unless it is there; return its record.

    Args:
        dataset: Which.
        folder: Where to; `catalogue.where(name)` is where the other commands look.
        config: How.
        progress: Receives how many bytes are fetched ("fetching"), and what is made of them.
        log: Receives what is fetched and how large it is, before.

    Raises:
        DatasetError: If it cannot be had, or a file is not what it should be.
        BadInputError: If an archive is damaged, or a corpus cannot be read.
        ConfigError: If the folder holds something else.
        OutputError: If the disk is too small, or the folder cannot be written.
    """
    first = _there(dataset, folder)
    if first and not config.force:
        return first
    downloads = folder.absolute().parent / DOWNLOADS / (dataset.release or dataset.name)
    if config.source is not None:
        files = _from_folder(dataset, config.source, downloads, progress)
    else:
        files = _from_network(dataset, downloads, config, progress, log)
    got = _checked(dataset, files, first)
    with building(folder) as made:
        if dataset.prepare:
            counts = dataset.prepare(files.paths, made, progress)
        else:
            for name, path in files.paths.items():
                link_or_copy(path, made / name)
            counts = {"files": len(files.paths)}
        record = _record(dataset, got, counts, first)
        write_record(made, record)
    return record


def _there(dataset: Dataset, folder: Path) -> DatasetRecord | None:
    """Return the record of a dataset in its folder, None if the folder is new or empty.

    Raises:
        ConfigError: If it holds something else, or is a file.
    """
    first = read_record(folder)
    if first and first.dataset != dataset.name:
        raise ConfigError(
            f"{folder} holds {first.dataset}, not {dataset.name}; name another folder with --to"
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; name a folder with --to")
    with writing(folder):
        if first is None and folder.exists() and any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is there and is no dataset; it is left alone, name another"
            )
    return first


def _record(
    dataset: Dataset,
    got: Mapping[str, FetchedFile],
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
        files={**_still_there(dataset, got, first), **got},
        counts=counts,
    )


def _still_there(
    dataset: Dataset, got: Mapping[str, FetchedFile], first: DatasetRecord | None
) -> dict[str, FetchedFile]:
    """Return the files that were got before, but for those that came again, packed otherwise."""
    again = {
        name
        for item in dataset.items
        if (names := {item.file.name, *item.aliases}) & got.keys()
        for name in names
    }
    return {name: one for name, one in (first.files if first else {}).items() if name not in again}


def _checked(
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
        DatasetError: If there is no such folder, or it lacks some of them.
    """
    if not source.is_dir():
        raise DatasetError(f"{source} is no folder; expected one that holds {_listed(dataset)}")
    files, missing = _Files(), list[str]()
    for item in dataset.items:
        if found := _found(item, source):
            # What is prepared goes by the name of its item; what is taken as it is keeps its suffix.
            name = item.file.name if dataset.prepare else str(found.relative_to(source))
            files.add(name, found, str(found))
        elif item.archive and (source / item.archive.name).is_file():
            archive = source / item.archive.name
            (downloads / item.file.name).unlink(missing_ok=True)  # of another archive, perhaps
            files.add(item.file.name, _unpacked(item, archive, downloads, progress), str(archive))
        elif item.required:
            missing.append(item.file.name)
    if missing:
        raise DatasetError(f"{source} lacks {', '.join(missing)}; expected {_listed(dataset)}")
    return files


def _found(item: DatasetItem, source: Path) -> Path | None:
    places = (item.file.name, *item.aliases)
    return next((source / place for place in places if (source / place).is_file()), None)


def _listed(dataset: Dataset) -> str:
    item = dataset.items[0]
    names = [item.file.name, *item.aliases[:1], *([item.archive.name] if item.archive else [])]
    others = len(dataset.items) - 1
    return " or ".join(names) + (f", and {others} more as published" if others else "")


def _from_network(
    dataset: Dataset, downloads: Path, config: FetchConfig, progress: Progress, log: Log
) -> _Files:
    """Download what is not there yet of the files of a dataset.

    Raises:
        DatasetError: If it is not published, or cannot be had.
    """
    if dataset.url is None:
        raise DatasetError(
            f"{dataset.name} is not published; name the folder that holds {_listed(dataset)}: --from FOLDER"
        )
    files, wanted = _Files(), dict[str, tuple[RemoteFile, RemoteStatus]]()
    for item in dataset.items:
        remote = item.archive if item.archive and (config.archive or not item.file.urls) else None
        remote = remote or item.file
        there = [path for r in (item.file, remote) if (path := downloads / r.name).is_file()]
        if not there and (offered := _offered(item, remote, log)):
            wanted[item.file.name] = remote, offered
    _download(dataset, downloads, wanted, progress, log)
    for item in dataset.items:
        name, path = item.file.name, downloads / item.file.name
        origin = wanted[name][1].url if name in wanted else f"{path} (downloaded before)"
        if not path.is_file() and item.archive and (downloads / item.archive.name).is_file():
            path = _unpacked(item, downloads / item.archive.name, downloads, progress)
        if path.is_file():
            files.add(name, path, origin)
    return files


def _offered(item: DatasetItem, remote: RemoteFile, log: Log) -> RemoteStatus | None:
    """Ask for a file at each of its places; None if it is not to be had, and is not needed."""
    gone: list[GoneError] = []
    for url in remote.urls:
        try:
            return ask(url)
        except GoneError as error:
            gone.append(error)
    if not item.required:
        log(f"{gone[0]}; it is not needed")
        return None
    if item.archive and remote is item.file:
        size = "" if item.archive.size is None else f", about {megabytes(item.archive.size)}"
        raise DatasetError(
            f"{gone[0]}; it is in {item.archive.urls[0]}{size}, too: add --archive to fetch that, or --from FOLDER"
        )
    raise DatasetError(f"{gone[-1]}; name a folder that holds it: --from FOLDER")


def _download(
    dataset: Dataset,
    downloads: Path,
    wanted: Mapping[str, tuple[RemoteFile, RemoteStatus]],
    progress: Progress,
    log: Log,
) -> None:
    if not wanted:
        return
    total = sum(offered.size or 0 for _, offered in wanted.values())
    known = all(offered.size is not None for _, offered in wanted.values())
    first = next(iter(wanted.values()))[1].url
    place = first if len(wanted) == 1 else f"{dataset.url} ({len(wanted)} files)"
    size = megabytes(total) if known else "of a size that the server does not tell"
    log(f"fetching {dataset.title} from {place}: {size}, to {downloads}")
    needed = sum(missing(offered, downloads / remote.name) for remote, offered in wanted.values())
    check_space(downloads, needed, what=dataset.title)
    done = 0
    for remote, offered in wanted.values():
        start = done
        download(
            offered,
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
