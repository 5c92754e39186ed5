"""Copies the papers and vectors of an index folder into an OpenSearch index."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from citerec.errors import OpenSearchError
from citerec.folder import DENSE, IndexFolder
from citerec.index.vectors import DenseIndex, open_dense
from citerec.opensearch.bodies import (
    HELD,
    META,
    MOST_ID_BYTES,
    document,
    index_body,
    rows_before,
    state_of,
)
from citerec.opensearch.server import CHUNK, OpenSearchIndex
from citerec.types import Progress, no_progress


def load(
    server: OpenSearchIndex,
    index: IndexFolder,
    *,
    body: Mapping[str, Any] | None = None,
    first: int = 0,
    progress: Progress = no_progress,
) -> int:
    """Write the papers of an index folder into an OpenSearch index, which is created if it does not exist.

    A paper takes the place of one with its id, so that a load may be repeated. Until it is complete, the retrievers
    refuse the index. Vectors of an approximate index are written as it holds them, rounded.

    Args:
        server: The OpenSearch index.
        index: The index folder.
        body: Settings and mapping of a new OpenSearch index; `index_body(index)` by default.
        first: The first row to write: after papers were appended, the new ones are enough, if none was replaced.
        progress: Receives the number of papers that were written.

    Returns:
        How many papers were written.

    Raises:
        OpenSearchError: If the server does not answer or refuses a paper, if the index holds other papers, too, or if
            it does not hold those before `first`.
    """
    if not server.exists():
        server.create(body or index_body(index))
    held = server.mapping().get("_meta", {}).get(META, {})
    if first:
        held = {HELD: _checked_rows(server, index, first, held)}
        server.describe({META: held})  # not complete until the end
    elif held:
        server.describe({})
    total, written = len(index.papers), 0
    for count in server.write(_documents(index, first)):
        written += count
        if written % CHUNK == 0:
            progress("loading", first + written, total)
    progress("loading", first + written, total)
    if (found := server.count()) != total:
        raise OpenSearchError(
            f"OpenSearch at {server.url}, index {server.name!r}: it holds {found:,} papers, {index.path} holds "
            f"{total:,}; load all of them into a new index"
        )
    server.describe({META: state_of(index) | {HELD: rows_before(index, total)}})
    return written


def _checked_rows(
    server: OpenSearchIndex, index: IndexFolder, first: int, held: Mapping[str, str]
) -> str:
    """Return what identifies the rows before `first`, which the server must hold.

    Raises:
        OpenSearchError: If it does not.
    """
    expected = rows_before(index, min(first, len(index.papers)))
    if held.get(HELD) != expected:
        raise OpenSearchError(
            f"OpenSearch at {server.url}, index {server.name!r}: it does not hold the first {first:,} papers of "
            f"{index.path} as they are now (one may have been replaced); load all of them, without `first`"
        )
    return expected


def _documents(index: IndexFolder, first: int) -> Iterator[tuple[str, dict[str, Any]]]:
    vectors = _vectors(index)
    for start in range(first, len(index.papers), CHUNK):
        papers = index.papers.at(range(start, min(start + CHUNK, len(index.papers))))
        rows = np.fromiter(papers, np.int32, len(papers))
        of_rows = vectors.vectors(rows) if vectors else [None] * len(rows)
        for paper, vector in zip(papers.values(), of_rows, strict=True):
            if len(paper.id.encode()) > MOST_ID_BYTES:
                raise OpenSearchError(
                    f"the id {paper.id[:40]!r}... has more than {MOST_ID_BYTES} bytes, which OpenSearch refuses"
                )
            yield paper.id, document(paper, vector)


def _vectors(index: IndexFolder) -> DenseIndex | None:
    if not index.is_embedded:
        return None
    return open_dense(index.path / DENSE, index.manifest.settings["dense"], index.papers.years)
