"""Opens an index folder: its manifest, papers and citation graph, and the paths of its other parts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.arrays import check_distinct, open_array
from citerec.corpus.citedby import open_cited_by
from citerec.corpus.graph import Graph, open_graph
from citerec.corpus.lookup import open_lookup
from citerec.corpus.papers import Papers
from citerec.corpus.splits import FOLDER as SPLITS_FOLDER
from citerec.encode.spec import Fingerprint
from citerec.entries import is_regular
from citerec.errors import ConfigError, IndexDamagedError, IndexNotFoundError, ModelError
from citerec.manifest import MODELS, NAME, Manifest, faults, opening_faults, read_manifest

INDEXES = Path("indexes")  # where indexes are, unless a folder is named
PAPERS, CITATIONS, BM25, ID_RANK = "papers.arrow", "citations", "bm25", "id_rank.npy"
DENSE = "dense"


@dataclass(frozen=True)
class IndexFolder:
    """An index on disk; its parts are memory maps, which stay unchanged when the index is replaced."""

    path: Path
    manifest: Manifest
    papers: Papers
    graph: Graph  # citations among the papers of the index
    # rank of each row's docid among all docids, shape (papers,): breaks ties
    id_rank: npt.NDArray[np.int32]

    @property
    def bm25(self) -> Path:
        """The folder of Lucene's index."""
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

    def check_embedded(self, encoder: str = "MODEL") -> None:
        """Check that the index has vectors.

        Args:
            encoder: The encoder that the message suggests.

        Raises:
            ConfigError: If it has none.
        """
        if not self.is_embedded:
            raise ConfigError(
                f"{self.path} has no vectors; embed its papers: "
                f"citerec encode --index {self.path} --encoder {encoder}"
            )


def find_index(named: Path | None, *, root: Path = INDEXES) -> Path:
    """Return an index folder: the named one, else the only one under `root`.

    A bare name is also searched under `root`.

    Raises:
        IndexNotFoundError: If there is none, or several to choose from.
    """
    if named is not None:
        return next((p for p in (named, root / named) if is_regular(p / NAME)), named)
    folders = sorted(p.parent for p in root.glob(f"*/{NAME}")) if root.is_dir() else []
    # a build in progress
    folders = [folder for folder in folders if not folder.name.startswith(".")]
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise IndexNotFoundError(
            f"no index under {root}/; build one: citerec index CORPUS, or try: citerec demo"
        )
    listed = ", ".join(str(p) for p in folders)
    raise IndexNotFoundError(f"several indexes: {listed}; choose one with --index")


def open_index(path: Path) -> IndexFolder:
    """Open an index folder.

    Raises:
        IndexNotFoundError: If there is none.
        IndexFormatError: If it is of another format version.
        IndexDamagedError: If its manifest was changed, or a file is missing or cannot be read.
    """
    manifest = read_manifest(path)
    try:
        index = _map(path, manifest)
    except IndexDamagedError:
        if read_manifest(path) == manifest:
            raise
        return open_index(path)
    # A build may have replaced the folder meanwhile: then parts of two indexes were read.
    return index if read_manifest(path) == manifest else open_index(path)


def _map(path: Path, manifest: Manifest) -> IndexFolder:
    if wrong := opening_faults(path, manifest):
        raise IndexDamagedError(path, wrong)
    part = PAPERS
    try:
        papers = Papers(path / part, open_lookup(path))
        if len(papers) != manifest.counts.get("papers"):
            raise ValueError(f"it holds {len(papers):,} papers")
        part = CITATIONS
        graph = open_graph(path / part, len(papers))
        stored = open_cited_by(path / part, len(papers), len(graph.indices))
        part = ID_RANK
        rank: npt.NDArray[np.int32] = open_array(path / part, np.int32, length=len(papers))
        check_distinct(part, rank, len(papers))
        part = NAME
        _check_vectors(manifest.settings, len(papers))
    except (OSError, ValueError) as error:
        raise IndexDamagedError(path, [f"{part} cannot be read ({error})"]) from error
    return IndexFolder(path, manifest, papers, replace(graph, transpose=stored), rank)


def _check_vectors(settings: Mapping[str, Any], papers: int) -> None:
    """Check the encoder and the vectors of a manifest's settings.

    Raises:
        ValueError: If they cannot be parsed, or contradict each other.
    """
    if not settings.get("encoder"):
        return
    try:
        encoder, dense = Fingerprint.from_json(settings["encoder"]), settings["dense"]
        fits = (dense["papers"], dense["dim"]) == (papers, encoder.dim)
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        raise ValueError("its encoder cannot be parsed") from error
    if not fits:
        raise ValueError("its vectors do not match the papers and the encoder")


def verify_index(path: Path) -> Manifest:
    """Check every byte of an index against its manifest, and return the manifest.

    Raises:
        IndexDamagedError: If a file is missing, changed, or does not belong to the index.
    """
    manifest = read_manifest(path)
    try:
        wrong = faults(path, manifest)
    except FileNotFoundError as error:
        wrong = [f"{error.filename} is missing"]
    if wrong and read_manifest(path) != manifest:  # a build replaced it meanwhile
        return verify_index(path)
    if wrong:
        raise IndexDamagedError(path, wrong)
    return manifest
