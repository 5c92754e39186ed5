"""An index folder, opened: its manifest, its papers, its graph, and where its other parts lie.

A rebuild may swap the folder at any moment. Who reads it holds the manifest from before against the one
from after: where they differ, what was read between is of two indexes, and is read again.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.corpus.graph import Graph, open_graph
from citerec.corpus.papers import Papers
from citerec.corpus.splits import FOLDER as SPLITS_FOLDER
from citerec.errors import IndexDamagedError, IndexNotFoundError
from citerec.manifest import MODELS, NAME, Manifest, faults, read_manifest

INDEXES = Path("indexes")  # where indexes lie unless a folder is named
PAPERS, CITATIONS, BM25, ID_RANK = "papers.arrow", "citations", "bm25", "id_rank.npy"
DENSE = "dense"


@dataclass(frozen=True)
class IndexFolder:
    """An index on disk; its parts are mapped into memory, and stay what they are if it is replaced."""

    path: Path
    manifest: Manifest
    papers: Papers
    graph: Graph  # the citations among them
    id_rank: npt.NDArray[np.int32]  # of each row's docid among all docids, shape (n,): breaks ties

    @property
    def bm25(self) -> Path:
        """The folder of the Lucene part."""
        return self.path / BM25

    @property
    def dense(self) -> Path:
        """The folder of the vectors, if the papers were embedded."""
        return self.path / DENSE

    @property
    def is_embedded(self) -> bool:
        """Whether the papers were embedded."""
        return bool(self.manifest.settings.get("dense"))

    @property
    def models(self) -> Path:
        """The folder of the models that were trained on this index."""
        return self.path / MODELS

    @property
    def splits(self) -> Path:
        """The folder of the splits."""
        return self.path / SPLITS_FOLDER


def open_index(path: Path) -> IndexFolder:
    """Open an index folder.

    Raises:
        IndexNotFoundError: If there is none.
        IndexFormatError: If it is of another format version.
        IndexDamagedError: If its manifest is not what was written, or a file is missing or cannot be
            made out.
    """
    manifest = read_manifest(path)
    try:
        index = _map(path, manifest)
    except IndexDamagedError:
        if read_manifest(path) == manifest:
            raise
        return open_index(path)
    return index if read_manifest(path) == manifest else open_index(path)


def _map(path: Path, manifest: Manifest) -> IndexFolder:
    if missing := [f"{m} is missing" for m in manifest.checksums if not (path / m).is_file()]:
        raise IndexDamagedError(path, missing)
    part = PAPERS
    try:
        papers = Papers(path / part)
        part = CITATIONS
        graph = open_graph(path / part)
        part = ID_RANK
        rank: npt.NDArray[np.int32] = np.load(path / part, mmap_mode="r")
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise IndexDamagedError(path, [f"{part} cannot be read"]) from error
    return IndexFolder(path, manifest, papers, graph, rank)


def verify_index(path: Path) -> Manifest:
    """Check every byte of an index against its manifest.

    Raises:
        IndexDamagedError: If a file is missing, altered, or does not belong to it.
    """
    manifest = read_manifest(path)
    if wrong := faults(path, manifest):
        if read_manifest(path) == manifest:
            raise IndexDamagedError(path, wrong)
        return verify_index(path)
    return manifest


def find_index(named: Path | None, *, root: Path = INDEXES) -> Path:
    """Return the index folder that is meant: the named one, else the only one under `root`.

    A bare name is looked up under `root`, too.

    Raises:
        IndexNotFoundError: If there is none, or several to choose from.
    """
    if named is not None:
        return next((p for p in (named, root / named) if (p / NAME).is_file()), named)
    there = sorted(p.parent for p in root.glob(f"*/{NAME}")) if root.is_dir() else []
    there = [folder for folder in there if not folder.name.startswith(".")]  # a build on its way
    if len(there) == 1:
        return there[0]
    if not there:
        raise IndexNotFoundError(
            f"no index under {root}/; build one: citerec index CORPUS, or try: citerec demo"
        )
    listed = ", ".join(str(p) for p in there)
    raise IndexNotFoundError(f"several indexes: {listed}; choose one with --index")
