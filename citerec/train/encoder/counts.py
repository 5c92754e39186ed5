"""Papers that a count ties to a query: how often the two were viewed, read or cited together.

Drawn to are those of high counts, held off those of low ones: above and below the middle between the highest
and the lowest count of the query that is not 0. Where all counts of a query are the same, it is drawn to all.

Source: Cohan et al., ACL 2020, section 6, https://arxiv.org/abs/2004.07180: positives are "the most co-viewed",
hard negatives "the least non-zero co-viewed" papers. The middle is that of the sampler that the authors published,
which also leaves out queries whose highest and lowest count differ by less than 2; here they stay.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.errors import BadInputError, ConfigError
from citerec.train.data import TrainingData
from citerec.train.encoder.countsfile import Record, read_records
from citerec.train.lists import Flags, Lists, Rows
from citerec.types import Log

KEPT = 100  # hard negatives of a query that are drawn from: a random part, where there are more
BATCH = 200_000  # counts whose papers are looked up at once


@dataclass(frozen=True, slots=True)
class Graded:
    """What counts say of each query."""

    most: Lists  # papers of high counts
    least: Lists  # papers of low ones

    @classmethod
    def joined(cls, parts: Sequence["Graded"]) -> "Graded":
        """Put the lists of several parts one after the other."""
        return cls(Lists.joined([p.most for p in parts]), Lists.joined([p.least for p in parts]))


def grades(
    owners: npt.NDArray[np.integer], counts: npt.NDArray[np.number], queries: int
) -> tuple[Flags, Flags]:
    """Return which counts are high and which are low for their query, each of shape (counts,).

    Args:
        owners: The query of each count, in [0, queries).
        counts: Greater than 0.
        queries: How many there are.
    """
    highest, lowest = np.zeros(queries), np.full(queries, np.inf)
    np.maximum.at(highest, owners, counts)
    np.minimum.at(lowest, owners, counts)
    middle = ((highest + lowest) / 2)[owners]
    return (counts > middle) | (highest == lowest)[owners], counts < middle


def read_counts(
    files: Sequence[str], data: TrainingData, *, seed: int = 0, log: Log = lambda message: None
) -> Graded:
    """Read the counts of the train queries; other queries, and papers that may not be shown, are left out.

    What is high and what is low is decided before anything is left out: a query whose citations all lie outside
    the index is not drawn to what these cite. Of a pair either may be the later one: a count knows no direction.

    Args:
        files: Together they hold each query once.
        data: The queries, and who may be shown.
        seed: Of the hard negatives that are kept, where they are many.
        log: Receives of each file what was left out.

    Raises:
        BadInputError: If a file cannot be read, or holds a query again.
        ConfigError: If there is nothing to learn from in them.
    """
    taker = _Taker(data)
    for name in files:
        before = taker.tally
        for records in _batches(Path(name)):
            taker.take(records, Path(name))
        log(f"{Path(name).name}: {_told(taker.tally - before)}")
    found = taker.graded(np.random.default_rng([seed, 1]))
    if not len(found.most.indices):
        raise ConfigError(
            f"{', '.join(files)} ties no train query of {data.index.path} to a paper in it that it may be shown; "
            "expected the ids of the index"
        )
    return found


def _batches(file: Path) -> Iterator[list[Record]]:
    batch: list[Record] = []
    size = 0
    for record in read_records(file):
        batch.append(record)
        size += 1 + len(record.others)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Taker:
    """Takes from records what the train queries may learn."""

    def __init__(self, data: TrainingData) -> None:
        self._data = data
        self._number = np.full(data.papers, -1)
        self._number[data.queries] = np.arange(len(data.queries))
        self._met = np.zeros(data.papers, np.bool_)
        self._parts: list[tuple[Rows, Rows, Flags]] = []  # query, paper, whether its count is high
        self.tally = np.zeros(6, np.int64)  # as `_told` reads it

    def take(self, records: Sequence[Record], file: Path) -> None:
        ids = [record.query for record in records]
        rows = self._data.index.papers.rows_of([*ids, *(o for r in records for o in r.others)])
        asked, others = rows[: len(ids)], rows[len(ids) :]
        self._check_new(asked, ids, file)
        numbers = np.where(asked >= 0, self._number[asked], -1)
        counts = np.array([count for record in records for count in record.counts], np.float64)
        owners = np.repeat(np.arange(len(ids)), [len(record.others) for record in records])
        tied = (counts > 0) & (others != asked[owners]) & (numbers[owners] >= 0)
        owners, others, counts = owners[tied], others[tied], counts[tied]
        high, low = grades(owners, counts, len(ids))
        shown = (others >= 0) & self._data.pool[others]
        selection_metric = shown & (high | low)
        self._parts.append(
            (
                numbers[owners[selection_metric]].astype(np.int32),
                others[selection_metric],
                high[selection_metric],
            )
        )
        queries = len(ids), np.sum(asked < 0), np.sum(numbers >= 0)
        self.tally = self.tally + np.array(
            [*queries, len(others), np.sum(others < 0), np.sum(shown)], np.int64
        )

    def graded(self, rng: np.random.Generator) -> Graded:
        owners = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in self._parts)])
        others = np.concatenate([np.zeros(0, np.int32), *(part[1] for part in self._parts)])
        high = np.concatenate([np.zeros(0, np.bool_), *(part[2] for part in self._parts)])
        count = len(self._data.queries)
        least = Lists.of(owners[~high], others[~high], count).shortened(KEPT, rng)
        return Graded(Lists.of(owners[high], others[high], count), least)

    def _check_new(self, asked: Rows, ids: Sequence[str], file: Path) -> None:
        for place in np.flatnonzero(asked >= 0).tolist():
            if self._met[asked[place]]:
                raise BadInputError(file, f"has counts of {ids[place]!r} again; expected them once")
            self._met[asked[place]] = True


def _told(tally: npt.NDArray[np.int64]) -> str:
    queries, unknown, asked, counts, strange, shown = tally.tolist()
    return (
        f"{asked:,} of {queries:,} queries are train queries here, {unknown:,} are not in the index; "
        f"of their {counts:,} counts {shown:,} are of papers that may be shown, {strange:,} are not in the index"
    )
