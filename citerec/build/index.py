"""Builds an index folder from a corpus, or a new one from an old one and what is added and removed.

The corpus is read once: papers, citations and Lucene's index are written in parallel. An index that grows is written
anew beside the old one: the papers of the old index that stay come first, with the tables, documents of Lucene and
vectors that it has of them, then the added ones. What depends on all papers, such as the graph, is made again, so that
the result is what a build of all papers gives.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, islice
from os import fsencode
from os.path import realpath
from pathlib import Path

import numpy as np

from citerec.bibliography.keys import paper_doi
from citerec.build.vectors import (
    ContextTexts,
    EmbedConfig,
    carry_models,
    embed,
    forget_vectors,
)
from citerec.config import DenseKind, setting
from citerec.corpus.collector import (
    RecordCounter,
    byte_progress,
    identified,
    read_retracted,
)
from citerec.corpus.readers import (
    Located,
    Source,
    detect_format,
    find_source,
    read_papers,
    sha256_of,
)
from citerec.display import plural
from citerec.encode.encoder import Encoder, open_encoder, reopen
from citerec.encode.models import AUTO, auto_encoder, recorded_folder
from citerec.encode.spec import EncodeConfig, Fingerprint
from citerec.errors import (
    CiterecError,
    ConfigError,
    EncoderMismatchError,
    IndexDamagedError,
    IndexExistsError,
    shown,
)
from citerec.files.arrays import Flags, Rows, batched, save_array
from citerec.files.atomic import building, check_writable, locked
from citerec.index.bm25 import Bm25Builder
from citerec.index.contexts import (
    CONTEXTS,
    TABLE,
    Contexts,
    link_contexts,
    write_contexts,
)
from citerec.index.contexts import SCHEMA as CONTEXTS_SCHEMA
from citerec.index.folder import (
    BM25,
    CITATIONS,
    ID_RANK,
    NAME,
    PAPERS,
    PLUGINS,
    IndexFolder,
    Manifest,
    PathLike,
    check_path,
    checksums,
    open_index,
    read_manifest,
    write_manifest,
)
from citerec.index.graph import (
    REFERENCES,
    STATED,
    open_graph,
    write_graph,
    write_references,
)
from citerec.index.java import start_jvm
from citerec.index.papers import SCHEMA as PAPERS_SCHEMA
from citerec.index.papers import (
    Papers,
    merge_rows,
    open_lookup,
    open_table,
    write_papers,
)
from citerec.index.splits import FOLDER as SPLITS_FOLDER
from citerec.index.splits import (
    SPLITS,
    open_queries,
    read_ids,
    shipped_queries,
    shipped_splits,
    split_by_year,
    write_queries,
    write_splits,
)
from citerec.match.papers import recognise, write_tables
from citerec.stages import builders
from citerec.types import Json, Log, Progress, no_log, no_progress

BATCH = 4096  # papers handed to Lucene, or read from an old index, at once
_ADDED = "added"  # the papers that are added to an index, in the folder that is built


class BuildConfig(EmbedConfig):
    """How a corpus is read, and what its index contains."""

    format: str = setting(
        "auto",
        "auto recognises the format by content; or the name of one, such as canonical, bibtex or "
        "ris, or of a reader that a package adds.",
    )
    force: bool = setting(False, "Replace an existing index.")
    skip_bad: bool = setting(
        False, "Skip invalid records, and unknown ids of --delete."
    )
    retracted: Path | None = setting(
        None,
        "A table of retracted papers in CSV, as Retraction Watch publishes it: they are marked.",
    )
    # name, hub id, folder or auto; None or none for BM25 alone
    encoder: str | None = None
    encode: EncodeConfig = EncodeConfig()
    add_cited: int = setting(
        0,
        "Of a library of whole texts: works outside of it that so many of its papers cite become papers with a title; "
        "0 for none.",
        ge=0,
    )
    retrievers: tuple[str, ...] = setting(
        (), "Retrievers of installed packages that keep data of their own in the index."
    )


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build indexed and what it skipped."""

    index: Path
    manifest: Manifest
    examples: tuple[str, ...]  # the first faults, each with file and line
    ignored: tuple[Path, ...]  # files of the corpus folder that hold no records
    # added, replaced, removed; of an update new, changed, deleted
    changes: dict[str, int] = field(default_factory=dict[str, int])


