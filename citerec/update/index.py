"""Changes an index: adds, replaces and removes papers; readers see the whole old or the whole new index.

The new index is built next to the old one. Lucene's files, vectors and tokens of the papers that stay are linked or
copied, never computed again; checksums of linked files are those of the old manifest.
"""

import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.arrays import open_array
from citerec.corpus.citedby import transposed, write_cited_by
from citerec.corpus.graph import open_graph
from citerec.corpus.lookup import FOLDER as LOOKUP
from citerec.corpus.outside import OUTSIDE
from citerec.corpus.papers import NO_YEAR, Papers
from citerec.corpus.readers.source import find_source
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import QUERIES, read_ids
from citerec.corpus.splits import SPLITS as SPLIT_NAMES
from citerec.embed import forget_shards
from citerec.errors import CiterecError
from citerec.folder import (
    BM25,
    CITATIONS,
    DENSE,
    ID_RANK,
    PAPERS,
    IndexFolder,
    open_index,
    verifying_on_failure,
)
from citerec.index.bm25 import ROWS
from citerec.index.bm25_update import probes, update_bm25, write_updated_rows
from citerec.index.write_postings import add_postings, old_postings
from citerec.java import leave_thread, start_jvm
from citerec.lock import locked
from citerec.manifest import Manifest, checksums, read_manifest
from citerec.matching import write_tables
from citerec.sums import sha256_of
from citerec.text import contents
from citerec.types import Log, Paper, Progress, no_progress
from citerec.update.added import Added, read_added
from citerec.update.citations import rewrite_citations
from citerec.update.delta import Delta, compare
from citerec.update.papers import rewrite_id_rank, rewrite_papers
from citerec.update.replace import (
    UpdateConfig,
    UpdateReport,
    complete,
    link_files,
    now,
    replacing_index,
)
from citerec.update.tokens import update_tokens
from citerec.update.vectors import check_encoder, update_vectors

_LUCENE_BATCH = 4096  # papers handed to Lucene at once
_RECORDS = 100  # updates that the manifest lists
_QUICK_UP_TO = 20_000  # added papers for which a JVM that starts quickly pays off


class _NothingToDoError(CiterecError):
    """Ends an update that changes nothing."""


def update_index(
    path: Path,
    config: UpdateConfig,
    *,
    corpus: Path | None = None,
    removed: Path | None = None,
    progress: Progress | None = None,
    log: Log | None = None,
) -> UpdateReport:
    """Add the papers of a corpus to an index, and remove others from it.

    A paper whose id is in the index replaces that paper.

    Args:
        path: The index.
        config: How it is changed.
        corpus: A file, or a folder of shards; None to add nothing.
        removed: A file of ids, one per line; None to remove nothing.
        progress: Receives the step and how much of it is done.
        log: Receives what is fetched from the hub.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        IndexLockedError: If another process is changing it.
        IndexReplacedError: If a build put another index in its place meanwhile.
        BadInputError: If the corpus or the ids cannot be read, or a record is invalid and `skip_bad` is not set.
        ConfigError: If ids to remove are not in the index and `skip_bad` is not set, or no paper would be left.
        ModelError: If the encoder of the index does not exist any more.
        OutputError: If the folder cannot be written.
    """
    source = find_source(corpus) if corpus else None
    ids = read_ids(removed) if removed else []
    progress = progress or no_progress
    options: dict[str, Any] = {"format_name": config.format, "skip_bad": config.skip_bad}
    read_manifest(path)  # a missing index is no reason to create a lock
    with locked(path):
        index = open_index(path)
        check_encoder(index, config.vectors)
        report = UpdateReport(path, index.manifest, {})
        with (
            suppress(_NothingToDoError),
            replacing_index(index, config.keep) as folder,
            verifying_on_failure(index),
        ):
            with read_added(folder, source, **options, progress=progress) as added:
                delta = compare(index, added, ids, skip_unknown=config.skip_bad)
                report = UpdateReport(
                    path,
                    index.manifest,
                    delta.counts,
                    unknown=delta.unknown,
                    examples=added.examples,
                    ignored=added.ignored,
                )
                if delta.is_empty:
                    raise _NothingToDoError
                update = _Update(folder, index, added, delta, config, progress, log)
                manifest, known = update.write()
            manifest = replace(manifest, checksums=checksums(folder, known=known))
            old = old_postings(index, delta.kept)
            add_postings(folder, manifest.checksums, log, old=old)
            complete(folder, index, manifest)
            report = replace(report, manifest=manifest)
        if report.manifest != index.manifest:
            forget_shards(path)
    return report


