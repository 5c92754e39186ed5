"""Builds an index folder from a corpus, or a new one from an old one and what is added and removed.

The corpus is read once: papers, citations and Lucene's index are written in parallel. An index that grows is built anew
beside the old one, from its papers, so that it is what a build of all papers gives; only vectors of texts that the old
index holds are taken from it.
"""

import hashlib
from collections.abc import Iterator, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from os import fsencode
from os.path import realpath
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from citerec.config import DenseKind
from citerec.corpus.collector import Collector, bytes_read
from citerec.corpus.graph import open_graph, read_references, write_graph, write_references
from citerec.corpus.papers import NO_YEAR, Papers, write_papers
from citerec.corpus.readers import (
    Located,
    Source,
    detect_format,
    find_source,
    read_papers,
    sha256_of,
)
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import (
    QUERIES,
    read_ids,
    shipped_queries,
    shipped_splits,
    split_by_year,
    write_queries,
    write_splits,
)
from citerec.corpus.splits import SPLITS as SPLIT_NAMES
from citerec.embed import EmbedConfig, carry_models, embed, forget_vectors
from citerec.encode.spec import EncodeConfig
from citerec.errors import ConfigError, EncoderMismatchError, IndexExistsError, shown
from citerec.folder import (
    BM25,
    CITATIONS,
    ID_RANK,
    NAME,
    PAPERS,
    IndexFolder,
    Manifest,
    checksums,
    open_index,
    write_manifest,
)
from citerec.index.bm25 import Bm25Builder
from citerec.io import building, check_writable, locked
from citerec.java import start_jvm
from citerec.matching import write_tables
from citerec.types import Log, Paper, Progress, no_log, no_progress

if TYPE_CHECKING:
    from citerec.encode.encoder import Encoder

BATCH = 4096  # papers handed to Lucene, or read from an old index, at once


