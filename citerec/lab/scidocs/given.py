"""Precomputed vectors in the files of the published suite: one `{"paper_id": …, "embedding": […]}` per line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.errors import BadInputError
from citerec.index.vectors import Vectors
from citerec.inputs import read_rows
from citerec.lab.scidocs.layout import LABELLED, RANKED, loads
from citerec.types import Paper

CLASSIFIED, RELATED, CLICKED = "cls.jsonl", "user-citation.jsonl", "recomm.jsonl"
FILES = (CLASSIFIED, RELATED, CLICKED)
"""The published data contains those of SPECTER, in `specter-embeddings/`."""


def has_vector_files(folder: Path) -> bool:
    """Return whether a folder contains such files."""
    return any((folder / name).is_file() for name in FILES)


class PrecomputedVectors:
    """The vectors of such a folder, in place of an encoder; each kind of task has its own file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, task: str) -> "VectorFile":
        """Return the function that gives the papers of a task their vectors.

        Raises:
            BadInputError: If the folder has no file of that kind of task.
        """
        name = CLASSIFIED if task in LABELLED else RELATED if task in RANKED else CLICKED
        if not (self._folder / name).is_file():
            raise BadInputError(self._folder, f"contains no {name} with the vectors of {task}")
        return VectorFile(self._folder / name)


class VectorFile:
    """The vectors of one such file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, papers: Sequence[Paper]) -> Vectors:
        """Return the vector of each paper, shape (papers, dim); NaN for a paper without one.

        The file is read until all papers are found; the first of two vectors of a paper counts.

        Raises:
            BadInputError: If a line is invalid, or no paper has a vector.
        """
        rows = {paper.id: row for row, paper in enumerate(papers)}
        vectors: Vectors | None = None
        missing = set(rows)
        for line, record in self._records():
            paper_id, vector = _vector(self._path, line, record)
            if paper_id not in missing or not len(vector):
                continue
            if vectors is None:
                vectors = np.full((len(papers), len(vector)), np.nan, np.float32)
            if len(vector) != vectors.shape[1]:
                problem = f"{len(vector)} dimensions; earlier lines have {vectors.shape[1]}"
                raise BadInputError(self._path, problem, line=line)
            vectors[rows[paper_id]] = vector
            missing.remove(paper_id)
            if not missing:
                break
        if vectors is None:
            raise BadInputError(self._path, f"no vector of any of {len(papers)} papers")
        return vectors

    def _records(self) -> Iterator[tuple[int, Any]]:
        for number, line in read_rows(self._path, "one vector a line, as JSON"):
            try:
                yield number, loads(line)
            except orjson.JSONDecodeError as error:
                problem = f"not JSON: {error.msg}"
                raise BadInputError(self._path, problem, line=number) from error


def _vector(path: Path, line: int, record: Any) -> tuple[str, Vectors]:
    try:
        return str(record["paper_id"]), np.array(record["embedding"], np.float32).reshape(-1)
    except (KeyError, TypeError, ValueError) as error:
        problem = 'expected {"paper_id": …, "embedding": [numbers]}'
        raise BadInputError(path, problem, line=line) from error