@dataclass(frozen=True, slots=True)
class _Update:
    """Writes the parts of a changed index."""

    folder: Path
    index: IndexFolder
    added: Added
    delta: Delta
    config: UpdateConfig
    progress: Progress
    log: Log | None

    def write(self) -> tuple[Manifest, dict[str, str]]:
        """Write all parts; Lucene works in a thread of its own meanwhile.

        Returns:
            The manifest without checksums, and the checksums that are known.
        """
        folder, index, delta = self.folder, self.index, self.delta
        settings = dict(index.manifest.settings)
        start_jvm(self.config.heap, quick=len(delta.order) <= _QUICK_UP_TO)
        but = (PAPERS, ID_RANK, f"{BM25}/{ROWS}", f"{CITATIONS}/", f"{LOOKUP}/", f"{DENSE}/")
        linked = link_files(folder, index, but=but)
        with _in_thread(self._write_bm25) as documents:
            rewrite_papers(folder, index, self.added.papers, delta)
            rewrite_id_rank(folder, index, self.added.papers, delta)
            graph, with_citations = rewrite_citations(folder, index, self.added, delta)
            self._write_derived()
            linked[PAPERS] = sha256_of(folder / PAPERS)
            if index.is_embedded:
                vectors = self.config.vectors
                settings |= update_vectors(folder, index, delta, vectors, self.progress, self.log)
            update_tokens(folder, index, delta, linked[PAPERS])
        counts = {**asdict(graph), "with_citations": with_citations}
        if not (folder / CITATIONS / OUTSIDE).is_file():  # the old index does not know them
            counts["unknown_references"] += index.manifest.counts.get("unknown_references", 0)
        counts["bm25_documents"] = documents.result()
        manifest = replace(
            index.manifest,
            created=now(),
            citerec=version("citerec"),
            corpus=self._corpus(),
            counts=self._counts(counts),
            settings=settings | {"updates": self._updates()},
        )
        return manifest, linked

    def _write_derived(self) -> None:
        """Write the transpose of the new graph, and the tables of the new papers."""
        folder, papers, delta = self.folder / CITATIONS, Papers(self.folder / PAPERS), self.delta
        write_cited_by(folder, transposed(open_graph(folder, delta.papers), papers.years))
        write_tables(self.folder, papers)

    def _write_bm25(self) -> int:
        """Change Lucene's index; return the number of its documents."""
        index, delta = self.index, self.delta
        old = open_array(index.bm25 / ROWS, np.int32)
        added: list[int] = []
        gone = index.papers.ids_at(np.flatnonzero(~delta.kept))
        update_bm25(self.folder / BM25, gone, self._batches(added))
        stay = delta.new_row[old[delta.kept[old]]]
        rows = np.concatenate([stay, np.array(added, np.int32)])
        write_updated_rows(self.folder / BM25, rows, self._ids_at(rows[probes(rows)]))
        return len(rows)

    def _ids_at(self, rows: npt.NDArray[np.int32]) -> list[str]:
        """Return the ids of some new rows; the new papers are being written meanwhile."""
        delta, added = self.delta, self.added.papers
        stay, first = np.flatnonzero(delta.kept), delta.first_added
        return [
            added.ids_at([int(delta.order[row - first])])[0]
            if added and row >= first
            else self.index.papers.ids_at([int(stay[row])])[0]
            for row in rows.tolist()
        ]

    def _batches(self, added: list[int]) -> Iterator[list[Paper]]:
        """Yield the added papers, and append the rows of those with text to `added`."""
        papers, delta = self.added.papers, self.delta
        for start in range(0, len(delta.order) if papers else 0, _LUCENE_BATCH):
            assert papers is not None
            chosen = delta.order[start : start + _LUCENE_BATCH].tolist()
            by_row = papers.at(chosen)
            batch = [by_row[row] for row in chosen]
            first = delta.first_added + start
            added += [first + i for i, paper in enumerate(batch) if contents(paper).strip()]
            yield batch
            self.progress("indexing", start + len(batch), len(delta.order))

    def _corpus(self) -> dict[str, Any]:
        """Return the manifest's record of the corpus; the sha256 is one of the whole history."""
        corpus, delta = self.index.manifest.corpus, self.delta
        gone = self.index.papers.ids_at(np.flatnonzero(delta.new_row < 0))
        history = "\n".join([corpus["sha256"], self.added.sha256, *sorted(gone)])
        digest = hashlib.sha256(history.encode(errors="surrogatepass")).hexdigest()
        files = int(corpus.get("files", 1)) + self.added.files
        lineage = self.index.manifest.lineage
        return {**corpus, "files": files, "sha256": digest, "base_sha256": lineage}

    def _counts(self, new: dict[str, int]) -> dict[str, int]:
        papers, before = Papers(self.folder / PAPERS), self.index.manifest.counts
        counts = {**before, **new, "papers": len(papers)}
        counts["empty_titles"] = int(np.count_nonzero(~papers.has_text("title")))
        counts["with_abstract"] = int(np.count_nonzero(papers.has_abstract))
        counts["without_year"] = int(np.count_nonzero(papers.years == NO_YEAR))
        for name, count in self.added.counts.items():
            counts[name] = before.get(name, 0) + count
        if not (self.folder / SPLITS / QUERIES).is_file():
            files = [self.folder / SPLITS / f"{name}.ids" for name in SPLIT_NAMES]
            named = [docid for file in files for docid in read_ids(file)]
            counts["unknown_queries"] = int((papers.rows_of(named) < 0).sum())
        return counts

    def _updates(self) -> list[dict[str, Any]]:
        """Return the last updates of the index, the newest last."""
        before = self.index.manifest.settings.get("updates", [])
        return [*before, {"when": now(), **self.delta.counts}][-_RECORDS:]


@contextmanager
def _in_thread(work: Any) -> Generator[Future[int]]:
    """Run a function of Java in a thread while the block runs; both end before this returns."""

    def run() -> int:
        try:
            return work()
        finally:
            leave_thread()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        yield future
        future.result()
