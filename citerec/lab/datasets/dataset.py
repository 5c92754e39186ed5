"""What is known of a dataset: where it comes from, what it may be used for, which files it is made of."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from citerec.errors import CiterecError, ConfigError
from citerec.types import Progress

UNSTATED = "not stated by its makers"  # how a fact is shown that no source gives
NAME = re.compile(r"[a-z0-9_]+")
DIGEST = {"sha256": 64, "md5": 32}  # hexadecimal digits

Counts = Mapping[str, int]


class DatasetError(CiterecError):
    """A dataset that cannot be had, or is not what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One file that can be fetched. What no source states is None."""

    name: str  # its path under the folder of downloads, and under a folder that `--from` names
    urls: tuple[str, ...] = ()  # of the same file, tried in this order
    size: int | None = None  # bytes; may be rounded by who states it, so it is shown, not checked
    sha256: str | None = None
    md5: str | None = None

    def __post_init__(self) -> None:
        parts = Path(self.name).parts
        if not parts or ".." in parts or Path(self.name).is_absolute():
            raise ConfigError(f"a file must lie within its dataset, got {self.name!r}")
        for kind, digits in DIGEST.items():
            value = getattr(self, kind)
            if value is not None and not re.fullmatch(rf"[0-9a-f]{{{digits}}}", value):
                raise ConfigError(f"{self.name}: {kind} must be {digits} hex digits, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetItem:
    """One file that a dataset is made of: fetched by itself, or taken out of an archive."""

    file: RemoteFile
    archive: RemoteFile | None = None  # a zip or tar file that holds it, too
    member: str = ""  # its path in the archive
    aliases: tuple[str, ...] = ()  # other places of it in a folder that `--from` names
    required: bool = True  # whether the dataset is of use without it

    def __post_init__(self) -> None:
        if (self.archive is None) != (not self.member):
            raise ConfigError(f"{self.file.name}: an archive goes with the path of a member")


Prepare = Callable[[Mapping[str, Path], Path, Progress], Counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset. What no source states is None, and is shown so; nothing is guessed."""

    name: str
    title: str
    about: str  # one sentence
    protocol: str = ""  # what an evaluation on it has to be told, if anything
    release: str = ""  # datasets of one release keep what is downloaded in one folder
    url: str | None  # None: it is not published, and has to be given with `--from`
    size: int | None = None  # bytes of all that is fetched
    sha256: str | None = None  # of its only file
    licence: str | None = None
    citation: str = ""
    stated: tuple[str, ...] = ()  # where the facts above stand
    items: tuple[DatasetItem, ...]
    prepare: Prepare | None = (
        None  # (files by name, folder, progress) -> counts; None: taken as it is
    )

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ConfigError(f"a dataset's name is of a-z, 0-9 and _, got {self.name!r}")
        if len(Path(self.release).parts) > 1 or self.release == "..":
            raise ConfigError(f"a release is the name of one folder, got {self.release!r}")
        if not self.items:
            raise ConfigError(f"{self.name} is made of no file")

    @property
    def facts(self) -> dict[str, str]:
        """What `citerec datasets info` shows, by what it is called."""
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
    """Return a number of bytes as a person reads it."""
    if size < 1e6:
        return f"{size:,} bytes"
    return f"{size / 1e6:,.1f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"
