"""`citations/outside.arrow`: the stated references of each paper that are not citations of the graph.

An update reads them: a reference to a paper that is added later becomes a citation. Nothing else does. An index that
was built before this file existed does not have it.
"""

from collections import Counter
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from citerec.corpus.columns import numbers, record_batch

OUTSIDE = "outside.arrow"
UNKNOWN, SELF, REPEATED = (
    0,
    1,
    2,
)  # outside the corpus; to the paper itself; one more of the same paper
SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
    ]
)
BATCH = 2**16  # references per Arrow batch


class OutsideWriter:
    """Writes references to an Arrow file, one batch in memory at a time, and counts them by kind."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._rows: list[int] = []
        self._ids: list[str] = []
        self._kinds: list[int] = []
        self.counts: Counter[int] = Counter()

    def add(self, row: int, docid: str, kind: int) -> None:
        """Add a reference of the paper at `row`."""
        self._rows.append(row)
        self._ids.append(docid)
        self._kinds.append(kind)
        if len(self._rows) == BATCH:
            self.flush()

    def add_batch(self, batch: Any) -> None:
        """Add a batch of references as it is."""
        self.flush()
        if len(batch):
            kinds = numbers(batch["kind"])
            self.counts.update(dict(enumerate(np.bincount(kinds, minlength=3).tolist())))
            self._writer.write_batch(batch)

    def flush(self) -> None:
        """Write the pending references as one batch."""
        if self._rows:
            self.counts.update(self._kinds)
            columns = [self._rows, self._ids, self._kinds]
            self._writer.write_batch(record_batch(SCHEMA, columns))
            self._rows, self._ids, self._kinds = [], [], []


@contextmanager
def write_outside(folder: Path) -> Generator[OutsideWriter]:
    """Open `outside.arrow` in a folder; it is complete when the block ends."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        pa.OSFile(str(folder / OUTSIDE), "wb") as sink,
        pa.ipc.new_file(sink, SCHEMA, options=options) as writer,
    ):
        outside = OutsideWriter(writer)
        yield outside
        outside.flush()


def outside_batches(folder: Path) -> Iterator[Any]:
    """Yield the batches of `outside.arrow`; nothing if the file does not exist.

    Raises:
        ValueError: If it is not a file that `write_outside` wrote.
        OSError: If it cannot be read.
    """
    if not (folder / OUTSIDE).is_file():
        return
    try:
        with pa.memory_map(str(folder / OUTSIDE)) as source:
            reader = pa.ipc.open_file(source)
            if reader.schema != SCHEMA:
                raise ValueError(f"{OUTSIDE} has other columns")
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)
                yield batch
    except pa.ArrowException as error:
        raise ValueError(f"{OUTSIDE} cannot be read") from error


def classify(
    docid: str, references: Sequence[str], known: Container[str]
) -> tuple[list[str], list[tuple[str, int]]]:
    """Split the references of a paper into those of the corpus and the others, each with its kind.

    Args:
        docid: The id of the paper.
        references: The ids that it states, in any order.
        known: The ids of the corpus.
    """
    distinct = set(references)
    cited = [reference for reference in distinct if reference in known and reference != docid]
    others = [(reference, UNKNOWN) for reference in distinct if reference not in known]
    if docid in distinct:
        others = [*((r, kind) for r, kind in others if r != docid), (docid, SELF)]
    if len(distinct) < len(references):
        repeats = Counter(references) - Counter(distinct)
        others += [(reference, REPEATED) for reference in repeats.elements()]
    return cited, sorted(others)
