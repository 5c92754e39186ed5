"""Converts a published corpus to the input of `citerec index`: canonical JSON lines and the splits of the paper.

The statistics are those of table 1 of the reranker paper. Papers are streamed; only the id, the year and the citations
of each paper are in memory.
"""

import gzip
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from citerec.corpus.collector import RecordCounter
from citerec.corpus.readers import Source, read_papers, size_of
from citerec.errors import BadInputError, ConfigError, writing
from citerec.index.folder import IndexFolder
from citerec.index.graph import Graph, open_graph, write_graph, write_references
from citerec.index.papers import NO_YEAR
from citerec.index.splits import (
    FOLDER,
    SPLITS,
    gold_citations,
    open_queries,
    read_ids,
    split_by_year,
    write_splits,
)
from citerec.types import Paper, Progress


def corpus_statistics(index: IndexFolder) -> dict[str, float]:
    """Return the statistics of an index; only citations within the corpus of no later year count.

    Gold per query is the mean over all queries of all splits. Unknown years are left out.
    """
    years = index.papers.years
    every_row = np.arange(len(years), dtype=np.int32)
    gold = gold_citations(index.graph, years)
    answers = np.bincount(index.graph.citing[gold], minlength=len(index.papers))
    splits = {name: _answers(index, name, answers) for name in SPLITS}
    every = np.concatenate(list(splits.values()))
    dated = years[years != NO_YEAR]
    figures = {
        "papers": len(index.papers),
        "with abstract": np.count_nonzero(index.papers.lengths("abstract", every_row)),
        "citations": gold.sum(),
        "citing papers": (answers > 0).sum(),
        **{f"{name} queries": len(splits[name]) for name in SPLITS},
        "gold per query": every.mean() if len(every) else 0,
        **({"first year": dated.min(), "last year": dated.max()} if len(dated) else {}),
    }
    return {name: float(figure) for name, figure in figures.items()}


def _answers(
    index: IndexFolder, split: str, answers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the number of gold papers of each query of a split, shape (queries,)."""
    shipped = open_queries(index.splits)
    if shipped:
        return np.array(
            [len(gold) for gold in shipped.gold.get(split, {}).values()], np.int64
        )
    rows = index.papers.rows_of(read_ids(index.splits / f"{split}.ids"))
    return answers[rows[rows >= 0]]


CORPUS = "corpus.jsonl.gz"
LEVEL = 1  # of gzip: half the time of 6 for a tenth more bytes
LAST = 9999
# dev and test queries each of Open Research; the authors' sample is unknown
SAMPLE = 20_000
SEED = 0
MIN_GOLD = 10  # train papers that a dev or test query of DBLP and PubMed cites at least
# in the file of a row
CITEOMATIC_RULES = f"rules = {{ min_gold = {MIN_GOLD}, train_only = true }}"

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
        OutputError: If the folder cannot be written.
    """
    source = Source(path, (path,))
    collector = RecordCounter(skip_bad=True)
    years = list[int]()
    total = size_of(source) >> 20
    seen = Counter[str]()

    def read(more: int) -> None:
        seen["bytes"] += more
        progress("MB read", seen["bytes"] >> 20, total)

    with writing(folder):
        with (
            write_references(folder / "graph.tmp") as add_references,
            (folder / CORPUS).open("wb") as raw,
            gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as sink,
        ):
            for located in read_papers(source, format_name, read):
                record = located.paper
                if isinstance(record, Paper) and (
                    record.year is None or record.year > until
                ):
                    collector.counts[
                        "undated" if record.year is None else "too_late"
                    ] += 1
                elif paper := collector.add(located):
                    add_references(len(years), paper.citations)
                    years.append(paper.year or NO_YEAR)
                    values = asdict(paper)
                    # models record the checksums of these files
                    if not paper.retracted:
                        del values["retracted"]
                    sink.write(orjson.dumps(values) + b"\n")
        if not years:
            raise BadInputError(
                path, "contains no paper with a year; expected the published file"
            )
        counts = write_graph(folder / "graph.tmp", collector.rows, years)
        graph = open_graph(folder / "graph.tmp", len(years))
    splits = split(list(collector.rows), np.array(years, np.int32), graph)
    with writing(folder):
        shutil.rmtree(folder / "graph.tmp")
        write_splits(folder / FOLDER, dict(splits))
    queries = {f"{name}_queries": len(ids) for name, ids in splits.items()}
    return {**collector.counts, **counts, **queries}


def prepare_openresearch(
    path: Path, folder: Path, progress: Progress
) -> Mapping[str, int]:
    """Write corpus and splits of Open Research; needs about 0.7 kB of memory per paper, 5 GB in total.

    The protocol is the reranker paper's: papers sorted by year, the oldest 80 % train, 10 % dev, 10 % test; papers
    without a year are dropped, as are queries without gold; 20,000 dev and 20,000 test queries are sampled.
    """
    return prepare_corpus(path, "openresearch", folder, sampled_by_year, progress)


def sampled_by_year(
    ids: Sequence[str],
    years: npt.NDArray[np.int32],
    graph: Graph,
) -> dict[str, list[str]]:
    """Split by year, and sample `SAMPLE` dev and test queries each, oldest first."""
    splits = split_by_year(ids, years, graph)
    rng = np.random.default_rng(SEED)
    for name in ("dev", "test"):
        queries = splits[name]
        if len(queries) > SAMPLE:
            drawn = np.sort(rng.choice(len(queries), SAMPLE, replace=False))
            splits[name] = [queries[place] for place in drawn]
    return splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Years:
    """The last year of each split."""

    train: int  # the following year is the first of dev
    dev: int
    test: int

    def __post_init__(self) -> None:
        if not self.train < self.dev < self.test:
            raise ConfigError(
                f"years must rise, got {self.train}, {self.dev}, {self.test}"
            )


def prepare_citeomatic(
    ends: Years, path: Path, folder: Path, progress: Progress
) -> Mapping[str, int]:
    """Write corpus and splits of DBLP or PubMed, split by fixed years.

    A dataset folder cannot restrict gold and candidates to train papers; rows of experiments set `CITEOMATIC_RULES`.
    Citeomatic's code starts the train years at 1966; here they have no start, as in its paper.
    """
    split = partial(split_by_ends, ends=ends)
    return prepare_corpus(path, "citeomatic", folder, split, progress, until=ends.test)


def split_by_ends(
    ids: Sequence[str],
    years: npt.NDArray[np.int32],
    graph: Graph,
    *,
    ends: Years,
) -> dict[str, list[str]]:
    """Return the queries of each split, oldest first; dev and test queries cite `MIN_GOLD` train papers at least."""
    is_train = years <= ends.train
    gold = gold_citations(graph, years) & is_train[graph.indices]
    answers = np.bincount(graph.citing[gold], minlength=len(ids))
    firsts = (np.iinfo(np.int32).min, ends.train + 1, ends.dev + 1)
    rows = np.argsort(years, kind="stable")
    splits: dict[str, list[str]] = {}
    for name, first, last in zip(
        SPLITS, firsts, (ends.train, ends.dev, ends.test), strict=True
    ):
        least = 1 if name == "train" else MIN_GOLD
        selected = (years >= first) & (years <= last) & (answers >= least)
        splits[name] = [ids[int(row)] for row in rows[selected[rows]]]
    return splits
