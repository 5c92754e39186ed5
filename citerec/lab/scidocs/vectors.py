"""The vectors of a suite: those of an index, or those of an encoder, saved in shards so that a run can be resumed."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from citerec.encode.encoder import Encoder
from citerec.encode.spec import Fingerprint
from citerec.errors import IndexDamagedError, writing
from citerec.folder import IndexFolder
from citerec.index.vectors import Vectors, open_dense
from citerec.io import replacing
from citerec.lab.scidocs.ranking import Take
from citerec.types import Paper, Progress, no_progress

SHARD = 1024  # papers per saved shard


def embedded_by(index: IndexFolder) -> Fingerprint | None:
    """Return the encoder of the vectors of an index; None without vectors.

    Raises:
        IndexDamagedError: If the manifest entry is invalid.
    """
    if not index.is_embedded:
        return None
    try:
        return Fingerprint.from_json(index.manifest.settings["encoder"])
    except (KeyError, TypeError, ValueError) as error:
        raise IndexDamagedError(index.path, ["what it says of its encoder"]) from error


def kept_vectors(index: IndexFolder) -> Take | None:
    """Return the function that gives the vectors of an index; None if it has none or rounded ones.

    Raises:
        IndexDamagedError: If they are damaged.
    """
    settings = index.manifest.settings.get("dense")
    if not settings:
        return None
    try:
        return open_dense(index.dense, settings, index.papers.years).vectors
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamagedError(index.path, [f"dense/ cannot be read: {error}"]) from error


class CachedVectors:
    """An encoder that saves its vectors on disk until `forget`; a second run continues with them.

    The files are keyed by the encoder and the texts, so no stale vectors are used.
    """

    def __init__(self, encoder: Encoder, folder: Path, progress: Progress = no_progress) -> None:
        self._encoder, self._folder, self._progress = encoder, folder, progress
        self._files: set[Path] = set()

    def __call__(self, papers: Sequence[Paper]) -> Vectors:
        """Return the vector of each paper, shape (papers, dim).

        Raises:
            OutputError: If the folder cannot be written.
        """
        vectors = np.empty((len(papers), self._encoder.dim), np.float32)
        for start in range(0, len(papers), SHARD):
            shard = papers[start : start + SHARD]

            def progress(what: str, done: int, total: int, start: int = start) -> None:
                self._progress(what, start + done, len(papers))

            vectors[start : start + len(shard)] = self._shard(shard, progress)
            progress("encoding", len(shard), len(shard))
        return vectors

    @property
    def kept(self) -> int:
        """The number of saved shards."""
        return sum(file.is_file() for file in self._files)

    def forget(self) -> None:
        """Remove the saved shards, and the folder if it is empty."""
        for file in self._files:
            file.unlink(missing_ok=True)
        with suppress(OSError):
            self._folder.rmdir()

    def _shard(self, papers: Sequence[Paper], progress: Progress) -> Vectors:
        file = self._folder / f"{self._digest(papers)}.npy"
        self._files.add(file)
        with suppress(OSError, ValueError, EOFError):
            kept: Vectors = np.load(file)
            if kept.shape == (len(papers), self._encoder.dim) and kept.dtype == np.float32:
                return kept
        vectors = self._encoder.encode(papers, progress)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(file, vectors)
        return vectors

    def _digest(self, papers: Sequence[Paper]) -> str:
        made_by = repr((self._encoder.fingerprint.key, self._encoder.precision))
        digest = hashlib.sha256(made_by.encode())
        for p in papers:
            fields = (p.title, p.abstract, p.venue, *p.authors)
            digest.update(repr(fields).encode(errors="surrogatepass"))
        return digest.hexdigest()[:32]


def _write(file: Path, vectors: Vectors) -> None:
    with replacing(file) as temporary, temporary.open("wb") as stream:
        np.save(stream, vectors)
