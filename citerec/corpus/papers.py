"""`papers.arrow`: the papers of an index, memory-mapped; the row number is a paper's internal id."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from citerec.corpus.columns import numbers, record_batch
from citerec.corpus.lookup import Lookup
from citerec.corpus.papertable import open_table
from citerec.types import BIBLIOGRAPHIC, Paper

compute: Any = pc  # its functions are made at import, unknown to type checkers

BATCH = 4096  # papers per Arrow batch, so that division gives the batch of a row
FEW_IDS = 1000  # ids that are looked up in any case
PER_ID = 64  # papers whose ids are searched in the time of one look-up
NO_YEAR = 0  # the value of an unknown year in `Papers.years`

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("abstract", pa.string(), nullable=False),
        pa.field("year", pa.int32()),
        pa.field("authors", pa.list_(pa.string())),
        pa.field("venue", pa.string(), nullable=False),
        # An index that was built before these columns existed does not have them.
        *(pa.field(name, pa.string(), nullable=False) for name in BIBLIOGRAPHIC),
    ]
)


class PaperWriter:
    """Writes papers to an Arrow file, one batch in memory at a time."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._pending: list[Paper] = []

    def add(self, paper: Paper) -> None:
        """Append one paper; its row number is the number of papers before it."""
        self._pending.append(paper)
        if len(self._pending) == BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the pending papers as one batch."""
        if self._pending:
            columns = [[getattr(paper, name) for paper in self._pending] for name in SCHEMA.names]
            self._writer.write_batch(record_batch(SCHEMA, columns))
            self._pending = []


@contextmanager
def write_papers(path: Path) -> Generator[PaperWriter]:
    """Open an Arrow file for papers; it is complete when the block ends."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        papers = PaperWriter(writer)
        yield papers
        papers.flush()


