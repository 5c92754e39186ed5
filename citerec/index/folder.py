"""An index folder: its manifest (format, corpus, counts, settings, checksums), its papers and citations, its paths.

The manifest has a checksum of its own, so that a changed byte in it is found, too. Checksums find damage, not attacks:
who publishes an index can also write its checksums. So names and types are checked as well.
"""

import hashlib
import os
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as pydantic_dataclass

from citerec.encode.spec import Fingerprint
from citerec.errors import (
    ConfigError,
    IndexDamagedError,
    IndexFormatError,
    IndexNotFoundError,
    shown,
)
from citerec.files.arrays import Rows, check_rows, open_array
from citerec.files.atomic import is_regular, replacing
from citerec.files.cache import keep, kept
from citerec.files.checksums import (
    checksums_of,
    entries,
    file_faults,
    model_faults,
    name_faults,
    read_record,
    sealed,
    unexpected,
)
from citerec.index.contexts import CONTEXTS, Contexts
from citerec.index.graph import Graph, open_graph
from citerec.index.papers import Papers, open_lookup
from citerec.index.splits import FOLDER as SPLITS_FOLDER
from citerec.types import Json

PathLike = str | os.PathLike[str]
FORMAT = 5
NAME = "manifest.json"
INDEXES = Path("indexes")  # where indexes are, unless a folder is named
PAPERS = "papers.arrow"
CITATIONS = "citations"
BM25 = "bm25"
ID_RANK = "id_rank.npy"
DENSE = "dense"
# what retrievers of other packages keep, each in a folder of its name
PLUGINS = "plugins"
MODELS = "models"  # trained on the index after it was built: each has its own checksums
# their folders
RERANKER = "reranker"
RANKER = "ranker"
# of a model in training
_IN_PROGRESS = re.compile(r"\..+\.(training|lock|building-.+)")


