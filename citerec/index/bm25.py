"""Builds the Lucene part of an index by Anserini's indexer; Pyserini can open it, too.

Fields: `id` (the docid), `contents` (title and abstract, English analysis), `year` (four
digits; 0000 if unknown). Neither texts nor term vectors are stored.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from citerec.errors import OutputError
from citerec.index.lucene_ids import segment_ids
from citerec.java import as_type, is_java_exception, java_class, static_method
from citerec.text import contents
from citerec.types import Paper

CONTENTS, YEAR = "contents", "year"
ROWS = "rows.npy"  # int32, shape (Lucene documents,): the row of each Lucene document


class Bm25Builder:
    """Adds papers to Lucene's index in batches."""

    def __init__(
        self, folder: Path, *, threads: int, buffer_mb: int = 256, append: bool = False
    ) -> None:
        """Open the indexer.

        Args:
            folder: The Lucene index.
            threads: The number of threads of the indexer; with one, documents keep the order in which they are added.
            buffer_mb: Memory for documents that are not written yet.
            append: Whether to add to an existing index.
        """
        self._folder = folder
        path = str(folder.absolute())  # the JVM keeps the working directory in which it was started
        arguments = [
            *("-input", path, "-collection", "JsonCollection", "-index", path),
            *("-fields", YEAR, "-threads", str(threads), "-memoryBuffer", str(buffer_mb)),
            *(["-append"] if append else []),
        ]
        self._indexer: Any = java_class("io.anserini.index.SimpleIndexer")(arguments)

    def add(self, papers: Iterable[Paper]) -> None:
        """Index a batch of papers; papers without text are skipped.

        Raises:
            OutputError: If Lucene cannot write them.
        """
        documents = [_document(paper) for paper in papers if contents(paper).strip()]
        try:
            done = self._indexer.addRawDocuments(documents) if documents else 0
        except Exception as error:
            raise self._failed(error) from error
        if done != len(documents):
            raise self._failed(None)

    def close(self) -> None:
        """Write what Lucene has buffered; the index is complete after this.

        Raises:
            OutputError: If Lucene cannot write it.
        """
        try:
            self._indexer.close()
        except Exception as error:
            raise self._failed(error) from error
        (self._folder / "write.lock").unlink(missing_ok=True)

    def writer(self) -> Any:
        """Return Lucene's `IndexWriter`, which Anserini's indexer does not publish."""
        signature = "(Ljava/lang/Object;Ljava/lang/String;Z)Ljava/lang/Object;"
        read = static_method("org.apache.commons.lang3.reflect.FieldUtils", "readField", signature)
        return as_type("org.apache.lucene.index.IndexWriter", read(self._indexer, "writer", True))

    def abandon(self) -> None:
        """Close the files of a failed build; they will be removed."""
        with suppress(Exception):
            self._indexer.close()

    def _failed(self, error: Exception | None) -> Exception:
        if error is not None and not is_java_exception(error):
            return error
        reason = str(error).strip().splitlines()[0] if error else "it did not index some papers"
        full = error is None or "space" in reason
        hint = "; is there space on the disk?" if full else "; see: citerec doctor"
        return OutputError(f"Lucene cannot write {self._folder}: {reason}{hint}")


def write_rows(folder: Path, rows: dict[str, int]) -> int:
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
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    return as_type("org.apache.lucene.index.IndexReader", reader)


def year_term(year: int | None) -> str:
    """Return a year as an index term: four digits that sort like years, 0000 if unknown."""
    return f"{year or 0:04d}"


def _document(paper: Paper) -> str:
    fields = {"id": paper.id, CONTENTS: contents(paper), YEAR: year_term(paper.year)}
    return orjson.dumps(fields).decode()
