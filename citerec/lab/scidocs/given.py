"""Vectors that somebody made, in the files of the published suite: one `{"paper_id": …, "embedding": […]}` a line."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.errors import BadInputError
from citerec.index.dense.library import Vectors
from citerec.inputs import read_rows
from citerec.lab.scidocs.layout import LABELLED, RANKED, loads
from citerec.types import Paper

CLASSIFIED, RELATED, CLICKED = "cls.jsonl", "user-citation.jsonl", "recomm.jsonl"
FILES = (CLASSIFIED, RELATED, CLICKED)
"""Those of SPECTER come with the published data, in `specter-embeddings/`."""


def is_given(folder: Path) -> bool:
    """Whether a folder holds such files."""
    return any((folder / name).is_file() for name in FILES)


class GivenVectors:
    """Gives papers the vectors of such a folder, in place of an encoder: each kind of task has a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, task: str) -> "GivenFile":
        """Return what gives the papers of a task their vectors.

        Raises:
            BadInputError: If the folder has no file of that kind of task.
        """
        name = CLASSIFIED if task in LABELLED else RELATED if task in RANKED else CLICKED
        if not (self._folder / name).is_file():
            raise BadInputError(self._folder, f"holds no {name}, which has the vectors of {task}")
        return GivenFile(self._folder / name)


class GivenFile:
    """Gives papers the vectors of one such file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, papers: Sequence[Paper]) -> Vectors:
        """Return the vector of each paper, shape (papers, dim); NaN for a paper that has none.

        The file is read until all papers are found; of two vectors of a paper the first one counts.

        Raises:
            BadInputError: If a line is not of that form, or no paper is found.
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
                told = f"{len(vector)} dimensions; above there are {vectors.shape[1]}"
                raise BadInputError(self._path, told, line=line)
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
                told = f"not JSON: {error.msg}"
                raise BadInputError(self._path, told, line=number) from error


def _vector(path: Path, line: int, record: Any) -> tuple[str, Vectors]:
    try:
        return str(record["paper_id"]), np.array(record["embedding"], np.float32).reshape(-1)
    except (KeyError, TypeError, ValueError) as error:
        told = 'expected {"paper_id": …, "embedding": [numbers]}'
        raise BadInputError(path, told, line=line) from error