class BuildConfig(EmbedConfig):
    """How a corpus is read, and what its index contains."""

    format: str = Field(
        default="auto",
        description="auto recognises the format by content; or the name of one, such as canonical, bibtex or "
        "ris, or of a reader that a package adds.",
    )
    force: bool = Field(default=False, description="Replace an existing index.")
    skip_bad: bool = Field(
        default=False, description="Skip invalid records, and unknown ids of --delete."
    )
    heap: str | None = Field(default=None, description="Maximum memory of the JVM, such as 2g.")
    encoder: str | None = None  # name, hub id or folder; None for an index without vectors
    encode: EncodeConfig = EncodeConfig()


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build indexed and what it skipped."""

    index: Path
    manifest: Manifest
    examples: tuple[str, ...]  # the first faults, each with file and line
    ignored: tuple[Path, ...]  # files of the corpus folder that hold no records
    changes: dict[str, int] = field(default_factory=dict[str, int])  # added, replaced, removed


@dataclass(frozen=True, slots=True)
class _Old:
    """The index that a change starts from."""

    index: IndexFolder
    removed: Set[str]  # ids of papers that are not taken over

    def papers(self, but: Set[str]) -> Iterator[Located]:
        """Yield the papers that stay, except for those with the ids `but`, with all their references."""
        index, place = self.index, self.index.path / PAPERS
        stated = read_references(index.path / CITATIONS)
        citing, references = next(stated, (-1, []))
        for start in range(0, len(index.papers), BATCH):
            rows = range(start, min(start + BATCH, len(index.papers)))
            for row, paper in index.papers.at(rows).items():
                cited: list[str] = []
                if row == citing:
                    cited = references
                    citing, references = next(stated, (-1, []))
                if paper.id not in self.removed and paper.id not in but:
                    yield Located(place, row + 1, replace(paper, citations=tuple(cited)))


def build_index(
    corpus: Path,
    index: Path,
    config: BuildConfig,
    progress: Progress | None = None,
    log: Log | None = None,
) -> BuildReport:
    """Build an index folder from a corpus; it appears complete or not at all.

    Args:
        corpus: A file, or a folder of shards.
        index: The folder to create.
        config: How the corpus is read and indexed.
        progress: Receives the stage of the build and how much of it is done.
        log: Receives what is fetched from the hub, before the download starts, and what the corpus lacks.

    Raises:
        IndexExistsError: If the folder exists and `config.force` is not set.
        IndexLockedError: If another process is building it.
        BadInputError: If the corpus cannot be read, or a record is invalid and `skip_bad` is not set.
        ModelError: If there is no such encoder.
        OutputError: If the folder cannot be written.
    """
    source = check_inputs(corpus, index, force=config.force)
    encoder = None
    if config.encoder:
        from citerec.encode.encoder import open_encoder

        encoder = open_encoder(config.encoder, config.encode, base=index, log=log)
    with building(index) as folder, locked(index):
        check_target(index, force=config.force)  # another build may have finished in between
        report = _build(folder, index, source, None, encoder, config, progress, log)
    forget_vectors(index)
    return report


def grow_index(
    index: Path,
    config: BuildConfig,
    *,
    corpus: Path | None = None,
    removed: Path | None = None,
    progress: Progress | None = None,
    log: Log | None = None,
) -> BuildReport:
    """Add the papers of a corpus to an index, and remove others: the new index replaces the old one at once.

    A paper whose id is in the index replaces that paper. The splits stay, so that models that were trained on them can
    be evaluated.

    Args:
        index: The index.
        config: How the corpus is read; the encoder, if named, must be that of the index.
        corpus: A file, or a folder of shards; None to add nothing.
        removed: A file of ids, one per line; None to remove nothing.
        progress: As in `build_index`.
        log: As in `build_index`.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        ConfigError: If ids to remove are not in the index and `skip_bad` is not set, or no paper would be left.
        CiterecError: As `build_index` raises.
    """
    source = find_source(corpus) if corpus else None
    ids = read_ids(removed) if removed else []
    open_index(index)  # before anything is locked or written
    with building(index) as folder, locked(index):
        old = open_index(index)
        rows = old.papers.rows_of(ids)
        unknown = [docid for docid, row in zip(ids, rows, strict=True) if row < 0]
        if unknown and not config.skip_bad:
            raise ConfigError(
                f"{len(unknown):,} ids to delete are not in {index}: {shown(unknown[0])} is the first; "
                "nothing was changed (--skip-bad skips them)"
            )
        if unknown and log:
            log(f"{len(unknown):,} ids of --delete are not in the index")
        encoder = _encoder_of(old, config, log)
        removal = _Old(old, {*ids})
        report = _build(folder, index, source, removal, encoder, config, progress, log)
    forget_vectors(index)
    return report


def check_inputs(corpus: Path, index: Path, *, force: bool) -> Source:
    """Check the inputs of a build before anything is read, fetched or created; return the files of the corpus."""
    check_target(index, force=force)
    source = find_source(corpus)
    check_splits(source.folder)
    check_writable(index)
    return source


def check_splits(folder: Path) -> None:
    """Check the splits, or the queries with their qrels, that are shipped with a corpus; raise `BadInputError`."""
    if shipped_queries(folder) is None:
        shipped_splits(folder)


def check_target(index: Path, *, force: bool) -> None:
    """Refuse to overwrite `index`, unless it is an index and `force` is set."""
    try:
        str(index).encode()
        if not index.exists() or (index.is_dir() and not any(index.iterdir())):
            return
        parts = [part for part in (PAPERS, CITATIONS, BM25) if (index / part).exists()]
    except UnicodeEncodeError as error:
        raise ConfigError(f"{str(index)!r} is not UTF-8; name another folder") from error
    except OSError as error:
        raise ConfigError(f"{index} cannot be made: {error.strerror}") from error
    if not parts or not (index / NAME).is_file():  # other programs use this file name, too
        raise ConfigError(
            f"{index} already exists and is not an index; it was not changed; name another folder"
        )
    if not force:
        raise IndexExistsError(index)


def _encoder_of(index: IndexFolder, config: BuildConfig, log: Log | None) -> "Encoder | None":
    """Open the encoder of an index that grows; None if it has no vectors."""
    if not index.is_embedded:
        if config.encoder:
            raise ConfigError(
                f"{index.path} has no vectors; add papers without --encoder, or embed all of them: "
                f"citerec encode --index {index.path} --encoder {config.encoder}"
            )
        return None
    from citerec.encode.encoder import open_encoder, reopen

    fingerprint = index.encoder
    if config.encoder is None:
        return reopen(fingerprint, index.path, config.encode, log=log)
    encoder = open_encoder(config.encoder, config.encode, base=index.path, log=log)
    if encoder.fingerprint.key != fingerprint.key:
        name = encoder.fingerprint.name
        raise EncoderMismatchError(index.path, found=name, expected=str(fingerprint))
    return encoder


def _build(
    folder: Path,
    index: Path,
    source: Source | None,
    old: _Old | None,
    encoder: "Encoder | None",
    config: BuildConfig,
    progress: Progress | None,
    log: Log | None,
) -> BuildReport:
    """Build an index in a folder, from the papers of a corpus and then those of an old index that stay."""
    progress, log = progress or no_progress, log or no_log
    start_jvm(config.heap)
    collector, format_name = Collector(config.skip_bad), config.format
    records: Iterator[Located] = iter(())
    if source:
        if format_name == "auto":
            format_name = detect_format(source, skip_bad=config.skip_bad)
        records = read_papers(source, format_name, bytes_read(source, progress), log, folder)
    with Bm25Builder(folder) as bm25:
        tokens, added = _write_papers(folder, records, old, collector, bm25)
        if not collector.rows:
            of = f"{source.path} holds no valid paper" if source else f"{index} would have no paper"
            raise ConfigError(f"{of}; no index was built")
        progress("finishing", 0, 2)
        _write_derived(folder, collector, source, old)
        progress("finishing", 1, 2)
        collector.counts["bm25_tokens"] = tokens.result()
        progress("finishing", 2, 2)
    vectors: dict[str, Any] = {"encoder": None}
    if encoder:
        if old:  # vectors are stored as in the old index
            kind = DenseKind(old.index.manifest.settings["dense"]["kind"])
            config = config.replace(dense=config.dense.replace(kind=kind))
        vectors = embed(folder, index, encoder, config, progress, old.index if old else None)
    carry_models(index, folder)
    manifest = _manifest(folder, index, source, format_name, old, collector, vectors)
    write_manifest(folder, manifest)
    changes: dict[str, int] = {}
    if old:
        before = old.index.papers.rows_of(list(collector.rows)[:added]) if added else np.zeros(0)
        replaced = int(np.count_nonzero(before >= 0))
        removed = len(old.index.papers) - (len(collector.rows) - added) - replaced
        changes = {"added": added - replaced, "replaced": replaced, "removed": removed}
    ignored = source.ignored if source else ()
    return BuildReport(index, manifest, tuple(collector.examples), ignored, changes)


def _write_papers(
    folder: Path,
    records: Iterator[Located],
    old: _Old | None,
    collector: Collector,
    bm25: Bm25Builder,
) -> tuple["Future[int]", int]:
    """Stream the papers into papers.arrow, the graph and Lucene; return Lucene's end, and how many are of `records`."""
    with (
        write_references(folder / CITATIONS) as add_references,
        write_papers(folder / PAPERS) as add_paper,
    ):
        batch: list[Paper] = []
        years = list[int]()
        added = 0

        def write(located: Located) -> None:
            if (paper := collector.add(located)) is None:
                return
            add_paper(paper)
            add_references(len(years), paper.citations)
            years.append(paper.year or NO_YEAR)
            batch.append(paper)
            if len(batch) == BATCH:
                bm25.add(batch)
                batch.clear()

        for located in records:
            write(located)
        added = len(collector.rows)
        for located in old.papers({*collector.rows}) if old else ():
            write(located)
        bm25.add(batch)
        finished = bm25.finish()
    collector.counts.update(write_graph(folder / CITATIONS, collector.rows, years))
    return finished, added


