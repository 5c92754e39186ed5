"""Builds the lexical part of an index: Lucene's index as Anserini writes it, and the postings that searches read.

Lucene works in a thread of its own, so that the corpus is read and the other parts are written meanwhile. One thread
adds the papers and only neighbouring segments are merged: so Lucene's documents are the papers with text, in the order
of their rows.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from types import TracebackType
from typing import Any, Self

import numpy as np

from citerec.errors import OutputError
from citerec.folder import BM25
from citerec.index.analysis import analyzer
from citerec.index.lucene import DocumentLoop, open_directory, open_reader, read_postings
from citerec.index.postings import FOLDER as POSTINGS
from citerec.index.postings import write_postings
from citerec.java import as_type, is_java_exception, java_class, leave_thread
from citerec.text import contents
from citerec.types import Paper

ROWS = "rows.npy"  # int32, shape (Lucene documents,): the row of each Lucene document
_BUFFER_MB = 1024.0  # memory for documents that are not written yet: half of Java's heap by default
_QUEUE = 2  # batches that may wait for Lucene


class Bm25Builder:
    """Adds papers to the lexical part of an index; as a context, it closes Lucene's files at its end."""

    def __init__(self, index: Path) -> None:
        """Open Lucene's writer in the folder of an index."""
        self._index = index
        analysis = as_type("org.apache.lucene.analysis.Analyzer", analyzer())
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(analysis)
        config.setRAMBufferSizeMB(_BUFFER_MB)
        config.setUseCompoundFile(False)
        policy = java_class("org.apache.lucene.index.LogDocMergePolicy")()
        config.setMergePolicy(as_type("org.apache.lucene.index.MergePolicy", policy))
        directory = open_directory(index / BM25)
        self._writer: Any = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
        self._loop = DocumentLoop(self._writer)
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._rows: list[int] = []
        self._papers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._pool.submit(self._abandon)
        self._pool.submit(leave_thread)
        self._pool.shutdown()

    def add(self, papers: Sequence[Paper]) -> None:
        """Add the papers of the next rows; those without text get no document.

        Raises:
            OutputError: If Lucene could not write an earlier batch.
        """
        documents: list[tuple[str, str]] = []
        for row, paper in enumerate(papers, self._papers):
            if (text := contents(paper)).strip():
                documents.append((paper.id, text))
                self._rows.append(row)
        self._papers += len(papers)
        if len(self._waiting) == _QUEUE:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._add, documents))

    def finish(self) -> "Future[int]":
        """Start to complete Lucene's index and to store its postings; the result is the number of tokens."""
        for done in self._waiting:
            done.result()
        return self._pool.submit(self._finish)

    def _add(self, documents: list[tuple[str, str]]) -> None:
        try:
            self._loop.add(documents)
        except Exception as error:
            raise self._failed(error) from error

    def _finish(self) -> int:
        folder = self._index / BM25
        try:
            self._writer.forceMerge(1)
            self._writer.close()
            (folder / "write.lock").unlink(missing_ok=True)
            np.save(folder / ROWS, np.array(self._rows, np.int32))
            temporary = self._index / "postings.tmp"
            temporary.mkdir()
            reader = open_reader(folder)
            try:
                lucene = read_postings(reader, temporary)
                return write_postings(self._index / POSTINGS, lucene, len(self._rows))
            finally:
                reader.close()
                rmtree(temporary)
        except Exception as error:
            raise self._failed(error) from error

    def _abandon(self) -> None:
        with suppress(Exception):
            self._writer.rollback()

    def _failed(self, error: Exception) -> Exception:
        if not is_java_exception(error):
            return error
        reason = str(error).strip().splitlines()[0]
        hint = "is there space on the disk?" if "space" in reason else "see: citerec doctor"
        return OutputError(f"Lucene cannot write {self._index / BM25}: {reason}; {hint}")
