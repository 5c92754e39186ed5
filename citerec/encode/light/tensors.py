"""Reads weights in safetensors from a memory map: tensors that are not read take no memory.

Format: 8 bytes, the length of a JSON header; the header, {name: {dtype, shape, data_offsets}}; the numbers.
Source: https://huggingface.co/docs/safetensors.
"""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.encode.light import UnsupportedError

ALONE = "model.safetensors"  # the weights of a model folder, if they are one file
MAX_HEADER = 100_000_000  # bytes; the limit of the library safetensors
DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}

Tensor = npt.NDArray[np.float32]
Header = Mapping[str, Mapping[str, Any]]


class Tensors:
    """The tensors of one file, by name."""

    def __init__(self, file: Path) -> None:
        """Map a file into memory.

        Raises:
            UnsupportedError: If it is not a safetensors file.
        """
        try:
            self._bytes: npt.NDArray[np.uint8] = np.memmap(file, np.uint8, "r")
            length = int.from_bytes(self._bytes[:8].tobytes(), "little")
            if not 0 < length <= min(MAX_HEADER, len(self._bytes) - 8):
                raise UnsupportedError(f"{file}: a header of {length} bytes")
            header: Any = orjson.loads(self._bytes[8 : 8 + length].tobytes())
            header.pop("__metadata__", None)
            end = max((entry["data_offsets"][1] for entry in header.values()), default=0)
            if 8 + length + end != len(self._bytes):
                raise UnsupportedError(f"{file} does not end where its last tensor does")
        except (OSError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise UnsupportedError(f"{file} cannot be parsed") from error
        self._start = 8 + length
        self._header: Header = header

    @property
    def names(self) -> list[str]:
        """The names of all tensors."""
        return list(self._header)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor, by the header.

        Raises:
            UnsupportedError: If there is no tensor of this name.
        """
        try:
            return tuple(int(size) for size in self._header[name]["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnsupportedError(f"no tensor {name} that can be read") from error

    def is_float(self, name: str) -> bool:
        """Return whether a tensor holds floats, which alone can be read; false if there is none of this name."""
        try:
            return self._header[name]["dtype"] in DTYPES
        except (KeyError, TypeError):
            return False

    def read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor in float32; one that is stored in float32 is mapped, not copied.

        Raises:
            UnsupportedError: If there is no tensor of this name and shape, or its type is not a float.
        """
        try:
            entry = self._header[name]
            dtype, stored_shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
            begin, end = entry["data_offsets"]
            is_inside = 0 <= begin <= end <= len(self._bytes) - self._start
            if (
                stored_shape != shape
                or not is_inside
                or end - begin != prod(shape) * dtype.itemsize
            ):
                raise UnsupportedError(
                    f"the tensor {name} is of shape {stored_shape}, expected {shape}"
                )
            content = self._bytes[self._start + begin : self._start + end]
        except (KeyError, TypeError, ValueError) as error:
            raise UnsupportedError(f"no tensor {name} that can be read") from error
        # An array that is not aligned to its items is copied: BLAS would copy it at each use.
        numbers = np.require(content.view(np.ndarray).view(dtype), requirements="A").reshape(shape)
        if entry["dtype"] == "BF16":  # the upper half of a float32
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers.astype(np.float32, copy=False)
