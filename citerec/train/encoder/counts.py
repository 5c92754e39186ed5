"""Training signals from counts: how often two papers were viewed, read or cited together.

The positives of a query are the papers with high counts, its hard negatives those with low counts: above and below
the midpoint between the highest and the lowest non-zero count of the query. If all counts of a query are equal, all
papers are positives.

Source: Cohan et al., ACL 2020, section 6, https://arxiv.org/abs/2004.07180: positives are "the most co-viewed",
hard negatives "the least non-zero co-viewed" papers. The midpoint is that of the published sampler, which also drops
queries whose highest and lowest count differ by less than 2; they are kept here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.errors import BadInputError, ConfigError
from citerec.train.data import TrainingData
from citerec.train.encoder.countsfile import QueryCounts, read_records
from citerec.train.lists import Flags, Lists, Rows
from citerec.types import Log

MAX_HARD = 100  # hard negatives per query; a random sample if there are more
COUNTS_AT_ONCE = 200_000  # counts whose papers are looked up at once


@dataclass(frozen=True, slots=True)
class GradedLists:
    """The papers of each query with high and with low counts."""

    most: Lists  # papers with high counts: positives
    least: Lists  # papers with low counts: hard negatives

    @classmethod
    def joined(cls, parts: Sequence["GradedLists"]) -> "GradedLists":
        """Concatenate the lists of several parts."""
        return cls(Lists.joined([p.most for p in parts]), Lists.joined([p.least for p in parts]))


def grades(
    segment_ids: npt.NDArray[np.integer], counts: npt.NDArray[np.number], queries: int
) -> tuple[Flags, Flags]:
    """Return which counts are high and which are low for their query, each of shape (counts,).

    Args:
        segment_ids: The query of each count, in [0, queries), shape (counts,).
        counts: Greater than 0, shape (counts,).
        queries: The number of queries.
    """
    highest, lowest = np.zeros(queries), np.full(queries, np.inf)
    np.maximum.at(highest, segment_ids, counts)
    np.minimum.at(lowest, segment_ids, counts)
    midpoint = ((highest + lowest) / 2)[segment_ids]
    return (counts > midpoint) | (highest == lowest)[segment_ids], counts < midpoint


def read_counts(
    files: Sequence[str], data: TrainingData, *, seed: int = 0, log: Log = lambda message: None
) -> GradedLists:
    """Read the counts of the train queries; other queries and papers outside the pool are dropped.

    Counts are graded before papers are dropped: a query whose highest counts are all outside the index has no
    positives. Counts have no direction, so either paper of a pair may be the later one.

    Args:
        files: Each query is in one of them, once.
        data: The train queries and the pool.
        seed: Of the sample of hard negatives.
        log: Receives a summary of each file.

    Raises:
        BadInputError: If a file cannot be read, or repeats a query.
        ConfigError: If no positive is left.
    """
    collector = _CountsCollector(data)
    for name in files:
        before = collector.tally
        for records in _batches(Path(name)):
            collector.take(records, Path(name))
        log(f"{Path(name).name}: {_summary(collector.tally - before)}")
    graded = collector.graded(np.random.default_rng([seed, 1]))
    if not len(graded.most.indices):
        raise ConfigError(
            f"{', '.join(files)}: no train query of {data.index.path} has a count with an eligible paper; "
            "expected the ids of the index"
        )
    return graded


def _batches(file: Path) -> Iterator[list[QueryCounts]]:
    batch: list[QueryCounts] = []
    size = 0
    for record in read_records(file):
        batch.append(record)
        size += 1 + len(record.others)
        if size >= COUNTS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _CountsCollector:
    """Collects the graded counts of the train queries."""

    def __init__(self, data: TrainingData) -> None:
        self._data = data
        self._number = np.full(data.papers, -1)
        self._number[data.queries] = np.arange(len(data.queries))
        self._seen = np.zeros(data.papers, np.bool_)
        self._parts: list[tuple[Rows, Rows, Flags]] = []  # query, paper, whether the count is high
        self.tally = np.zeros(6, np.int64)  # the six numbers of `_summary`

    def take(self, records: Sequence[QueryCounts], file: Path) -> None:
        ids = [record.query for record in records]
        rows = self._data.index.papers.rows_of([*ids, *(o for r in records for o in r.others)])
        query_rows, other_rows = rows[: len(ids)], rows[len(ids) :]
        self._check_new(query_rows, ids, file)
        numbers = np.where(query_rows >= 0, self._number[query_rows], -1)
        counts = np.array([count for record in records for count in record.counts], np.float64)
        segment_ids = np.repeat(np.arange(len(ids)), [len(record.others) for record in records])
        valid = (counts > 0) & (other_rows != query_rows[segment_ids]) & (numbers[segment_ids] >= 0)
        segment_ids, other_rows, counts = segment_ids[valid], other_rows[valid], counts[valid]
        high, low = grades(segment_ids, counts, len(ids))
        in_pool = (other_rows >= 0) & self._data.pool[other_rows]
        selected = in_pool & (high | low)
        self._parts.append(
            (
                numbers[segment_ids[selected]].astype(np.int32),
                other_rows[selected],
                high[selected],
            )
        )
        queries = len(ids), np.sum(query_rows < 0), np.sum(numbers >= 0)
        self.tally = self.tally + np.array(
            [*queries, len(other_rows), np.sum(other_rows < 0), np.sum(in_pool)], np.int64
        )

    def graded(self, rng: np.random.Generator) -> GradedLists:
        segment_ids = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in self._parts)])
        other_rows = np.concatenate([np.zeros(0, np.int32), *(part[1] for part in self._parts)])
        high = np.concatenate([np.zeros(0, np.bool_), *(part[2] for part in self._parts)])
        count = len(self._data.queries)
        least = Lists.of(segment_ids[~high], other_rows[~high], count).shortened(MAX_HARD, rng)
        return GradedLists(Lists.of(segment_ids[high], other_rows[high], count), least)

    def _check_new(self, query_rows: Rows, ids: Sequence[str], file: Path) -> None:
        for number in np.flatnonzero(query_rows >= 0).tolist():
            if self._seen[query_rows[number]]:
                raise BadInputError(
                    file, f"has counts of {ids[number]!r} twice; expected them once"
                )
            self._seen[query_rows[number]] = True


def _summary(tally: npt.NDArray[np.int64]) -> str:
    queries, unknown, train, counts, unknown_papers, usable = tally.tolist()
    return (
        f"{train:,} of {queries:,} queries are train queries, {unknown:,} are not in the index; "
        f"{usable:,} of their {counts:,} counts are of eligible papers, {unknown_papers:,} of papers outside the index"
    )
