"""Earlier versions of an index, in `DIR.versions/` next to it; unchanged files are links, which take no space."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from citerec.atomic import replace_folder
from citerec.errors import ConfigError, IndexDamagedError, writing
from citerec.lock import locked
from citerec.manifest import Manifest, opening_faults, read_manifest


def versions_of(index: Path) -> list[Path]:
    """Return the kept versions of an index, oldest first."""
    folder = _folder(index)
    if not folder.is_dir():
        return []
    return sorted((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))


def next_version(index: Path) -> Path:
    """Return the path at which the next version of an index is kept."""
    kept = versions_of(index)
    return _folder(index) / f"{int(kept[-1].name) + 1 if kept else 1:06d}"


def prune(index: Path, keep: int) -> None:
    """Remove all kept versions of an index but the newest `keep`."""
    kept = versions_of(index)
    for version in kept[: max(len(kept) - keep, 0)]:
        shutil.rmtree(version, ignore_errors=True)
    with suppress(OSError):
        _folder(index).rmdir()  # if it is empty


def roll_back(index: Path) -> Manifest:
    """Put the newest kept version of an index in its place; the index that was there is removed.

    Returns:
        The manifest of the index that is in place now.

    Raises:
        ConfigError: If no version is kept.
        IndexLockedError: If another process is changing the index.
        IndexDamagedError: If the version is not complete.
        OutputError: If the folders cannot be moved.
    """
    with locked(index):
        kept = versions_of(index)
        if not kept:
            raise ConfigError(
                f"no earlier version of {index} is kept; changes keep one with --keep 1"
            )
        manifest = read_manifest(kept[-1])
        if wrong := opening_faults(kept[-1], manifest):
            raise IndexDamagedError(kept[-1], wrong)
        with writing(index):
            replace_folder(kept[-1], Path(os.path.realpath(index)))
        prune(index, len(kept) - 1)
    return manifest


def _folder(index: Path) -> Path:
    target = Path(os.path.realpath(index))
    return target.with_name(f"{target.name}.versions")