def _write_derived(
    folder: Path, collector: Collector, source: Source | None, old: _Old | None
) -> None:
    """Write what depends on all papers: the order of docids, citing papers, tables, the splits."""
    ids = list(collector.rows)
    rank = np.empty(len(ids), np.int32)
    rank[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids), dtype=np.int32)
    np.save(folder / ID_RANK, rank)
    papers, graph = Papers(folder / PAPERS), open_graph(folder / CITATIONS, len(ids))
    write_tables(folder, papers)
    if old:
        copytree(old.index.splits, folder / SPLITS)
        splits = {name: read_ids(folder / SPLITS / f"{name}.ids") for name in SPLIT_NAMES}
        queries = (folder / SPLITS / QUERIES).is_file()
        shipped = not old.index.manifest.settings["splits"].startswith("by year")
    else:
        assert source
        stored = shipped_queries(source.folder)
        splits = stored.splits if stored else shipped_splits(source.folder)
        queries, shipped = stored is not None, splits is not None
        splits = splits or split_by_year(ids, papers.years, graph)
        if stored:
            write_queries(folder / SPLITS, stored)
        write_splits(folder / SPLITS, splits)
    collector.counts["shipped_splits"] = shipped
    if (shipped or old) and not queries:
        named = chain.from_iterable(splits.values())
        collector.counts["unknown_queries"] = sum(docid not in collector.rows for docid in named)
    collector.counts.update({f"{name}_queries": len(split) for name, split in splits.items()})


def _manifest(
    folder: Path,
    index: Path,
    source: Source | None,
    format_name: str,
    old: _Old | None,
    collector: Collector,
    vectors: dict[str, Any],
) -> Manifest:
    shipped = collector.counts.pop("shipped_splits")
    sha256 = sha256_of(source) if source else ""
    corpus: dict[str, Any] = {"files": len(source.files) if source else 0, "sha256": sha256}
    if old:
        before = old.index.manifest
        history = "\n".join([before.corpus["sha256"], sha256, *sorted(old.removed)])
        digest = hashlib.sha256(history.encode(errors="surrogatepass")).hexdigest()
        corpus["files"] += before.corpus["files"]
        corpus = {**before.corpus, **corpus, "sha256": digest, "base_sha256": before.lineage}
    elif source:
        corpus["path"] = fsencode(source.path).decode(errors="replace")
        corpus["format"] = format_name
    return Manifest(
        name=Path(realpath(index)).name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        citerec=version("citerec"),
        corpus=corpus,
        counts=dict(collector.counts),
        settings={
            "bm25": {"analysis": "english (Porter, stop words)", "text": "title + abstract"},
            "splits": "shipped" if shipped else "by year, 80/10/10",
            **vectors,
        },
        checksums=checksums(folder),
    )
