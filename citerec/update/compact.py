"""Rewrites what updates leave in an index, as a new build would write it."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from citerec.arrays import open_array
from citerec.corpus.citedby import transpose_of, write_cited_by
from citerec.corpus.graph import open_graph
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import SPLITS as SPLIT_NAMES
from citerec.corpus.splits import split_by_year, write_splits
from citerec.embed import carry
from citerec.folder import BM25, CITATIONS, IndexFolder, open_index, verifying_on_failure
from citerec.index.bm25 import ROWS
from citerec.index.bm25_update import probes, update_bm25, write_updated_rows
from citerec.index.write_postings import add_postings, old_postings
from citerec.java import start_jvm
from citerec.lock import locked
from citerec.manifest import TOKENS, checksums, read_manifest
from citerec.matching import write_tables
from citerec.update.replace import (
    UpdateConfig,
    UpdateReport,
    complete,
    link_files,
    now,
    replacing_index,
)

BY_YEAR = "by year, 80/10/10"


def compact_index(path: Path, config: UpdateConfig) -> UpdateReport:
    """Rewrite the parts of an index in which updates leave traces, as a new build would write them.

    Lucene's segments are merged into one, and splits that are not shipped with the corpus are drawn again from all
    papers, by the protocol. Papers, citations and vectors have no traces; tables and rounded vectors that an earlier
    version did not build are added.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        IndexLockedError: If another process is changing it.
        IndexReplacedError: If a build put another index in its place meanwhile.
        OutputError: If the folder cannot be written.
    """
    read_manifest(path)  # a missing index is no reason to create a lock
    start_jvm(config.heap)
    with locked(path):
        index = open_index(path)
        manifest = index.manifest
        with replacing_index(index, config.keep) as folder:
            linked = link_files(folder, index, but=(f"{BM25}/{ROWS}",))
            rows = open_array(index.bm25 / ROWS, np.int32)
            update_bm25(folder / BM25, [], [], merge_all=True)
            ids = index.papers.ids_at(rows[probes(rows)])
            write_updated_rows(folder / BM25, np.array(rows), ids)
            with verifying_on_failure(index):
                settings = {**manifest.settings, **_add_missing(folder, index)}
            counts = {**manifest.counts}
            corpus = {**manifest.corpus}
            if manifest.settings["splits"] == BY_YEAR:
                counts |= _draw_splits(folder, index, linked)
                counts.pop("unknown_queries", None)
                corpus.pop("base_sha256", None)
            manifest = replace(
                manifest,
                created=now(),
                citerec=version("citerec"),
                corpus=corpus,
                counts=counts,
                settings=settings,
                checksums=checksums(folder, known=linked),
            )
            old = old_postings(index, np.ones(len(index.papers), np.bool_))
            add_postings(folder, manifest.checksums, old=old)
            complete(folder, index, manifest)
            carry(index.path / TOKENS, folder / TOKENS)
    return UpdateReport(path, manifest, {})


def _add_missing(folder: Path, index: IndexFolder) -> dict[str, Any]:
    """Write what an earlier version built the index without; return the changed settings.

    These are the look-up tables and the citing papers.
    """
    if index.papers.lookup is None:
        write_tables(folder, index.papers)
    if index.graph.transpose is None:
        write_cited_by(folder / CITATIONS, transpose_of(index.graph, index.papers.years))
    return {}


def _draw_splits(folder: Path, index: IndexFolder, linked: dict[str, str]) -> dict[str, int]:
    """Draw the splits by the protocol; return their counts."""
    papers = index.papers
    graph = open_graph(index.path / CITATIONS, len(papers))
    splits = split_by_year(papers.ids.tolist(), papers.years, graph)
    for name in SPLIT_NAMES:
        linked.pop(f"{SPLITS}/{name}.ids", None)
        (folder / SPLITS / f"{name}.ids").unlink(missing_ok=True)  # it is a link
    write_splits(folder / SPLITS, splits)
    return {f"{name}_queries": len(ids) for name, ids in splits.items()}