class Papers:
    """The papers of an index, read on demand from a memory-mapped file."""

    def __init__(self, path: Path, lookup: Lookup | None = None) -> None:
        """Map the papers into memory.

        Args:
            path: The Arrow file.
            lookup: Tables of its ids, DOIs, titles and authors; None if there are none: then all texts are searched.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not a file that `write_papers` wrote.
        """
        self._table: pa.Table = open_table(path, SCHEMA, BATCH)
        self.lookup = lookup

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, row: int) -> Paper:
        """Return the paper at `row`, without its references, which are in the graph."""
        return self.at([row])[row]

    def at(self, rows: Iterable[int]) -> dict[int, Paper]:
        """Return the papers at `rows`, by row; much faster than one by one."""
        by_row: dict[int, Paper] = {}
        for batch, group in groupby(sorted(set(rows)), key=lambda row: row // BATCH):
            group_rows = list(group)
            offsets = as_rows([row - batch * BATCH for row in group_rows])
            columns = [
                self._table[name].chunk(batch).take(offsets).to_pylist() for name in self._names
            ]
            records = zip(*columns, strict=True)
            papers = (_paper(dict(zip(self._names, record, strict=True))) for record in records)
            by_row.update(zip(group_rows, papers, strict=True))
        return by_row

    @cached_property
    def _names(self) -> list[str]:
        """The columns of the file; older indexes have fewer."""
        return [name for name in SCHEMA.names if name in self._table.column_names]

    @cached_property
    def years(self) -> npt.NDArray[np.int32]:
        """The year of each row, shape (n,); `NO_YEAR` where unknown."""
        chunks = [numbers(chunk, missing=NO_YEAR) for chunk in self._table["year"].chunks]
        return np.concatenate(chunks) if chunks else np.zeros(0, np.int32)

    @cached_property
    def ids(self) -> npt.NDArray[np.object_]:
        """The docid of each row, shape (n,). All of them are loaded into memory: for batch work only."""
        return self._table["id"].to_numpy()

    @cached_property
    def has_abstract(self) -> npt.NDArray[np.bool_]:
        """Whether each row has an abstract, shape (n,); the abstracts themselves are not read."""
        return self.has_text("abstract")

    def has_text(self, name: str) -> npt.NDArray[np.bool_]:
        """Return whether a text column of each row is not empty, shape (n,); the texts are not read."""
        lengths = [np.diff(_ends(chunk)) for chunk in self._table[name].chunks]
        return np.concatenate([*lengths, np.zeros(0, np.int32)]) > 0

    def lengths(self, name: str, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the bytes of a text, or the number of authors, of some rows, shape of `rows`; no text is read."""
        lengths = np.zeros(len(rows), np.int64)
        batches = rows // BATCH
        for batch in np.unique(batches).tolist():
            of_batch = np.flatnonzero(batches == batch)
            ends, places = _ends(self._table[name].chunk(batch)), rows[of_batch] - batch * BATCH
            lengths[of_batch] = ends[places + 1] - ends[places]
        return lengths

    @cached_property
    def has_authors(self) -> bool:
        """Whether any paper has an author."""
        return any(np.diff(_ends(chunk)).any() for chunk in self._table["authors"].chunks)

    def texts(self, name: str, rows: npt.NDArray[np.int32]) -> Any:
        """Return a text column for some rows, in the order of `rows`, as an Arrow array."""
        order = np.argsort(rows, kind="stable")
        parts = [
            self._table[name].chunk(batch).take(as_rows([row - batch * BATCH for row in group]))
            for batch, group in groupby(rows[order].tolist(), key=lambda row: row // BATCH)
        ]
        inverse = as_rows(np.argsort(order).tolist())
        return pa.concat_arrays(parts).take(inverse) if parts else strings([])

    def column(self, name: str) -> Any:
        """Return a text column as one Arrow array."""
        chunks = self._table[name].chunks
        return pa.concat_arrays(chunks) if chunks else strings([])

    def authors(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return the names of all authors as one Arrow array, and how many each row has, shape (n,)."""
        chunks = self._table["authors"].chunks
        names = pa.concat_arrays([chunk.flatten() for chunk in chunks]) if chunks else strings([])
        counts = [np.diff(_ends(chunk)) for chunk in chunks]
        return names, np.concatenate([*counts, np.zeros(0, np.int64)])

    def batches(self) -> Iterator[Any]:
        """Yield the papers as Arrow batches of `BATCH` rows, of which the last may be shorter; nothing is copied."""
        return iter(self._table.to_batches())

    @property
    def id_column(self) -> Any:
        """The docids as an Arrow column, which is read on demand."""
        return self._table["id"]

    @property
    def doi_columns(self) -> list[Any]:
        """The Arrow columns that may hold a DOI: the ids and, except in older indexes, the stated DOIs."""
        return [self._table[name] for name in self.doi_names]

    @property
    def doi_names(self) -> tuple[str, ...]:
        """The names of these columns."""
        return tuple(name for name in ("id", "doi") if name in self._names)

    @property
    def title_column(self) -> Any:
        """The titles as an Arrow column, which is read on demand."""
        return self._table["title"]

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """Return the docids of some rows."""
        return [self._value("id", int(row)) for row in rows]

    def ids_like(self, pattern: str) -> list[str]:
        """Return the docids in which a regular expression (RE2) has a match."""
        matches = compute.match_substring_regex(self.id_column, pattern)
        return self.id_column.filter(matches).to_pylist()

    def titles(self) -> Iterator[str]:
        """Yield the title of each row."""
        for chunk in self._table["title"].chunks:
            yield from chunk.to_pylist()

    def rows_of(self, docids: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the rows of docids, shape (len(docids),); -1 for a docid that is not in the index."""
        if self.lookup and len(docids) <= max(FEW_IDS, len(self) // PER_ID):
            found = self.lookup.ids.rows_of(docids)
            pairs = zip(docids, found, strict=True)
            rows_of = [[row for row in rows if self._value("id", row) == i] for i, rows in pairs]
            return np.array([rows[0] if rows else -1 for rows in rows_of], np.int32)
        # The requested docids are hashed, not those of the corpus: they are few.
        is_requested = compute.is_in(self.id_column, value_set=strings(docids))
        present_ids = self.id_column.filter(is_requested).to_pylist()
        rows = dict(
            zip(present_ids, compute.indices_nonzero(is_requested).to_pylist(), strict=True)
        )
        return np.array([rows.get(docid, -1) for docid in docids], np.int32)

    def _value(self, column: str, row: int) -> Any:
        batch, offset = divmod(row, BATCH)
        return self._table[column].chunk(batch)[offset].as_py()


def _paper(record: dict[str, Any]) -> Paper:
    record["authors"] = tuple(record["authors"] or ())
    return Paper(**record)


# pyarrow imports pandas for pa.array, pa.scalar, fill_null and to_numpy: 0.2 s and 60 MB of a command that takes
# one second. So small arrays that `recommend` needs are built and read here through their buffers.


def strings(texts: Sequence[str]) -> Any:
    """Return strings as an Arrow array; an unpaired surrogate is kept and equals no text of the corpus."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )


def codes(texts: Any) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return the distinct texts of an Arrow array, and the code of each text, shape (len(texts),)."""
    encoded = texts.dictionary_encode()
    numbers = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(texts))
    return encoded.dictionary, numbers


def as_rows(numbers: Sequence[int]) -> Any:
    """Return row numbers as an Arrow array."""
    content = pa.py_buffer(np.array(numbers, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, content])


def _ends(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the offsets of the texts or lists of a chunk, shape (len(chunk) + 1,)."""
    return np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1)


def no_later(
    papers: npt.NDArray[np.int32], queries: npt.NDArray[np.int32] | np.int32
) -> npt.NDArray[np.bool_]:
    """Return which papers are of no later year than the queries, by their years; shapes broadcast.

    A paper of an unknown year is not known to be later, and for a query of an unknown year no paper is.
    """
    return (papers <= queries) | (queries == NO_YEAR)
