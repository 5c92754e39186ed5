"""Checks every number and text of an index that somebody else may have made: searches read them unchecked.

Checksums find damage, not attacks. A check takes about as long as the checksums, so it is made once for each content.
"""

from pathlib import Path

import numpy as np

from citerec.errors import BadInputError
from citerec.files.arrays import Rows, check_ends, check_rows, open_array
from citerec.index.contexts import Contexts
from citerec.index.graph import CITED_BY, Graph
from citerec.index.papers import Lookup, Papers, check_table
from citerec.index.splits import FOLDER, SPLITS, open_queries, read_ids
from citerec.types import Json

BLOCK = 4096  # vectors that are read at once
LARGEST = 1e6  # a number in a vector; squares of larger ones may exceed float32


def check_content(
    folder: Path,
    papers: Papers,
    graph: Graph,
    contexts: Contexts | None,
    settings: Json,
) -> None:
    """Check what `open_index` mapped, and the files that are opened later; OSError or ValueError if a value is wrong.

    `settings` are those of the manifest.
    """
    count = len(papers)
    check_table(papers.table)
    if graph.transpose:
        check_ends(CITED_BY[0], graph.transpose.indptr, len(graph.indices))
        check_rows(CITED_BY[1], graph.transpose.indices, count)
    for name in Lookup.__dataclass_fields__:
        check_rows(f"lookup/{name}", getattr(papers.lookup, name).rows, count)
    _check_searched(folder, count, settings.get("dense"))
    if contexts:
        check_table(contexts.table)
        _check_searched(contexts.path, len(contexts), settings.get("contexts"))
    splits = folder / FOLDER
    try:
        open_queries(splits)
        for name in SPLITS:
            read_ids(splits / f"{name}.ids")
    except (BadInputError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{FOLDER}: {error}") from error


def _check_searched(folder: Path, count: int, dense: Json | None) -> None:
    """Check the postings and vectors of so many texts."""
    rows: Rows = open_array(folder / "bm25" / "rows.npy", np.int32)
    check_rows("bm25/rows.npy", rows, count, distinct=True)
    postings = folder / "postings"
    check_rows("docs.npy", open_array(postings / "docs.npy", np.int32), len(rows))
    freqs = open_array(postings / "freqs.npy", np.uint8, np.int32)
    if len(freqs) and freqs.min() < 1:
        raise ValueError("freqs.npy has a frequency below 1")
    if dense:
        path = folder / "dense" / "vectors.faiss"
        shape = (int(dense["papers"]), int(dense["dim"]))
        # behind the exact vectors, faiss writes a number of 4 bytes
        first = path.stat().st_size - 4 - 4 * shape[0] * shape[1]
        vectors = np.memmap(path, np.float32, "r", first, shape)
        for start in range(0, len(vectors), BLOCK):
            if not np.abs(vectors[start : start + BLOCK]).max(initial=0) < LARGEST:
                raise ValueError("vectors.faiss has a number that no encoder gives")
