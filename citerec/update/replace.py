"""What all changes of an index share: the new index is built next to the old one, from links to unchanged files."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from citerec.atomic import building
from citerec.embed import carry_models, link
from citerec.errors import ConfigError, IndexReplacedError
from citerec.folder import IndexFolder
from citerec.manifest import Manifest, read_manifest, write_manifest
from citerec.update.vectors import VectorConfig
from citerec.update.versions import next_version, prune


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """How an index is changed."""

    format: str = "auto"
    skip_bad: bool = False  # skip invalid records, and ids to remove that are not in the index
    heap: str | None = None  # memory limit of the JVM, such as "2g"
    vectors: VectorConfig = VectorConfig()
    # earlier versions that are kept; with None the replaced one is removed, and the others are left alone
    keep: int | None = None

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 0:
            raise ConfigError(f"keep must not be negative, got {self.keep}")


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update changed."""

    index: Path
    manifest: Manifest
    counts: dict[str, int]  # added, replaced, unchanged, removed
    unknown: tuple[str, ...] = ()  # ids to remove that are not in the index
    examples: tuple[str, ...] = ()  # the first invalid records, each with file and line
    ignored: tuple[Path, ...] = ()  # files of the corpus folder that hold no records


@contextmanager
def replacing_index(index: IndexFolder, keep: int | None) -> Generator[Path]:
    """Yield the folder of the new index, which replaces the old one when the block ends without an error.

    Raises:
        IndexReplacedError: If a build put another index in the place of the old one meanwhile.
    """
    kept = next_version(index.path) if keep else None
    with building(index.path, kept=kept) as folder:
        yield folder
        if read_manifest(index.path) != index.manifest:
            raise IndexReplacedError(index.path)
    if keep is not None:
        prune(index.path, keep)


def complete(folder: Path, index: IndexFolder, manifest: Manifest) -> None:
    """Write the manifest, and carry the models over: as late as possible, one may have been trained meanwhile."""
    write_manifest(folder, manifest)
    carry_models(index.path, folder)


def link_files(folder: Path, index: IndexFolder, *, but: tuple[str, ...]) -> dict[str, str]:
    """Link the files of an index into a folder; return their checksums.

    Files that will be written must not be linked: they would change in the old index, too.
    """
    linked = {n: s for n, s in index.manifest.checksums.items() if not n.startswith(but)}
    for name in linked:
        link(index.path / name, folder / name)
    return linked


def now() -> str:
    """Return the time in the format of the manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")