@pydantic_dataclass(
    frozen=True, slots=True, kw_only=True, config=ConfigDict(strict=True)
)
class Manifest:
    """The manifest of one index."""

    name: str = Field(pattern=r"^[^/]*[^/.][^/]*$")  # a part of the paths of reports
    created: str  # ISO 8601, UTC
    citerec: str  # version that built it
    corpus: Json  # path, format, sha256, files
    counts: dict[str, int]
    settings: Json  # per part: bm25, splits, encoder
    checksums: dict[str, str]  # sha256 of each other file, by path within the folder
    format: int = FORMAT

    @property
    def lineage(self) -> str:
        """The sha256 of the corpus that the index was built from first; changes of the index keep it."""
        return str(self.corpus.get("base_sha256", self.corpus["sha256"]))

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written, with its seal; the same content gives the same bytes."""
        return sealed(asdict(self))


@dataclass(frozen=True)
class IndexFolder:
    """An index on disk; its parts are memory maps, which stay unchanged when the index is replaced."""

    path: Path
    manifest: Manifest
    papers: Papers
    graph: Graph  # citations among the papers of the index
    # rank of each row's docid among all docids, shape (papers,): breaks ties
    id_rank: Rows
    contexts: Contexts | None  # None if no paper has any

    @property
    def years(self) -> Rows:
        """The year of each paper, shape (papers,)."""
        return self.papers.years

    @property
    def tokens(self) -> int:
        """The number of tokens of all papers, for BM25."""
        return self.manifest.counts.get("bm25_tokens", 0)

    @property
    def bm25(self) -> Path:
        """The folder of Lucene's index."""
        return self.path / BM25

    @property
    def is_embedded(self) -> bool:
        """Whether the papers were embedded."""
        return bool(self.manifest.settings.get("dense"))

    @property
    def models(self) -> Path:
        """The folder of the models that were trained on this index."""
        return self.path / MODELS

    def own_model(self, name: str, required: str) -> Path | None:
        """Return the folder of a model that was trained on this index; None if there is none.

        `name` is `RERANKER` or `RANKER`; every such model has the file `required`. IndexDamagedError if the folder
        exists, but has no model in it.
        """
        folder = self.models / name
        if os.path.lexists(folder) and not is_regular(folder / required):
            raise IndexDamagedError(
                self.path, [f"{MODELS}/{name}/{required} is missing"]
            )
        return folder if folder.is_dir() else None

    @property
    def splits(self) -> Path:
        """The folder of the splits."""
        return self.path / SPLITS_FOLDER

    @property
    def encoder(self) -> Fingerprint:
        """The encoder of the vectors, if the papers were embedded."""
        return Fingerprint(**self.manifest.settings["encoder"])

    @property
    def encoder_weights(self) -> str | None:
        """The sha256 of the weights of the encoder; None without vectors."""
        recorded = self.manifest.settings.get("encoder")
        return recorded["weights"] if recorded else None

    def plugin(self, name: str) -> Path:
        """Return the folder of what a retriever of another package keeps in the index; ConfigError if it has none."""
        if name not in self.plugins:
            raise ConfigError(
                f"{self.path} has nothing of the retriever {name!r}; build it anew: "
                f"citerec index CORPUS --index {self.path} --retriever {name} --force"
            )
        return self.path / PLUGINS / name

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of the retrievers of other packages that keep data in the index."""
        return tuple(self.manifest.settings.get("plugins", ()))

    def check_embedded(self, encoder: str = "MODEL") -> None:
        """Check that the index has vectors, else raise a `ConfigError`, which suggests an encoder."""
        if not self.is_embedded:
            raise ConfigError(
                f"{self.path} has no vectors; embed its papers: "
                f"citerec encode --index {self.path} --encoder {encoder}"
            )


def find_index(named: Path | None, *, root: Path = INDEXES) -> Path:
    """Return an index folder: the named one, here or under `root`, else the only one under `root`.

    An IndexNotFoundError if there is none, or several to choose from.
    """
    if named is not None:
        return next((p for p in (named, root / named) if is_regular(p / NAME)), named)
    # a hidden folder is a build in progress
    folders = sorted(
        p.parent for p in root.glob(f"*/{NAME}") if p.parent.name[0] != "."
    )
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise IndexNotFoundError(
            f"no index under {root}/; build one: citerec index CORPUS, or try: citerec demo"
        )
    listed = ", ".join(str(p) for p in folders)
    raise IndexNotFoundError(
        f"several indexes: {listed}; name one of them (most commands: --index NAME)"
    )


def open_index(path: PathLike) -> IndexFolder:
    """Open an index folder.

    Raises:
        IndexNotFoundError: If there is none.
        IndexFormatError: If it is of another format version.
        IndexDamagedError: If a file was changed, is missing, is a link, or cannot be read.
        ConfigError: If its path is not UTF-8.
    """
    path = Path(path)
    check_path(path)
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
    part = "a folder"
    try:
        links = [
            f"{name} is a {kind} entry"
            for name, kind in entries(path)
            if kind != "file"
        ]
        if links:
            raise IndexDamagedError(path, links)
        part = PAPERS
        papers = Papers(path / part)
        most = _most_bytes(papers)
        if wrong := file_faults(path, manifest.checksums, cached=True, most=most):
            raise IndexDamagedError(path, wrong)
        papers.lookup = open_lookup(path)
        if len(papers) != manifest.counts.get("papers"):
            raise ValueError(f"it holds {len(papers):,} papers")
        part = CITATIONS
        graph = open_graph(path / part, len(papers))
        part = ID_RANK
        rank: Rows = open_array(path / part, np.int32, length=len(papers))
        check_rows(part, rank, len(papers), distinct=True)
        contexts = None
        if (count := manifest.counts.get(CONTEXTS)) is not None:
            part = CONTEXTS
            contexts = Contexts(
                path / part, papers.years, manifest.counts["contexts_tokens"]
            )
            if len(contexts) != count:
                raise ValueError(f"it holds {len(contexts):,} contexts")
        part = NAME
        settings = manifest.settings
        if settings.get("encoder") or settings.get("dense"):
            encoder = Fingerprint(**settings["encoder"])
            dense = settings["dense"]
            if (dense["papers"], dense["dim"]) != (len(papers), encoder.dim):
                raise ValueError("its vectors do not match the papers and the encoder")
        part = "its content"
        mark = f"checked/{hashlib.sha256(manifest.to_bytes()).hexdigest()}"
        if not kept(mark):
            # here: a content that was checked is not checked again
            from citerec.index.content import check_content

            check_content(path, papers, graph, contexts, settings)
            keep(mark, NAME.encode())
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise IndexDamagedError(path, [f"{part} cannot be read ({reason})"]) from error
    return IndexFolder(path, manifest, papers, graph, rank, contexts)


def check_path(path: Path) -> None:
    """Refuse the path of an index that is not UTF-8, which Arrow, faiss and Java cannot open, by a ConfigError."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{shown(str(path))}: the path of an index must be UTF-8; rename the folder"
        ) from error


