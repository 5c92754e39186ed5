"""Builds an index folder from a corpus: reads the corpus once and writes papers and Lucene's index in parallel."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from os import cpu_count, fsencode
from os.path import realpath
from pathlib import Path
from typing import Any

import numpy as np

from citerec.atomic import building, check_name, check_writable
from citerec.config import DenseIndexConfig
from citerec.corpus.citedby import transposed, write_cited_by
from citerec.corpus.collector import Collector, bytes_read
from citerec.corpus.graph import open_graph, spill_references, write_graph
from citerec.corpus.papers import Papers, write_papers
from citerec.corpus.readers import Located, detect_format, read_papers
from citerec.corpus.readers.source import Source, find_source, sha256_of
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import (
    shipped_queries,
    shipped_splits,
    split_by_year,
    write_queries,
    write_splits,
)
from citerec.embed import SHARD, EmbedConfig, carry_models, embed, forget_shards
from citerec.encode.config import EncodeConfig
from citerec.errors import ConfigError, IndexExistsError
from citerec.folder import BM25, CITATIONS, ID_RANK, PAPERS
from citerec.index.bm25_thread import Bm25Thread, bm25_thread
from citerec.java import PATIENT, start_jvm
from citerec.manifest import NAME, Manifest, checksums, write_manifest
from citerec.matching import write_tables
from citerec.shards import ShardEncoder
from citerec.types import Log, Paper, Progress, no_log, no_progress

LUCENE_BATCH = 4096  # papers handed to Lucene at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildConfig:
    """How a corpus is read, and what its index contains."""

    format: str = "auto"
    force: bool = False  # replace an existing index
    skip_bad: bool = False  # skip invalid records
    threads: int = 0  # for Lucene; 0 for one per processor
    heap: str | None = None  # memory limit of the JVM, such as "2g"
    encoder: str | None = None  # name, hub id or folder; None for an index without vectors
    encode: EncodeConfig = EncodeConfig()
    dense: DenseIndexConfig = DenseIndexConfig()
    shard: int = SHARD  # papers per shard; a killed build loses the vectors of at most one shard
    resume: bool = False  # reuse the shards of vectors of an interrupted build
    elsewhere: ShardEncoder | None = None  # encodes the shards; None for this process

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise ConfigError(f"threads must not be negative, got {self.threads}")


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build indexed and what it skipped."""

    index: Path
    manifest: Manifest
    examples: tuple[str, ...]  # the first faults, each with file and line
    ignored: tuple[Path, ...]  # files of the corpus folder that hold no records


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
        BadInputError: If the corpus cannot be read, or a record is invalid and `skip_bad` is not set.
        ModelError: If there is no such encoder.
        OutputError: If the folder cannot be written.
    """
    source = check_inputs(corpus, index, force=config.force)
    progress = progress or no_progress
    name = config.format
    if name == "auto":
        name = detect_format(source, skip_bad=config.skip_bad)
    encoder = None
    if config.encoder:
        from citerec.encode.opening import open_encoder

        encoder = open_encoder(config.encoder, config.encode, base=index, log=log)
    start_jvm(config.heap, more=PATIENT)
    with building(index) as folder:
        collector = Collector(config.skip_bad)
        records = read_papers(source, name, bytes_read(source, progress), log or no_log, folder)
        with bm25_thread(folder, config.threads or cpu_count() or 1) as bm25:
            _read(folder, records, collector, bm25, corpus=source.path)
            bm25.finish(collector.rows, log)
            _finish(folder, source, collector, progress)
            documents, sums = bm25.result()
        collector.counts["bm25_documents"] = documents
        vectors: dict[str, Any] = {"encoder": None}
        if encoder:
            how = EmbedConfig(
                dense=config.dense,
                resume=config.resume,
                shard=config.shard,
                elsewhere=config.elsewhere,
            )
            vectors = embed(folder, index, encoder, how, progress)
        carry_models(index, folder)
        sums = checksums(folder, known=sums)
        name_of_index = Path(realpath(index)).name
        manifest = _manifest(source, name, name_of_index, collector, vectors, sums)
        write_manifest(folder, manifest)
        check_target(index, force=config.force)  # another build may have finished in between
    if encoder:
        forget_shards(index)
    return BuildReport(index, manifest, tuple(collector.examples), source.ignored)


def check_inputs(corpus: Path, index: Path, *, force: bool) -> Source:
    """Check the inputs of a build before anything is read, fetched or created; return the files of the corpus.

    Raises:
        IndexExistsError, ConfigError: As for `check_target`.
        BadInputError: If there is no corpus, or its splits or queries cannot be read or are not complete.
        OutputError: If the folder cannot be created.
    """
    check_target(index, force=force)
    source = find_source(corpus)
    check_splits(source.folder)
    check_writable(index)
    return source


def check_splits(folder: Path) -> None:
    """Check the splits, or the queries with their qrels, that are shipped with a corpus.

    Raises:
        BadInputError: If they cannot be read or are not complete.
    """
    if shipped_queries(folder) is None:
        shipped_splits(folder)


def check_target(index: Path, *, force: bool) -> None:
    """Refuse to overwrite `index`, unless it is an index and `force` is set.

    Raises:
        IndexExistsError: If `index` is an index and `force` is not set.
        ConfigError: If `index` exists and is something else, or its name is not valid.
        OutputError: If the name is too long.
    """
    try:
        str(index).encode()
        check_name(index)
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


def _read(
    folder: Path,
    records: Iterator[Located],
    collector: Collector,
    bm25: Bm25Thread,
    *,
    corpus: Path,
) -> None:
    """Stream the records into papers.arrow, the graph and Lucene."""
    with (
        spill_references(folder / "references.tmp") as spill,
        write_papers(folder / PAPERS) as papers,
    ):
        batch: list[Paper] = []
        for located in records:
            if (paper := collector.add(located)) is None:
                continue
            papers.add(paper)
            spill.add(len(collector.rows) - 1, paper.citations)
            batch.append(paper)
            if len(batch) == LUCENE_BATCH:
                bm25.add(batch)
                batch = []
        if not collector.rows:
            raise ConfigError(f"{corpus} holds no valid paper; no index was built")
        bm25.add(batch)
        spill.close()
        graph = write_graph(folder / CITATIONS, spill, collector.rows)
    collector.counts.update(asdict(graph))


def _finish(folder: Path, source: Source, collector: Collector, progress: Progress) -> None:
    """Write what depends on all papers, except for Lucene's part: the order of docids, tables, the splits."""
    progress("finishing", 0, 3)
    ids = list(collector.rows)
    rank = np.empty(len(ids), np.int32)
    rank[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids), dtype=np.int32)
    np.save(folder / ID_RANK, rank)
    progress("finishing", 1, 3)
    papers, graph = Papers(folder / PAPERS), open_graph(folder / CITATIONS, len(ids))
    years = papers.years
    write_cited_by(folder / CITATIONS, transposed(graph, years))
    write_tables(folder, papers)
    progress("finishing", 2, 3)
    queries = shipped_queries(source.folder)
    splits = queries.splits if queries else shipped_splits(source.folder)
    if queries:
        write_queries(folder / SPLITS, queries)
    collector.counts["shipped_splits"] = splits is not None
    if splits and not queries:
        named = [docid for split in splits.values() for docid in split]
        collector.counts["unknown_queries"] = sum(docid not in collector.rows for docid in named)
    if splits is None:
        splits = split_by_year(ids, years, graph)
    write_splits(folder / SPLITS, splits)
    collector.counts.update({f"{name}_queries": len(split) for name, split in splits.items()})
    progress("finishing", 3, 3)


def _manifest(
    source: Source,
    format_name: str,
    name: str,
    collector: Collector,
    vectors: dict[str, Any],
    sums: dict[str, str],
) -> Manifest:
    shipped = collector.counts.pop("shipped_splits")
    return Manifest(
        name=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        citerec=version("citerec"),
        corpus={
            "path": fsencode(source.path).decode(errors="replace"),
            "format": format_name,
            "files": len(source.files),
            "sha256": sha256_of(source),
        },
        counts=dict(collector.counts),
        settings={
            "bm25": {"analysis": "english (Porter, stop words)", "text": "title + abstract"},
            "splits": "shipped" if shipped else "by year, 80/10/10",
            **vectors,
        },
        checksums=sums,
    )
