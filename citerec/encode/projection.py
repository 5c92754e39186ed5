"""A linear map of an encoder's vectors, which the recipe `linear` of `citerec train-encoder` trains.

A model folder holds it as a Dense module of sentence-transformers without bias and activation, after the pooling.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.light import UnsupportedError
from citerec.encode.light.tensors import Tensors
from citerec.encode.spec import Similarity
from citerec.entries import read_record
from citerec.errors import ModelError
from citerec.manifest import TRAINING

FOLDER, FILE, TENSOR = "2_Dense", "model.safetensors", "linear.weight"
SMALLEST_NORM = 1e-12  # as in torch.nn.functional.normalize

Matrix = npt.NDArray[np.float32]  # shape (dim, dim)
Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """A map, and the encoder whose vectors it maps."""

    matrix: Matrix  # a vector v becomes `matrix @ v`
    base: tuple[
        str, str
    ]  # sha256 of the encoder's weights and tokenizer; empty if the folder has no record of them

    def of(self, vectors: Vectors, similarity: Similarity) -> Vectors:
        """Return the mapped vectors, of unit length if compared by cosine.

        Each is computed by itself, in one order of additions: it does not depend on the other vectors or on threads.

        Args:
            vectors: Shape (n, dim).
            similarity: How vectors are compared.
        """
        mapped = np.empty_like(vectors)
        for row, vector in enumerate(vectors):
            mapped[row] = np.einsum("ij,j->i", self.matrix, vector)
        return unit(mapped) if similarity is Similarity.COSINE else mapped


def unit(vectors: Vectors) -> Vectors:
    """Return the vectors at length 1, shape (n, dim)."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), SMALLEST_NORM)


def projection_file(folder: Path) -> Path | None:
    """Return the file of the map in a model folder; None if there is none."""
    file = folder / FOLDER / FILE
    return file if file.is_file() else None


def read_projection(folder: Path, dim: int) -> Projection | None:
    """Return the map in a model folder, of vectors of `dim` numbers; None if there is none.

    Raises:
        ModelError: If it is missing although its folder exists, is damaged, or maps vectors of another dimension.
    """
    file = folder / FOLDER / FILE
    if not file.parent.is_dir():
        return None
    if not file.is_file():
        raise ModelError(f"{file} is missing: the encoder lacks its linear map; copy it again")
    try:
        matrix = Tensors(file).read(TENSOR, (dim, dim))
        if not np.isfinite(matrix).all():
            raise ModelError(f"{file} has numbers that are not finite; train the encoder again")
        return Projection(matrix, _base(folder))
    except UnsupportedError as error:
        raise ModelError(
            f"{file} holds no linear map of {dim} dimensions; train the encoder again"
        ) from error


def write_projection(folder: Path, matrix: Matrix) -> None:
    """Write a map into a model folder."""
    from safetensors.numpy import save_file

    (folder / FOLDER).mkdir(exist_ok=True)
    save_file({TENSOR: np.ascontiguousarray(matrix)}, folder / FOLDER / FILE, {"format": "pt"})
    config = {
        "in_features": matrix.shape[1],
        "out_features": matrix.shape[0],
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    (folder / FOLDER / "config.json").write_bytes(orjson.dumps(config))


def _base(folder: Path) -> tuple[str, str]:
    try:
        content: Any = orjson.loads(read_record(folder / TRAINING))
        return str(content["weights"]), str(content["tokenizer"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
