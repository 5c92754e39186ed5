"""The description of a dataset: origin, licence, files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from citerec.errors import CiterecError, ConfigError
from citerec.types import Progress

UNSTATED = "not stated by its makers"  # shown for facts that no source gives
NAME = re.compile(r"[a-z0-9_]+")
DIGEST = {"sha256": 64, "md5": 32}  # hexadecimal digits

Counts = Mapping[str, int]


class DatasetError(CiterecError):
    """A dataset that is not available, or differs from its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that can be downloaded. Facts that no source states are None."""

    name: str  # its path in the download folder, and in the folder of `--from`
    urls: tuple[str, ...] = ()  # of the same file, tried in this order
    size: int | None = None  # bytes; shown but not checked, as stated sizes may be rounded
    sha256: str | None = None
    md5: str | None = None

    def __post_init__(self) -> None:
        parts = Path(self.name).parts
        if not parts or ".." in parts or Path(self.name).is_absolute():
            raise ConfigError(f"the path of a file must be inside its dataset, got {self.name!r}")
        for kind, digits in DIGEST.items():
            value = getattr(self, kind)
            if value is not None and not re.fullmatch(rf"[0-9a-f]{{{digits}}}", value):
                raise ConfigError(f"{self.name}: {kind} must be {digits} hex digits, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetItem:
    """One file of a dataset: downloaded directly, or extracted from an archive."""

    file: RemoteFile
    archive: RemoteFile | None = None  # a zip or tar file that contains it
    member: str = ""  # its path in the archive
    aliases: tuple[str, ...] = ()  # alternative paths in the folder of `--from`
    required: bool = True  # whether the dataset needs it

    def __post_init__(self) -> None:
        if (self.archive is None) != (not self.member):
            raise ConfigError(f"{self.file.name}: archive and member must be given together")


Prepare = Callable[[Mapping[str, Path], Path, Progress], Counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset. Facts that no source states are None and are shown as such; nothing is guessed."""

    name: str
    title: str
    about: str  # one sentence
    protocol: str = ""  # settings that an evaluation on it needs, if any
    release: str = ""  # datasets of one release share a download folder
    url: str | None  # None: not published, must be given with `--from`
    size: int | None = None  # bytes of all downloads
    sha256: str | None = None  # of its only file
    licence: str | None = None
    citation: str = ""
    stated: tuple[str, ...] = ()  # the sources of the facts above
    items: tuple[DatasetItem, ...]
    prepare: Prepare | None = (
        None  # (files by name, folder, progress) -> counts; None: files are used unchanged
    )

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigError(f"a dataset's name must consist of a-z, 0-9 and _, got {self.name!r}")
        if len(Path(self.release).parts) > 1 or self.release == "..":
            raise ConfigError(f"a release must be the name of one folder, got {self.release!r}")
        if not self.items:
            raise ConfigError(f"{self.name} has no files")

    @property
    def facts(self) -> dict[str, str]:
        """The facts that `citerec datasets info` shows, by label."""
        size = UNSTATED if self.size is None else megabytes(self.size)
        files = [item.file for item in self.items]
        sums = [f"{f.name}: {k} {v}" for f in files for k in DIGEST if (v := getattr(f, k))]
        return {
            "what": self.about,
            **({"protocol": self.protocol} if self.protocol else {}),
            "from": self.url or "not published; given by path: --from FOLDER",
            "size": size,
            "checksum": "; ".join(sums) or UNSTATED,
            "licence": self.licence or UNSTATED,
            "citation": self.citation or UNSTATED,
            "stated in": "; ".join(self.stated),
        }


def megabytes(size: int) -> str:
    """Format a number of bytes."""
    if size < 1e6:
        return f"{size:,} bytes"
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"
