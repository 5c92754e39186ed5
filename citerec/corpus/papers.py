"""`papers.arrow`: the papers of an index, memory-mapped; the row number is a paper's internal id.

Arrow arrays are built and read through their buffers: `pa.array`, `pa.scalar`, `to_numpy` and `fill_null` import
pandas, which takes 0.2 s and 60 MB of a command that takes one second.
"""

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
        """Map the papers into memory; `lookup` holds the tables of their ids, DOIs, titles and authors.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is not a file that `write_papers` wrote.
        """
        self._table: pa.Table = _open_table(path)
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
                self._table[name].chunk(batch).take(offsets).to_pylist() for name in SCHEMA.names
            ]
            for row, values in zip(group_rows, zip(*columns, strict=True), strict=True):
                record: dict[str, Any] = dict(zip(SCHEMA.names, values, strict=True))
                record["authors"] = tuple(record["authors"] or ())
                by_row[row] = Paper(**record)
        return by_row

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

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """Return the docids of some rows."""
        return [self._id(int(row)) for row in rows]

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
            pairs = zip(docids, self.lookup.ids.rows_of(docids), strict=True)
            rows_of = [[row for row in rows if self._id(row) == docid] for docid, rows in pairs]
            return np.array([rows[0] if rows else -1 for rows in rows_of], np.int32)
        # The requested docids are hashed, not those of the corpus: they are few.
        is_requested = compute.is_in(self.id_column, value_set=strings(docids))
        present = self.id_column.filter(is_requested).to_pylist()
        rows = dict(zip(present, compute.indices_nonzero(is_requested).to_pylist(), strict=True))
        return np.array([rows.get(docid, -1) for docid in docids], np.int32)

    def _id(self, row: int) -> str:
        batch, offset = divmod(row, BATCH)
        return self.id_column.chunk(batch)[offset].as_py()


def no_later(
    papers: npt.NDArray[np.int32], queries: npt.NDArray[np.int32] | np.int32
) -> npt.NDArray[np.bool_]:
    """Return which papers are of no later year than the queries, by their years; shapes broadcast.

    A paper of an unknown year is not known to be later, and for a query of an unknown year no paper is.
    """
    return (papers <= queries) | (queries == NO_YEAR)


def _open_table(path: Path) -> Any:
    """Map the table into memory, and check the offsets of its texts, which Arrow does not check.

    That takes a few milliseconds per million papers; the texts are not read.
    """
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        if reader.schema != SCHEMA:
            raise ValueError(f"it has other columns: {', '.join(reader.schema.names)}"[:120])
        table = reader.read_all()
        for name in table.column_names:
            for number, chunk in enumerate(table[name].chunks):
                _check(chunk, nullable=SCHEMA.field(name).nullable)
                is_last = number == table[name].num_chunks - 1
                if not (0 < len(chunk) <= BATCH if is_last else len(chunk) == BATCH):
                    raise ValueError(f"batch {number} holds {len(chunk):,} papers")
    except (pa.ArrowException, MemoryError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(" ".join(str(error).split())[:120]) from error
    return table


def _check(chunk: Any, *, nullable: bool) -> None:
    chunk.validate()  # sizes of buffers
    if chunk.null_count and not nullable:
        raise ValueError("a text is null")
    size = 0
    if pa.types.is_list(chunk.type):
        size = len(chunk.values)
        _check(chunk.values, nullable=False)
    elif pa.types.is_string(chunk.type):
        size = chunk.buffers()[2].size if chunk.buffers()[2] else 0
    if len(chunk) and not pa.types.is_integer(chunk.type):
        ends = _ends(chunk)
        if ends[0] < 0 or ends[-1] > size or np.any(ends[1:] < ends[:-1]):
            raise ValueError("a text ends before it begins, or beyond its batch")


def _ends(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the offsets of the texts or lists of a chunk, shape (len(chunk) + 1,)."""
    return np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1)


def strings(texts: Sequence[str]) -> Any:
    """Return strings as an Arrow array; an unpaired surrogate is kept and equals no text of the corpus."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = (pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))
    return pa.StringArray.from_buffers(len(encoded), *buffers)


def codes(texts: Any) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return the distinct texts of an Arrow array, and the code of each text, shape (len(texts),)."""
    encoded = texts.dictionary_encode()
    return encoded.dictionary, np.frombuffer(encoded.indices.buffers()[1], np.int32, len(texts))


def as_rows(numbers: Sequence[int]) -> Any:
    """Return row numbers as an Arrow array."""
    content = pa.py_buffer(np.array(numbers, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, content])
