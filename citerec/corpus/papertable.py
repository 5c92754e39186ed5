"""Opens the Arrow table of an index's papers, and checks the offsets of its texts, which Arrow does not check."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

REQUIRED = ("id", "title", "abstract", "year", "authors", "venue")


def open_table(path: Path, schema: Any, batch: int) -> Any:
    """Map the table of an Arrow file into memory.

    The offsets of texts are checked, which takes a few milliseconds per million papers; the texts are not read.

    Args:
        path: The Arrow file.
        schema: The columns that it may have; those of `REQUIRED` must be there.
        batch: The papers in each of its batches except the last.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is not such a table.
    """
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        _check_columns(reader.schema, schema)
        table = reader.read_all()
        for name in table.column_names:
            for number, chunk in enumerate(table[name].chunks):
                _check(chunk, nullable=schema.field(name).nullable)
                is_last = number == table[name].num_chunks - 1
                if not (0 < len(chunk) <= batch if is_last else len(chunk) == batch):
                    raise ValueError(f"batch {number} holds {len(chunk):,} papers")
    except (pa.ArrowException, MemoryError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(" ".join(str(error).split())[:120]) from error
    return table


def _check_columns(stored: Any, schema: Any) -> None:
    missing = [name for name in REQUIRED if name not in stored.names]
    if missing or len({*stored.names}) != len(stored.names):
        raise ValueError(f"it has no column {missing[0]}" if missing else "a column occurs twice")
    for field in stored:
        if field.name not in schema.names or field.type != schema.field(field.name).type:
            raise ValueError(f"it has a column {ascii(field.name)[:40]} of {str(field.type)[:40]}")


def _check(chunk: Any, *, nullable: bool) -> None:
    """Check one column of a batch.

    Raises:
        ValueError, ArrowException: If it does not match its type.
    """
    chunk.validate()  # sizes of buffers
    if chunk.null_count and not nullable:
        raise ValueError("a text is null")
    if pa.types.is_list(chunk.type):
        _check_ends(chunk, len(chunk.values))
        _check(chunk.values, nullable=False)
    elif pa.types.is_string(chunk.type):
        content = chunk.buffers()[2]
        _check_ends(chunk, content.size if content else 0)


def _check_ends(chunk: Any, size: int) -> None:
    if not len(chunk):
        return
    ends = np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1)
    if ends[0] < 0 or ends[-1] > size or np.any(ends[1:] < ends[:-1]):
        raise ValueError("a text ends before it begins, or beyond its batch")
