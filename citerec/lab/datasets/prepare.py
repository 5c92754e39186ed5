"""Converts a published corpus to the input of `citerec index`: canonical JSON lines and the splits of the paper.

Papers are streamed; only the id, the year and the citations of each paper are in memory.
"""

import gzip
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from citerec.corpus.collector import Collector
from citerec.corpus.graph import Graph, ReferenceSpill, open_graph, spill_references, write_graph
from citerec.corpus.readers import read_papers
from citerec.corpus.readers.source import Source, size_of
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import write_splits
from citerec.errors import BadInputError, writing
from citerec.lab.datasets.download import check_space
from citerec.types import Paper, Progress

CORPUS = "corpus.jsonl.gz"
LEVEL = 1  # of gzip: half the time of 6 for a tenth more bytes
LAST = 9999

Split = Callable[[Sequence[str], npt.NDArray[np.int32], Graph], Mapping[str, list[str]]]


def prepare_corpus(
    path: Path,
    format_name: str,
    folder: Path,
    split: Split,
    progress: Progress,
    *,
    until: int = LAST,
) -> dict[str, int]:
    """Write `corpus.jsonl.gz` and `splits/` of a published corpus.

    Papers without a year or later than `until` are dropped, as in Citeomatic and Anserini. Invalid records are dropped,
    and the second of two papers with the same id.

    Args:
        path: The published corpus; may be compressed with gzip, zstd or bz2.
        format_name: The name of its reader.
        folder: The folder to write.
        split: Returns the ids of each split, from the ids, the years of shape (n,), and the citations.
        progress: Receives the number of MB read.
        until: The last year of the corpus.

    Returns:
        The numbers of papers, citations and queries, and of dropped records by reason.

    Raises:
        BadInputError: If the file cannot be read, or contains no paper with a year.
        OutputError: If the disk is too small, or the folder cannot be written.
    """
    source = Source(path, (path,))
    check_space(folder, size_of(source), what=CORPUS)
    collector, years = Collector(skip_bad=True), list[int]()
    with writing(folder), spill_references(folder / "references.tmp") as spill:
        _copy(source, format_name, folder / CORPUS, collector, years, spill, progress, until)
        spill.close()
        if not years:
            raise BadInputError(path, "contains no paper with a year; expected the published file")
        counts = write_graph(folder / "graph.tmp", spill, collector.rows)
        graph = open_graph(folder / "graph.tmp", len(years))
    splits = split(list(collector.rows), np.array(years, np.int32), graph)
    with writing(folder):
        shutil.rmtree(folder / "graph.tmp")
        write_splits(folder / SPLITS, dict(splits))
    queries = {f"{name}_queries": len(ids) for name, ids in splits.items()}
    return {**collector.counts, **asdict(counts), **queries}


def _copy(
    source: Source,
    format_name: str,
    target: Path,
    collector: Collector,
    years: list[int],
    spill: ReferenceSpill,
    progress: Progress,
    until: int,
) -> None:
    total, seen = size_of(source) >> 20, Counter[str]()

    def read(more: int) -> None:
        seen["bytes"] += more
        progress("MB read", seen["bytes"] >> 20, total)

    with target.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as sink:
        for located in read_papers(source, format_name, read):
            record = located.paper
            if isinstance(record, Paper) and (record.year is None or record.year > until):
                collector.counts["undated" if record.year is None else "too_late"] += 1
                continue
            if (paper := collector.add(located)) is None:
                continue
            assert paper.year is not None
            years.append(paper.year)
            spill.add(len(years) - 1, paper.citations)
            sink.write(orjson.dumps(asdict(paper)) + b"\n")
