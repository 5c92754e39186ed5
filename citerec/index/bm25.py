"""Builds the Lucene part of an index as Anserini's indexer does; Pyserini can open it, too.

Fields: `id` (the docid), `contents` (title and abstract, English analysis), `year` (four
digits; 0000 if unknown). Neither texts nor term vectors are stored.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import OutputError
from citerec.index.lucene_analysis import analyzer
from citerec.index.lucene_documents import DocumentWriter
from citerec.index.lucene_ids import segment_ids
from citerec.java import as_type, is_java_exception, java_class
from citerec.text import contents
from citerec.types import Paper

_BUFFER_MB = 2048.0  # memory for documents that are not written yet, of all threads
ROWS = "rows.npy"  # int32, shape (Lucene documents,): the row of each Lucene document


class Bm25Builder:
    """Adds papers to Lucene's index in batches."""

    def __init__(self, folder: Path, *, threads: int, append: bool = False) -> None:
        """Open Lucene's writer.

        Args:
            folder: The Lucene index.
            threads: The number of threads that add papers; with one, documents keep the order in which they are added.
            append: Whether to add to an existing index.
        """
        self._folder = folder
        # absolute: the JVM keeps the working directory in which it was started
        directory = _open_directory(folder)
        analysis = as_type("org.apache.lucene.analysis.Analyzer", analyzer())
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(analysis)
        mode = java_class("org.apache.lucene.index.IndexWriterConfig$OpenMode")
        config.setOpenMode(mode.APPEND if append else mode.CREATE)
        config.setRAMBufferSizeMB(_BUFFER_MB)
        config.setUseCompoundFile(False)
        self._writer: Any = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
        self._documents = DocumentWriter(self._writer, threads)

    def add(self, papers: Iterable[Paper]) -> None:
        """Index a batch of papers; papers without text are skipped.

        Raises:
            OutputError: If Lucene cannot write them.
        """
        texts = ((paper, contents(paper)) for paper in papers)
        documents = [(p.id, text, year_term(p.year)) for p, text in texts if text.strip()]
        try:
            self._documents.add(documents)
        except Exception as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Write what Lucene has buffered; the index is complete after this.

        Raises:
            OutputError: If Lucene cannot write it.
        """
        try:
            self._documents.flush()
            self._writer.close()
        except Exception as error:
            raise self._failed(error) from error
        (self._folder / "write.lock").unlink(missing_ok=True)

    def writer(self) -> Any:
        """Return Lucene's `IndexWriter`."""
        return self._writer

    def abandon(self) -> None:
        """Close the files of a failed build; they will be removed."""
        with suppress(Exception):
            self._writer.rollback()

    def _failed(self, error: Exception) -> Exception:
        if not is_java_exception(error):
            return error
        reason = str(error).strip().splitlines()[0]
        full = "space" in reason
        hint = "; is there space on the disk?" if full else "; see: citerec doctor"
        return OutputError(f"Lucene cannot write {self._folder}: {reason}{hint}")


def write_rows(folder: Path, rows: Mapping[str, int]) -> int:
    """Write the row of each Lucene document, so that hits need no lookup by docid.

    Args:
        folder: The Lucene index.
        rows: The row of each docid.

    Returns:
        The number of Lucene documents.
    """
    reader = open_reader(folder)
    try:
        documents = int(reader.maxDoc())
        in_order = (rows[docid] for ids in segment_ids(reader, folder) for docid in ids)
        table: npt.NDArray[np.int32] = np.fromiter(in_order, np.int32, documents)
    finally:
        reader.close()
    np.save(folder / ROWS, table)
    return len(table)


def open_reader(folder: Path) -> Any:
    """Open a Lucene index for reading."""
    directory = _open_directory(folder)
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    return as_type("org.apache.lucene.index.IndexReader", reader)


def year_term(year: int | None) -> str:
    """Return a year as an index term: four digits that sort like years, 0000 if unknown."""
    return f"{year or 0:04d}"


def _open_directory(folder: Path) -> Any:
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    return as_type("org.apache.lucene.store.Directory", directory)
