"""An index folder, opened: its manifest, its papers, its graph, and where its other parts lie."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph, open_graph
from citerec.corpus.papers import Papers
from citerec.corpus.splits import FOLDER as SPLITS_FOLDER
from citerec.errors import IndexDamagedError, IndexNotFoundError
from citerec.manifest import NAME, Manifest, faults, read_manifest

INDEXES = Path("indexes")  # where indexes lie unless a folder is named
PAPERS, CITATIONS, BM25, ID_RANK = "papers.arrow", "citations", "bm25", "id_rank.npy"


@dataclass(frozen=True)
class IndexFolder:
    """An index on disk; its parts are mapped into memory when they are first asked for."""

    path: Path
    manifest: Manifest

    @cached_property
    def papers(self) -> Papers:
        """The papers."""
        return Papers(self.path / PAPERS)

    @cached_property
    def graph(self) -> Graph:
        """The citations among them."""
        return open_graph(self.path / CITATIONS)

    @cached_property
    def id_rank(self) -> npt.NDArray[np.int32]:
        """The rank of each row's docid among all docids, shape (n,): what breaks ties."""
        return np.load(self.path / ID_RANK, mmap_mode="r")

    @property
    def bm25(self) -> Path:
        """The folder of the Lucene part."""
        return self.path / BM25

    @property
    def splits(self) -> Path:
        """The folder of the splits."""
        return self.path / SPLITS_FOLDER


def open_index(path: Path) -> IndexFolder:
    """Open an index folder.

    Raises:
        IndexNotFoundError: If there is none.
        IndexFormatError: If it is of another format version.
        IndexDamagedError: If its manifest is not what was written, or a file is missing.
    """
    manifest = read_manifest(path)
    if missing := [
        f"{name} is missing" for name in manifest.checksums if not (path / name).is_file()
    ]:
        raise IndexDamagedError(path, missing)
    return IndexFolder(path, manifest)


def verify_index(path: Path) -> Manifest:
    """Check every byte of an index against its manifest.

    Raises:
        IndexDamagedError: If a file is missing, altered, or does not belong to it.
    """
    manifest = read_manifest(path)
    if wrong := faults(path, manifest):
        raise IndexDamagedError(path, wrong)
    return manifest


def find_index(named: Path | None, *, root: Path = INDEXES) -> Path:
    """Return the index folder that is meant: the named one, else the only one under `root`.

    A bare name is looked up under `root`, too.

    Raises:
        IndexNotFoundError: If there is none, or several to choose from.
    """
    if named is not None:
        under = root / named
        return under if not named.exists() and (under / NAME).is_file() else named
    there = sorted(p.parent for p in root.glob(f"*/{NAME}")) if root.is_dir() else []
    if len(there) == 1:
        return there[0]
    if not there:
        raise IndexNotFoundError(
            f"no index under {root}/; build one: citerec index CORPUS, or try: citerec demo"
        )
    listed = ", ".join(str(p) for p in there)
    raise IndexNotFoundError(f"several indexes: {listed}; choose one with --index")
