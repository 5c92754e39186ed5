"""Opens an index folder: its manifest, papers and citation graph, and the paths of its other parts.

A rebuild may replace the folder at any moment. So a reader compares the manifests from before and after reading: if
they differ, it has read parts of two indexes, and reads again.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.arrays import check_distinct, open_array
from citerec.corpus.citedby import FILES as CITED_BY
from citerec.corpus.citedby import open_cited_by
from citerec.corpus.graph import Graph, open_graph
from citerec.corpus.lookup import FOLDER as LOOKUP
from citerec.corpus.lookup import is_stored, open_lookup
from citerec.corpus.papers import Papers
from citerec.corpus.splits import FOLDER as SPLITS_FOLDER
from citerec.encode.spec import Fingerprint
from citerec.errors import CiterecError, IndexDamagedError, ModelError
from citerec.indexes import INDEXES, find_index
from citerec.java import is_java_exception
from citerec.manifest import MODELS, NAME, Manifest, faults, opening_faults, read_manifest

__all__ = [
    "INDEXES",
    "IndexFolder",
    "find_index",
    "open_index",
    "verify_index",
    "verifying_on_failure",
]

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
    return index if read_manifest(path) == manifest else open_index(path)


def _map(path: Path, manifest: Manifest) -> IndexFolder:
    if wrong := opening_faults(path, manifest):
        raise IndexDamagedError(path, wrong)
    part = LOOKUP
    try:
        lookup = open_lookup(path) if is_stored(manifest.checksums) else None
        part = PAPERS
        papers = Papers(path / part, lookup)
        if len(papers) != manifest.counts.get("papers"):
            raise ValueError(f"it holds {len(papers):,} papers")
        part = CITATIONS
        graph = open_graph(path / part, len(papers))
        if f"{CITATIONS}/{CITED_BY[0]}" in manifest.checksums:
            stored = open_cited_by(path / part, len(papers), len(graph.indices))
            graph = replace(graph, transpose=stored)
        part = ID_RANK
        rank: npt.NDArray[np.int32] = open_array(path / part, np.int32, length=len(papers))
        check_distinct(part, rank, len(papers))
        part = NAME
        _check_vectors(manifest.settings, len(papers))
    except (OSError, ValueError) as error:
        raise IndexDamagedError(path, [f"{part} cannot be read ({error})"]) from error
    return IndexFolder(path, manifest, papers, graph, rank)


def _check_vectors(settings: Mapping[str, Any], papers: int) -> None:
    """Check the encoder and the vectors of a manifest's settings.

    Raises:
        ValueError: If they cannot be parsed, or contradict each other.
    """
    if not settings.get("encoder"):
        return
    try:
        encoder, dense = Fingerprint.from_json(settings["encoder"]), settings["dense"]
        vectors = tuple(dense[name] for name in ("papers", "dim", "bytes", "kind", "similarity"))
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        raise ValueError("its encoder cannot be parsed") from error
    if vectors[:2] != (papers, encoder.dim) or list(map(type, vectors)) != [
        int,
        int,
        int,
        str,
        str,
    ]:
        raise ValueError("its vectors do not match the papers and the encoder")


def verify_index(path: Path) -> Manifest:
    """Check every byte of an index against its manifest, and return the manifest.

    Raises:
        IndexDamagedError: If a file is missing, changed, or does not belong to the index.
    """
    manifest = read_manifest(path)
    try:
        wrong = faults(path, manifest)
    except FileNotFoundError:  # a folder that was listed is gone
        if read_manifest(path) == manifest:
            raise
        return verify_index(path)
    if not wrong:
        return manifest
    if read_manifest(path) == manifest:
        raise IndexDamagedError(path, wrong)
    return verify_index(path)


@contextmanager
def verifying_on_failure(index: IndexFolder) -> Generator[None]:
    """Verify an index if the block fails unexpectedly; faults of its files then become the error.

    Raises:
        IndexDamagedError: If a file was changed, or Lucene or Arrow could not read one.
    """
    try:
        yield
    except CiterecError:
        raise
    except Exception as error:
        path, manifest = index.path, index.manifest
        reason = " ".join(str(error).split())[:120]
        if read_manifest(path) == manifest and "OutOfMemoryError" not in reason:
            wrong = faults(path, manifest)
            if is_java_exception(error):
                wrong = wrong or [f"{BM25} cannot be read ({reason})"]
            elif isinstance(error, UnicodeDecodeError | pa.ArrowException):
                wrong = wrong or [f"{PAPERS} cannot be read ({reason})"]
            if wrong:
                raise IndexDamagedError(path, wrong) from error
        raise
