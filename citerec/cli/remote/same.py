"""Whether a server would give the very results that this process gives: same program, environment and index."""

import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import citerec

# Environment variables that decide which models are found, and how they are run.
VARIABLES = (
    "CITEREC_DTYPE",
    "CUDA_VISIBLE_DEVICES",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_NUM_THREADS",
)


def program() -> dict[str, str]:
    """Return what identifies the program of this process: its files, its Python, its packages and its environment.

    A package that is installed or removed changes the folder of the packages, and a changed source file of citerec its
    newest time. A server states what it was when it started, so that it is not used after a change.
    """
    return {
        "citerec": files_state(Path(citerec.__file__).parent),
        "python": f"{sys.prefix} {sys.version}",
        "packages": _packages_state(),
        **{name: os.environ.get(name, "") for name in VARIABLES},
    }


def difference(here: dict[str, str], there: dict[str, str]) -> str:
    """Return the name of the first part in which two programs differ; empty if they are the same."""
    return next((name for name in here if here[name] != there.get(name)), "")


def files_state(folder: Path) -> str:
    """Return a digest of the names, sizes and times of the files below a folder; empty if there is no such folder."""
    if not folder.is_dir():
        return ""
    digest = sha256(str(folder).encode(errors="surrogateescape"))
    for entry in _files(str(folder)):
        status = entry.stat()
        state = f"\0{entry.path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}"
        digest.update(state.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder, in a fixed order, but for Python's cache."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        else:
            yield entry


def _packages_state() -> str:
    """Return the times of the folders in which Python finds packages."""
    names = ("site-packages", "dist-packages")
    folders = [path for path in map(Path, sys.path) if path.name in names and path.is_dir()]
    return " ".join(f"{path} {path.stat().st_mtime_ns}" for path in folders)
