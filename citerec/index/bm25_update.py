"""Changes the Lucene part of an index: removes and adds papers.

Lucene's statistics count removed papers until their segment is rewritten, so these segments are rewritten at once:
scores are those of a new index. Only neighbouring segments are merged, so that the documents keep their order and their
rows are known without reading their ids.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import OutputError
from citerec.index.bm25 import ROWS, Bm25Builder, open_reader
from citerec.java import as_type, is_java_exception, java_class, static_method
from citerec.types import Paper

_DELETED_AT_ONCE = 10_000
_CHECKED = 16  # documents whose ids are compared after an update

Rows = npt.NDArray[np.int32]


def update_bm25(
    folder: Path,
    removed: Sequence[str],
    added: Iterable[list[Paper]],
    *,
    merge_all: bool = False,
) -> None:
    """Remove and add papers of a Lucene index in a folder of its own; files of the old index may be links.

    Lucene adds files and removes some, but never changes one.

    Args:
        folder: The Lucene index.
        removed: The ids of the papers to remove; an id without a document is skipped.
        added: Batches of papers to add; papers without text are skipped.
        merge_all: Whether to merge all segments into one.

    Raises:
        OutputError: If Lucene cannot write the index.
    """
    builder = Bm25Builder(folder, threads=1, append=True)
    signature = "(Ljava/lang/Object;Ljava/lang/String;[Ljava/lang/Object;)Ljava/lang/Object;"
    call = static_method("org.apache.commons.lang3.reflect.MethodUtils", "invokeMethod", signature)
    try:
        writer = builder.writer()
        policy = java_class("org.apache.lucene.index.LogDocMergePolicy")()
        writer.getConfig().setMergePolicy(as_type("org.apache.lucene.index.MergePolicy", policy))
        term = java_class("org.apache.lucene.index.Term")
        for start in range(0, len(removed), _DELETED_AT_ONCE):
            some = removed[start : start + _DELETED_AT_ONCE]
            # pyjnius cannot choose between the two methods of this name
            call(writer, "deleteDocuments", *(term("id", docid) for docid in some))
        for batch in added:
            builder.add(batch)
        if merge_all:
            writer.forceMerge(1, True)
        elif removed:
            writer.forceMergeDeletes(True)
    except Exception as error:
        builder.abandon()
        if is_java_exception(error):
            raise OutputError(f"Lucene cannot write {folder}: {_first_line(error)}") from error
        raise
    except BaseException:
        builder.abandon()
        raise
    builder.close()


def write_updated_rows(folder: Path, rows: Rows, ids: list[str]) -> None:
    """Write the row of each Lucene document.

    Args:
        folder: The Lucene index.
        rows: The row of each document, shape (documents,).
        ids: The ids at `probes(rows)`.

    Raises:
        OutputError: If Lucene holds other documents.
    """
    reader = open_reader(folder)
    try:
        same = reader.maxDoc() == reader.numDocs() == len(rows)
        fields: Any = reader.storedFields()
        numbers = probes(rows).tolist() if same else []
        same = same and ids == [fields.document(number).get("id") for number in numbers]
    finally:
        reader.close()
    if not same:
        raise OutputError(f"{folder}: Lucene holds its documents in another order than expected")
    np.save(folder / ROWS, rows)


def probes(rows: Rows) -> npt.NDArray[np.int64]:
    """Return the numbers of some documents, whose ids are compared: the first, the last, and others between."""
    return np.unique(np.linspace(0, max(len(rows) - 1, 0), _CHECKED, dtype=np.int64)[: len(rows)])


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or ["unknown"])[0]