def _most_bytes(papers: Papers) -> int:
    """Return how many bytes a file of an index of some papers may have: a larger one may consist of holes."""
    return 2**28 + 2**16 * len(papers)


def saved_vectors(target: Path) -> Path:
    """Return the folder of the vectors that are saved while an index is embedded."""
    target = Path(os.path.realpath(target))
    return target.with_name(f".{target.name}.encoding")


def has_saved_vectors(target: Path) -> bool:
    """Whether an interrupted run saved vectors for an index."""
    return any(file.stat().st_size for file in saved_vectors(target).glob("*"))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder; errors are those of `open_index`."""
    try:
        raw = read_record(folder / NAME)
    except (FileNotFoundError, NotADirectoryError) as error:
        advice = "build one: citerec index CORPUS --index FOLDER, where FOLDER is new or empty"
        if has_saved_vectors(folder):
            advice = f"its build was interrupted: citerec index CORPUS --index {folder} --resume"
        raise IndexNotFoundError(
            f"{folder} is not an index (it has no {NAME}); {advice}"
        ) from error
    except OSError as error:
        raise IndexNotFoundError(
            f"{folder / NAME} cannot be read: {error.strerror}"
        ) from error
    try:
        content: Any = orjson.loads(raw)
        version = content["format"]
        if version != FORMAT:
            raise IndexFormatError(
                f"{folder} has index format {version!r}, this citerec reads format {FORMAT}; "
                f"rebuild it: citerec index CORPUS --index {folder} --force"
            )
        content.pop("seal", None)  # `to_bytes` computes it again
        manifest = Manifest(**content)
        if manifest.to_bytes() != raw or not isinstance(manifest.corpus["sha256"], str):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"]) from error
    if wrong := name_faults(manifest.checksums):
        raise IndexDamagedError(folder, [f"{NAME}: {fault}" for fault in wrong])
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, completely or not at all."""
    with replacing(folder / NAME) as temporary:
        temporary.write_bytes(manifest.to_bytes())


def checksums(folder: Path, known: Collection[str] = ()) -> dict[str, str]:
    """Return the sha256 of each file of an index, by path, except its manifest, models and `known` files."""
    return checksums_of(folder, NAME, MODELS, known=known)


def verify_index(path: PathLike) -> Manifest:
    """Check every byte of an index and of its models against their checksums, and return the manifest.

    Raises:
        IndexDamagedError: If a file is missing or changed, or an entry does not belong to the index: a link, a pipe.
    """
    path = Path(path)
    manifest = read_manifest(path)
    try:
        most = _most_bytes(Papers(path / PAPERS))
        wrong = file_faults(path, manifest.checksums, cached=False, most=most)
        wrong += unexpected(path, {NAME, *manifest.checksums}, but=MODELS)
        for model in sorted((path / MODELS).glob("*")):
            if model.is_dir() and not model.name.startswith("."):
                wrong += [
                    f"{MODELS}/{model.name}/{fault}" for fault in model_faults(model)
                ]
            elif not _IN_PROGRESS.fullmatch(model.name):
                wrong.append(f"{MODELS}/{model.name} does not belong to it")
    except OSError as error:
        wrong = [f"{error.filename} cannot be read ({error.strerror})"]
    except ValueError as error:
        wrong = [f"{PAPERS} cannot be read ({error})"]
    if wrong and read_manifest(path) != manifest:  # a build replaced it meanwhile
        return verify_index(path)
    if wrong:
        raise IndexDamagedError(path, wrong)
    open_index(path)  # which checks its content
    return manifest
