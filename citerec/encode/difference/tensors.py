"""Reads the weights of a model that is stored as a difference: base weights + difference, in float32."""

from pathlib import Path

import numpy as np

from citerec.encode.difference.folder import (
    BASE_WEIGHTS,
    WEIGHTS,
    base_folder,
    is_difference,
    read_difference,
)
from citerec.encode.light import UnsupportedError
from citerec.encode.light.one_thread import one_blas_thread
from citerec.encode.light.tensors import Tensor, Tensors
from citerec.errors import ModelError

LEFT, RIGHT, ADDED, WHOLE = (
    ".left",
    ".right",
    ".added",
    ".whole",
)  # ends of the names of its tensors


class DifferenceTensors:
    """The tensors of a model that is stored as a difference, by name; the counterpart of `Tensors`.

    Those of the base model that the difference leaves out are mapped, not copied.
    """

    def __init__(self, folder: Path) -> None:
        """Map the files of a difference and of its base model into memory.

        Raises:
            UnsupportedError: If one of them is not a safetensors file.
            MissingExtraError, ModelError: If the base model is missing, or another one.
        """
        self._prefix = read_difference(folder).prefix
        self._base = Tensors(base_folder(folder) / BASE_WEIGHTS)
        self._stored = Tensors(folder / WEIGHTS)
        self._stored_names = frozenset(self._stored.names)

    @property
    def names(self) -> list[str]:
        """The names of all tensors of the model."""
        base = [self._prefix + name for name in self._base.names]
        whole = [n.removesuffix(WHOLE) for n in self._stored.names if n.endswith(WHOLE)]
        return list(dict.fromkeys([*base, *whole]))

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor.

        Raises:
            UnsupportedError: If there is no tensor of this name.
        """
        if name + WHOLE in self._stored_names:
            return self._stored.shape(name + WHOLE)
        return self._base.shape(self._in_base(name))

    def is_float(self, name: str) -> bool:
        """Return whether a tensor holds floats, which alone can be read."""
        return name + WHOLE in self._stored_names or self._base.is_float(self._in_base(name))

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor in float32.

        Raises:
            UnsupportedError: If there is no tensor of this name and shape, or its type is not a float.
        """
        if name + WHOLE in self._stored_names:
            return self._stored.read(name + WHOLE, shape)
        base = self._base.read(self._in_base(name), shape)
        if name + ADDED in self._stored_names:
            return base + self._stored.read(name + ADDED, shape)
        if name + LEFT not in self._stored_names:
            return base
        rows, rank = shape[0], self._stored.shape(name + LEFT)[-1]
        left = self._stored.read(name + LEFT, (rows, rank))
        right = self._stored.read(name + RIGHT, (rank, *shape[1:]))
        with one_blas_thread():
            whole = left @ right
        whole += base
        return whole

    def _in_base(self, name: str) -> str:
        if not name.startswith(self._prefix):
            raise UnsupportedError(f"no tensor {name} that can be read")
        return name.removeprefix(self._prefix)


def open_tensors(folder: Path) -> Tensors | DifferenceTensors:
    """Map the weights of a model folder into memory, which are a difference or in one safetensors file.

    Raises:
        UnsupportedError: If they are in no such file.
        MissingExtraError, ModelError: If the base model of a difference is missing, or another one.
    """
    return DifferenceTensors(folder) if is_difference(folder) else Tensors(folder / BASE_WEIGHTS)


def read_state(folder: Path) -> dict[str, Tensor]:
    """Return all float tensors of a model folder in float32, by name; none of them is a memory map.

    Raises:
        ModelError: If they cannot be read.
        MissingExtraError: If the base model of a difference is not installed.
    """
    try:
        tensors = open_tensors(folder)
        names = [name for name in tensors.names if tensors.is_float(name)]
        return {name: np.array(tensors.read(name, tensors.shape(name))) for name in names}
    except UnsupportedError as error:
        raise ModelError(f"{folder}: its weights cannot be read: {error}") from error
