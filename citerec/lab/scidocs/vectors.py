"""The vectors of a suite: of an encoder, or of files.

Those of an encoder are saved in shards, so that a run can be resumed. The files of the published suite have one
`{"paper_id": …, "embedding": […]}` per line.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import orjson

from citerec.encode.encoder import Encoder
from citerec.errors import BadInputError, writing
from citerec.files.arrays import Vectors, save_array
from citerec.files.atomic import replacing
from citerec.files.reading import read_rows
from citerec.lab.scidocs.layout import LABELLED, RANKED, loads
from citerec.types import Log, Paper, Progress, no_log, no_progress

SHARD = 1024  # papers per saved shard
# the vector of each paper, shape (papers, dim); a row that is not finite means no vector
Encode = Callable[[Sequence[Paper]], Vectors]


class CachedVectors:
    """An encoder that saves its vectors on disk until its block has ended well; a second run continues with them.

    The files are keyed by the encoder and the texts, so no stale vectors are used.
    """

    def __init__(
        self,
        encoder: Encoder,
        folder: Path,
        progress: Progress = no_progress,
        log: Log = no_log,
    ) -> None:
        self._encoder = encoder
        self._folder = folder
        self._progress = progress
        self._log = log
        self._files: set[Path] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        if fault is None:
            self.forget()
        elif self.kept:
            self._log(
                f"vectors are saved in {self._folder}/; run the command again to continue"
            )

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
            if (
                kept.shape == (len(papers), self._encoder.dim)
                and kept.dtype == np.float32
            ):
                return kept
        vectors = self._encoder.encode(papers, progress)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with replacing(file) as temporary:
                save_array(temporary, vectors)
        return vectors

    def _digest(self, papers: Sequence[Paper]) -> str:
        made_by = repr((self._encoder.fingerprint.key, self._encoder.precision))
        digest = hashlib.sha256(made_by.encode())
        for p in papers:
            fields = (p.title, p.abstract, p.venue, *p.authors)
            digest.update(repr(fields).encode(errors="surrogatepass"))
        return digest.hexdigest()[:32]


CLASSIFIED = "cls.jsonl"
RELATED = "user-citation.jsonl"
CLICKED = "recomm.jsonl"
FILES = (CLASSIFIED, RELATED, CLICKED)
"""The published data contains those of SPECTER, in `specter-embeddings/`."""


def has_vector_files(folder: Path) -> bool:
    """Return whether a folder contains such files."""
    return any((folder / name).is_file() for name in FILES)


def vectors_in(folder: Path, task: str) -> Encode:
    """Return the function that gives the papers of a task their vectors in such a folder.

    Raises:
        BadInputError: If the folder has no file of that kind of task.
    """
    name = CLASSIFIED if task in LABELLED else RELATED if task in RANKED else CLICKED
    if not (folder / name).is_file():
        raise BadInputError(folder, f"contains no {name} with the vectors of {task}")
    return partial(read_vectors, folder / name)


def read_vectors(path: Path, papers: Sequence[Paper]) -> Vectors:
    """Return the vector of each paper in such a file, shape (papers, dim); NaN for a paper without one.

    The file is read until all papers are found; the first of two vectors of a paper counts.

    Raises:
        BadInputError: If a line is invalid, or no paper has a vector.
    """
    rows = {paper.id: row for row, paper in enumerate(papers)}
    vectors: Vectors | None = None
    missing = set(rows)
    for line, text in read_rows(path, "one vector a line, as JSON"):
        paper_id, vector = _vector(path, line, text)
        if paper_id not in missing or not len(vector):
            continue
        if vectors is None:
            vectors = np.full((len(papers), len(vector)), np.nan, np.float32)
        if len(vector) != vectors.shape[1]:
            problem = f"{len(vector)} dimensions; earlier lines have {vectors.shape[1]}"
            raise BadInputError(path, problem, line=line)
        vectors[rows[paper_id]] = vector
        missing.remove(paper_id)
        if not missing:
            break
    if vectors is None:
        raise BadInputError(path, f"no vector of any of {len(papers)} papers")
    return vectors


def _vector(path: Path, line: int, text: bytes) -> tuple[str, Vectors]:
    try:
        record = loads(text)
        return str(record["paper_id"]), np.array(
            record["embedding"], np.float32
        ).reshape(-1)
    except orjson.JSONDecodeError as error:
        raise BadInputError(path, f"not JSON: {error.msg}", line=line) from error
    except (KeyError, TypeError, ValueError) as error:
        problem = 'expected {"paper_id": …, "embedding": [numbers]}'
        raise BadInputError(path, problem, line=line) from error