def build_index(
    corpus: PathLike,
    index: PathLike,
    config: BuildConfig,
    progress: Progress = no_progress,
    log: Log = no_log,
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
        LockedError: If another process is building it.
        BadInputError: If the corpus cannot be read, or a record is invalid and `skip_bad` is not set.
        ModelError: If there is no such encoder.
        OutputError: If the folder cannot be written.
    """
    index = Path(index)
    source = check_inputs(Path(corpus), index, force=config.force)
    builders(config.retrievers)  # before anything is read
    encoder = None
    if name := chosen_encoder(config.encoder, index, log):
        encoder = open_encoder(name, config.encode, base=index, log=log)
    with locked(index), building(index) as folder:
        # another build may have finished in between
        check_target(index, force=config.force)
        report = _build(
            folder, index, config, source, None, set(), encoder, progress, log
        )
    forget_vectors(index)
    return report


def grow_index(
    index: Path,
    config: BuildConfig,
    *,
    corpus: Path | None = None,
    removed: Path | None = None,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> BuildReport:
    """Add the papers of a corpus to an index, and remove others: the new index replaces the old one at once.

    A paper whose id is in the index replaces that paper. The splits stay, so that models that were trained on them can
    be evaluated.

    `corpus` is a file or a folder of shards, `removed` a file of ids, one per line; either may be None. The encoder, if
    `config` names one, must be that of the index.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        ConfigError: If ids to remove are not in the index and `skip_bad` is not set, or no paper would be left.
        CiterecError: As `build_index` raises.
    """
    if config.encoder == AUTO:  # that of the index
        config = config.replace(encoder=None)
    source = find_source(corpus) if corpus else None
    before = open_index(index)  # before anything is locked or written
    builders(config.retrievers or before.plugins)
    ids = read_ids(removed) if removed else []
    if source and not removed and _is_unchanged(before, source, config):
        log(f"{source.path} is unchanged since it was indexed: nothing to do")
        return BuildReport(index, before.manifest, (), source.ignored)
    with locked(index), building(index) as folder:
        old = open_index(index)
        rows = old.papers.rows_of(ids)
        unknown = [docid for docid, row in zip(ids, rows, strict=True) if row < 0]
        if unknown and not config.skip_bad:
            raise ConfigError(
                f"not in {index}: {len(unknown):,} of {plural(len(ids), 'id')} to delete, first {shown(unknown[0])}; "
                "nothing was changed (--skip-bad skips them)"
            )
        if unknown:
            log(f"{plural(len(unknown), 'id')} of --delete not in the index")
        encoder = _encoder_of(old, config, log)
        report = _build(
            folder, index, config, source, old, {*ids}, encoder, progress, log, old
        )
    forget_vectors(index)
    return report


def chosen_encoder(named: str | None, index: Path, log: Log) -> str | None:
    """Return the encoder that a name stands for, None for BM25 alone; `auto` is that of an index that is there."""
    if named != AUTO:
        return None if named == "none" else named
    try:
        recorded = read_manifest(index).settings.get("encoder")
    except CiterecError:  # there is no readable index
        recorded = None
    if not recorded:
        return auto_encoder(log)
    source = Fingerprint(**recorded).source
    return str(recorded_folder(source, base=index) or source)


def _is_unchanged(index: IndexFolder, source: Source, config: BuildConfig) -> bool:
    """Whether a folder has the files from which an index was built, or that were added last, read in the same way."""
    corpus = index.manifest.corpus
    if not source.path.is_dir() or config.retracted or config.encoder:
        return False
    is_known = sha256_of(source) in {corpus["sha256"], corpus.get("added_sha256")}
    return is_known and config.add_cited == corpus.get("add_cited", 0)


def update_index(
    index: Path,
    config: BuildConfig,
    progress: Progress = no_progress,
    log: Log = no_log,
) -> BuildReport:
    """Build an index anew from the corpus that it was built from, if that has changed, and count what is different.

    The new index is that of a build of the corpus as it is now; vectors of texts that the old one holds are taken from
    it. Format, encoder, retrievers, `add_cited` and the path of the table of retracted papers stay.

    Raises:
        IndexNotFoundError, IndexFormatError, IndexDamagedError: If there is no index that can be opened.
        ConfigError: If `--append` or `--delete` changed the index since, which would be lost.
        CiterecError: As `build_index` raises.
    """
    old = open_index(index)
    corpus = old.manifest.corpus
    if "base_sha256" in corpus:
        raise ConfigError(
            f"{index} was changed by --append, --delete or --retracted, which an update would undo; "
            f"build it anew: citerec library add {corpus['path']} --name {index.name} --force"
        )
    source = find_source(Path(corpus["path"]))
    if sha256_of(source) == corpus["sha256"]:
        changes = _differences(old.papers, old.papers)
        return BuildReport(index, old.manifest, (), source.ignored, changes)
    config = config.replace(
        format=corpus["format"],
        add_cited=corpus.get("add_cited", 0),
        retracted=corpus.get("retracted"),
        retrievers=old.plugins,
    )
    with locked(index), building(index) as folder:
        old = open_index(index)
        encoder = _encoder_of(old, config, log)
        report = _build(
            folder, index, config, source, None, set(), encoder, progress, log, old
        )
    forget_vectors(index)
    return report


def _differences(old: Papers, new: Papers) -> dict[str, int]:
    """Return how many papers are new, changed in their records, and deleted; all are in memory."""
    before, after = (
        {paper.id: paper for paper in papers.at(range(len(papers))).values()}
        for papers in (old, new)
    )
    same = before.keys() & after.keys()
    return {
        "new": len(after) - len(same),
        "changed": sum(before[docid] != after[docid] for docid in same),
        "deleted": len(before) - len(same),
    }


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
    """Refuse to overwrite `index`, unless it is an index and `force` is set, and a path that is not UTF-8."""
    check_path(index)
    try:
        if not index.exists() or (index.is_dir() and not any(index.iterdir())):
            return
        parts = [part for part in (PAPERS, CITATIONS, BM25) if (index / part).exists()]
    except OSError as error:
        raise ConfigError(f"{index} cannot be made: {error.strerror}") from error
    # other programs use this file name, too
    if not parts or not (index / NAME).is_file():
        raise ConfigError(
            f"{index} already exists and is not an index; it was not changed; name another folder"
        )
    if not force:
        raise IndexExistsError(
            f"{index} already exists; replace it with --force, or name another folder with --index"
        )


def _encoder_of(index: IndexFolder, config: BuildConfig, log: Log) -> Encoder | None:
    """Open the encoder of an index that grows; None if it has no vectors."""
    if not index.is_embedded:
        if config.encoder:
            raise ConfigError(
                f"{index.path} has no vectors; add papers without --encoder, or embed all of them: "
                f"citerec encode --index {index.path} --encoder {config.encoder}"
            )
        return None
    if config.encoder is None:
        return reopen(index.encoder, index.path, config.encode, log=log)
    encoder = open_encoder(config.encoder, config.encode, base=index.path, log=log)
    if encoder.fingerprint.key != index.encoder.key:
        name = encoder.fingerprint.name
        raise EncoderMismatchError(index.path, found=name, expected=str(index.encoder))
    return encoder


def _build(
    folder: Path,
    index: Path,
    config: BuildConfig,
    source: Source | None,
    old: IndexFolder | None,
    removed: Set[str],
    encoder: Encoder | None,
    progress: Progress,
    log: Log,
    known: IndexFolder | None = None,
) -> BuildReport:
    """Build an index in a folder, from the papers of a corpus and then those of an old index that stay.

    `known` is an index whose vectors are used; if it is not `old`, the new one replaces it.
    """
    retracted = (
        read_retracted(config.retracted) if config.retracted else frozenset[str]()
    )
    collector = RecordCounter(config.skip_bad, retracted=retracted)
    start_jvm()
    corpus: Json = {"files": 0, "sha256": ""}
    records: Iterator[Located] = iter(())
    part = folder / _ADDED if old else folder
    if source:
        source = replace(
            source,
            add_cited=config.add_cited,
            workers=config.encode.threads or source.workers,
            scratch=folder,
        )
        format_name = detect_format(source, config.format)
        records = read_papers(source, format_name, byte_progress(source, progress), log)
        corpus["path"] = fsencode(source.path).decode(errors="replace")
        corpus["format"] = format_name

    with Bm25Builder(folder, old) as bm25:
        keep, replaced = _write_papers(part, records, collector, bm25, old, removed)
        added = len(collector.rows)
        kept = int(np.count_nonzero(keep))
        if not kept + added:
            of = (
                f"{source.path} holds no valid paper"
                if source
                else f"{index} would have no paper"
            )
            raise ConfigError(f"{of}; no index was built")
        places = _places(keep, added)
        tokens = bm25.finish(places)
        progress("finishing", 0, 2)
        if old:
            _merge(folder, part, old, places, collector)
        papers = Papers(folder / PAPERS)
        _write_tables(folder, part, papers, old, places, collector)
        splits = _write_splits(folder, papers, source, old, collector)
        progress("finishing", 1, 2)
        collector.counts["bm25_tokens"] = tokens.result()
        if (folder / CONTEXTS).is_dir():
            collector.counts.update(_write_contexts(folder, papers, collector))
        progress("finishing", 2, 2)
    vectors: Json = {"encoder": None}
    if encoder:
        if known:  # vectors are stored as in the old index
            kind = DenseKind(known.manifest.settings["dense"]["kind"])
            config = config.replace(dense=config.dense.replace(kind=kind))
        vectors = embed(folder, index, encoder, config, progress, known)
    if source:
        corpus |= {
            "files": len(source.files),
            "sha256": sha256_of(source),
            "identified": identified(source, added + collector.counts["duplicates"]),
        }
        options = {
            "add_cited": config.add_cited,
            "retracted": str(config.retracted or ""),
        }
        corpus |= {name: value for name, value in options.items() if value}
    changes: dict[str, int] = {}
    if old:
        gone = len(keep) - kept - replaced
        changes = {"added": added - replaced, "replaced": replaced, "removed": gone}
        corpus = _changed_corpus(old, corpus, removed)
    elif known:
        changes = _differences(known.papers, papers)
        corpus["update"] = changes
    manifest = Manifest(
        name=Path(realpath(index)).name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        citerec=version("citerec"),
        corpus=corpus,
        counts=dict(collector.counts),
        settings={
            "bm25": {
                "analysis": "english (Porter, stop words)",
                "text": "title + abstract",
            },
            "splits": splits,
            **vectors,
        },
        checksums=checksums(folder),
    )
    manifest = _with_plugins(
        folder, manifest, config.retrievers or (old.plugins if old else ())
    )
    # as late as possible: a model may have been trained meanwhile
    carry_models(index, folder)
    ignored = source.ignored if source else ()
    return BuildReport(index, manifest, tuple(collector.examples), ignored, changes)


def _with_plugins(folder: Path, manifest: Manifest, names: Sequence[str]) -> Manifest:
    """Write the manifest; then let retrievers of other packages write what they read. Return the manifest with it."""
    write_manifest(folder, manifest)
    if not names:
        return manifest
    for name, retriever in builders(names).items():
        own = folder / PLUGINS / name
        own.mkdir(parents=True)
        retriever.build(open_index(folder), own)
    settings = {**manifest.settings, "plugins": sorted(names)}
    manifest = replace(manifest, settings=settings, checksums=checksums(folder))
    write_manifest(folder, manifest)
    return manifest


def _drop(
    docids: Sequence[str], old: IndexFolder, keep: Flags, bm25: Bm25Builder
) -> int:
    """Drop the papers of an old index that have some ids; return how many it has."""
    rows = old.papers.rows_of(docids)
    rows = rows[rows >= 0]
    keep[rows] = False
    bm25.remove(old.papers.ids_at(rows))
    return len(rows)


def _write_papers(
    folder: Path,
    located: Iterator[Located],
    collector: RecordCounter,
    bm25: Bm25Builder,
    old: IndexFolder | None,
    removed: Set[str],
) -> tuple[Flags, int]:
    """Stream the papers into their tables and Lucene.

    Returns which papers of the old index stay, shape (its papers,), and how many are replaced.
    """
    keep = np.ones(len(old.papers) if old else 0, np.bool_)
    if old:
        _drop(list(removed), old, keep, bm25)
    replaced = 0
    row = 0
    with (
        write_references(folder / CITATIONS) as add_references,
        write_papers(folder / PAPERS) as add_paper,
        write_contexts(folder / CONTEXTS) as add_contexts,
    ):
        accepted = (paper for paper in map(collector.add, located) if paper)
        while batch := list(islice(accepted, BATCH)):
            for paper in batch:
                add_paper(paper)
                add_references(row, paper.citations)
                add_contexts(row, paper.contexts)
                row += 1
            if old:
                replaced += _drop([paper.id for paper in batch], old, keep, bm25)
            bm25.add(batch)
    return keep, replaced


def _places(keep: Flags, added: int) -> Rows:
    """Return the row of each old paper, -1 for one that is dropped, and then of each that is added."""
    kept = np.where(keep, np.cumsum(keep) - 1, -1)
    first = np.count_nonzero(keep)
    return np.append(kept, np.arange(first, first + added)).astype(np.int32)


def _merge(
    folder: Path,
    part: Path,
    old: IndexFolder,
    places: Rows,
    collector: RecordCounter,
) -> None:
    """Write the papers of an old index that stay, then those in `part`, with all their references and contexts.

    The collector numbers all of them; papers that it knows as retracted are marked.
    """
    columns: dict[str, list[bool]] = {}
    if listed := collector.retracted:
        columns["retracted"] = [
            paper.retracted or paper_doi(paper).lower() in listed
            for papers in (old.papers, Papers(part / PAPERS))
            for rows in batched(range(len(papers)), BATCH)
            for paper in papers.at(rows).values()
        ]
    of_old, of_added = np.split(places, [len(old.papers)])
    kinds = (
        (PAPERS, PAPERS_SCHEMA, columns),
        (f"{CITATIONS}/{REFERENCES}", STATED, {}),
        (f"{CONTEXTS}/{TABLE}", CONTEXTS_SCHEMA, {}),
    )
    for name, schema, replaced in kinds:
        files = ((old.path / name, of_old), (part / name, of_added))
        try:
            count = merge_rows(folder / name, schema, files, replaced)
        except ValueError as error:
            fault = f"{name} cannot be read: {error}"
            raise IndexDamagedError(old.path, [fault]) from error
        if name.startswith(CONTEXTS) and not count:
            shutil.rmtree(folder / CONTEXTS, ignore_errors=True)
    ids = Papers(folder / PAPERS).ids.tolist()
    collector.rows = {docid: row for row, docid in enumerate(ids)}


def _write_contexts(
    folder: Path, papers: Papers, collector: RecordCounter
) -> dict[str, int]:
    """Write what finds the contexts of the papers; return their number and that of their tokens."""
    link_contexts(folder / CONTEXTS, collector.rows)
    contexts = Contexts(folder / CONTEXTS, papers.years)
    with Bm25Builder(contexts.path) as bm25:
        for numbers in batched(range(len(contexts)), BATCH):
            bm25.add(list(ContextTexts(contexts).at(numbers).values()))
        tokens = bm25.finish(contexts.id_rank).result()
    return {CONTEXTS: len(contexts), "contexts_tokens": tokens}


def _changed_corpus(old: IndexFolder, added: Json, removed: Set[str]) -> Json:
    """Return what the manifest says of the corpus after a change of an index."""
    before = old.manifest.corpus
    history = "\n".join([before["sha256"], added["sha256"], *sorted(removed)])
    return {
        **before,
        "files": before["files"] + added["files"],
        "identified": {
            **before.get("identified", {}),
            **added.get("identified", {}),
        },
        "sha256": hashlib.sha256(history.encode(errors="surrogatepass")).hexdigest(),
        "added_sha256": added["sha256"],
        "base_sha256": old.manifest.lineage,
    }


def _write_tables(
    folder: Path,
    part: Path,
    papers: Papers,
    old: IndexFolder | None,
    places: Rows,
    collector: RecordCounter,
) -> None:
    """Write tables, graph and the order of docids; count the papers. Those that were added are removed from `part`."""
    graph = write_graph(folder / CITATIONS, collector.rows, papers.years)
    stated = open_table(folder / CITATIONS / REFERENCES, STATED)
    # a counter would add them
    counts = {**collector.counts, **papers.counts(), **graph}
    collector.counts = Counter({**counts, "with_citations": len(stated)})
    added = Papers(part / PAPERS) if old else papers
    first = len(papers) - len(added)
    write_tables(folder, added, first, old.papers.lookup if old else None, places)
    if old:
        shutil.rmtree(part)
    ids = list(collector.rows)
    rank = np.empty(len(ids), np.int32)
    rank[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(
        len(ids), dtype=np.int32
    )
    save_array(folder / ID_RANK, rank)


def _write_splits(
    folder: Path,
    papers: Papers,
    source: Source | None,
    old: IndexFolder | None,
    collector: RecordCounter,
) -> str:
    """Write the splits, and return their origin: those of an old index, else those of the corpus, else by year."""
    if old:
        stored = open_queries(old.splits)
        splits = {name: read_ids(old.splits / f"{name}.ids") for name in SPLITS}
        origin = str(old.manifest.settings["splits"])
    else:
        assert source
        stored = shipped_queries(source.folder)
        splits = stored.splits if stored else shipped_splits(source.folder)
        origin = "by year, 80/10/10" if splits is None else "shipped"
        graph = open_graph(folder / CITATIONS, len(papers))
        splits = splits or split_by_year(list(collector.rows), papers.years, graph)
    write_splits(folder / SPLITS_FOLDER, splits)
    if stored:
        papers.lookup = open_lookup(folder)
        unmatched = [replace(query, corpus_ids=()) for query in stored.queries.values()]
        queries = {query.id: query for query, _ in recognise(unmatched, papers)}
        write_queries(folder / SPLITS_FOLDER, replace(stored, queries=queries))
        collector.counts["recognised_queries"] = sum(
            bool(q.corpus_ids) for q in queries.values()
        )
    elif old or origin == "shipped":
        collector.counts["unknown_queries"] = sum(
            docid not in collector.rows
            for docid in chain.from_iterable(splits.values())
        )
    collector.counts.update(
        {f"{name}_queries": len(split) for name, split in splits.items()}
    )
    return origin
