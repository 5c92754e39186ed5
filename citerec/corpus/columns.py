"""Arrow arrays of Python values and back, through their buffers.

pyarrow's own functions for this (`pa.array`, `to_numpy`, `fill_null`) import pandas, which takes as long as adding a
thousand papers to an index.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def record_batch(schema: Any, columns: Sequence[Sequence[Any]]) -> Any:
    """Return an Arrow batch of some columns: texts, lists of texts, or integers that may be None.

    Raises:
        UnicodeEncodeError: If a text has an unpaired surrogate.
    """
    arrays = [_array(field.type, values) for field, values in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def numbers(array: Any, *, missing: int = 0) -> npt.NDArray[Any]:
    """Return an Arrow array of integers as numpy array, with `missing` for null."""
    valid, values = array.buffers()
    dtype = np.dtype(str(array.type))
    whole = np.frombuffer(values, dtype, len(array), array.offset * dtype.itemsize)
    if valid is None or not array.null_count:
        return whole
    bits = np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")
    is_valid = bits[array.offset : array.offset + len(array)].astype(np.bool_)
    return np.where(is_valid, whole, dtype.type(missing))


def _array(kind: Any, values: Sequence[Any]) -> Any:
    if pa.types.is_string(kind):
        return _texts(values)
    if pa.types.is_list(kind):
        ends = _ends([len(texts) for texts in values])
        children = [_texts([*chain.from_iterable(values)])]
        return pa.Array.from_buffers(kind, len(values), [None, ends], children=children)
    is_valid = np.array([value is not None for value in values], np.bool_)
    content = np.array([value or 0 for value in values], str(kind))
    bitmap = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(content)])


def _texts(texts: Sequence[str]) -> Any:
    encoded = [text.encode() for text in texts]
    content = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), _ends([*map(len, encoded)]), content)


def _ends(lengths: Sequence[int]) -> Any:
    ends = np.cumsum([0, *lengths], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"a batch of papers holds {ends[-1]:,} bytes, expected at most 2 GiB")
    return pa.py_buffer(ends.astype(np.int32))
