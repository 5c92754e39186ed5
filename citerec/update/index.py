"""Changes an index: adds, replaces and removes papers; readers see the whole old or the whole new index.

The new index is built next to the old one. Lucene's files, vectors and tokens of the papers that stay are linked or
copied, never computed again; checksums of linked files are those of the old manifest.
"""

import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.arrays import open_array
from citerec.atomic import building
from citerec.corpus.graph import open_graph
from citerec.corpus.outside import OUTSIDE
from citerec.corpus.papers import NO_YEAR, Papers
from citerec.corpus.queries import QUERIES
from citerec.corpus.readers.source import find_source
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import SPLITS as SPLIT_NAMES
from citerec.corpus.splits import read_ids, split_by_year, write_splits
from citerec.embed import carry, carry_models, forget_shards, link
from citerec.errors import CiterecError, ConfigError, IndexReplacedError
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
from citerec.java import leave_thread, start_jvm
from citerec.lock import locked
from citerec.manifest import TOKENS, Manifest, checksums, read_manifest, write_manifest
from citerec.sums import sha256_of
from citerec.text import contents
from citerec.types import Log, Paper, Progress, no_progress
from citerec.update.added import Added, read_added
from citerec.update.citations import rewrite_citations
from citerec.update.delta import Delta, compare
from citerec.update.papers import rewrite_id_rank, rewrite_papers
from citerec.update.tokens import update_tokens
from citerec.update.vectors import VectorConfig, check_encoder, update_vectors
from citerec.update.versions import next_version, prune

_LUCENE_BATCH = 4096  # papers handed to Lucene at once
_RECORDS = 100  # updates that the manifest lists
_QUICK_UP_TO = 20_000  # added papers for which a JVM that starts quickly pays off
BY_YEAR = "by year, 80/10/10"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """How an index is changed."""

    format: str = "auto"
    skip_bad: bool = False  # skip invalid records, and ids to remove that are not in the index
    heap: str | None = None  # memory limit of the JVM, such as "2g"
    vectors: VectorConfig = VectorConfig()
    keep: int | None = (
        None  # earlier versions that are kept; None to keep this one not, and leave the others
    )

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 0:
            raise ConfigError(f"keep must not be negative, got {self.keep}")


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update changed."""

    index: Path
    manifest: Manifest
    counts: dict[str, int]  # added, replaced, unchanged, removed
    unknown: tuple[str, ...] = ()  # ids to remove that are not in the index
    examples: tuple[str, ...] = ()  # the first invalid records, each with file and line
    ignored: tuple[Path, ...] = ()  # files of the corpus folder that hold no records


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
            _replacing(index, config.keep) as folder,
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
            _complete(folder, index, manifest)
            report = replace(report, manifest=manifest)
        if report.manifest != index.manifest:
            forget_shards(path)
    return report


def compact_index(path: Path, config: UpdateConfig) -> UpdateReport:
    """Rewrite the parts of an index in which updates leave traces, as a new build would write them.

    Lucene's segments are merged into one, and splits that are not shipped with the corpus are drawn again from all
    papers, by the protocol. Papers, citations and vectors have no traces.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        IndexLockedError: If another process is changing it.
        IndexReplacedError: If a build put another index in its place meanwhile.
        OutputError: If the folder cannot be written.
    """
    start_jvm(config.heap)
    with locked(path):
        index = open_index(path)
        manifest = index.manifest
        with _replacing(index, config.keep) as folder:
            linked = _link_all(folder, index, but=(f"{BM25}/{ROWS}",))
            rows = open_array(index.bm25 / ROWS, np.int32)
            update_bm25(folder / BM25, [], [], merge_all=True)
            ids = index.papers.ids_at(rows[probes(rows)])
            write_updated_rows(folder / BM25, np.array(rows), ids)
            counts = {**manifest.counts}
            corpus = {**manifest.corpus}
            if manifest.settings["splits"] == BY_YEAR:
                counts |= _draw_splits(folder, index, linked)
                counts.pop("unknown_queries", None)
                corpus.pop("base_sha256", None)
            manifest = replace(
                manifest,
                created=_now(),
                citerec=version("citerec"),
                corpus=corpus,
                counts=counts,
                checksums=checksums(folder, known=linked),
            )
            _complete(folder, index, manifest)
            carry(index.path / TOKENS, folder / TOKENS)
    return UpdateReport(path, manifest, {})


@contextmanager
def _replacing(index: IndexFolder, keep: int | None) -> Generator[Path]:
    """Yield the folder of the new index, which replaces the old one when the block ends without an error.

    Raises:
        IndexReplacedError: If a build put another index in the place of the old one meanwhile.
    """
    kept = next_version(index.path) if keep else None
    with building(index.path, kept=kept) as folder:
        yield folder
        if read_manifest(index.path) != index.manifest:
            raise IndexReplacedError(index.path)
    if keep is not None:
        prune(index.path, keep)


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
        but = (PAPERS, ID_RANK, f"{BM25}/{ROWS}", f"{CITATIONS}/", f"{DENSE}/")
        linked = _link_all(folder, index, but=but)
        with _in_thread(self._write_bm25) as documents:
            rewrite_papers(folder, index, self.added.papers, delta)
            rewrite_id_rank(folder, index, self.added.papers, delta)
            graph, with_citations = rewrite_citations(folder, index, self.added, delta)
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
            created=_now(),
            citerec=version("citerec"),
            corpus=self._corpus(),
            counts=self._counts(counts),
            settings=settings | {"updates": self._updates()},
        )
        return manifest, linked

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
        return [*before, {"when": _now(), **self.delta.counts}][-_RECORDS:]


def _complete(folder: Path, index: IndexFolder, manifest: Manifest) -> None:
    """Write the manifest, and carry the models over: as late as possible, one may have been trained meanwhile."""
    write_manifest(folder, manifest)
    carry_models(index.path, folder)


def _link_all(folder: Path, index: IndexFolder, *, but: tuple[str, ...]) -> dict[str, str]:
    """Link the files of an index into a folder; return their checksums.

    Files that will be written must not be linked: they would change in the old index, too.
    """
    linked = {n: s for n, s in index.manifest.checksums.items() if not n.startswith(but)}
    for name in linked:
        link(index.path / name, folder / name)
    return linked


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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
