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

from citerec.corpus.papertable import open_table
from citerec.types import BIBLIOGRAPHIC, Paper

compute: Any = pc  # its functions are made at import, unknown to type checkers

BATCH = 4096  # papers in each Arrow batch, so that a row's batch is found by division
NO_YEAR = 0  # how `Papers.years` writes an unknown year

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("title", pa.string(), nullable=False),
        pa.field("abstract", pa.string(), nullable=False),
        pa.field("year", pa.int32()),
        pa.field("authors", pa.list_(pa.string())),
        pa.field("venue", pa.string(), nullable=False),
        # An index that was built before these were kept has no such columns.
        *(pa.field(name, pa.string(), nullable=False) for name in BIBLIOGRAPHIC),
    ]
)


class PaperWriter:
    """Writes papers to an Arrow file, one batch in memory at a time."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._pending: list[Paper] = []

    def add(self, paper: Paper) -> None:
        """Append one paper; its row number is how many came before it."""
        self._pending.append(paper)
        if len(self._pending) == BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is pending as one batch."""
        if self._pending:
            columns = [
                pa.array([getattr(paper, field.name) for paper in self._pending], field.type)
                for field in SCHEMA
            ]
            self._writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
            self._pending = []


@contextmanager
def write_papers(path: Path) -> Generator[PaperWriter]:
    """Open an Arrow file for papers; it is whole once the block ends."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        papers = PaperWriter(writer)
        yield papers
        papers.flush()


class Papers:
    """The papers of an index, read on demand from the memory-mapped file."""

    def __init__(self, path: Path) -> None:
        """Map the papers into memory.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it holds no papers as `write_papers` writes them.
        """
        self._table: pa.Table = open_table(path, SCHEMA, BATCH)

    def __len__(self) -> int:
        return self._table.num_rows

    def __getitem__(self, row: int) -> Paper:
        """Return the paper at `row`, without its citations (those are in the graph)."""
        return self.at([row])[row]

    def at(self, rows: Iterable[int]) -> dict[int, Paper]:
        """Return the papers at `rows` by row, each once; for many, much faster than one by one."""
        found: dict[int, Paper] = {}
        for batch, group in groupby(sorted(set(rows)), key=lambda row: row // BATCH):
            mine = list(group)
            offsets = as_rows([row - batch * BATCH for row in mine])
            columns = [
                self._table[name].chunk(batch).take(offsets).to_pylist() for name in self._names
            ]
            records = zip(*columns, strict=True)
            papers = (_paper(dict(zip(self._names, record, strict=True))) for record in records)
            found.update(zip(mine, papers, strict=True))
        return found

    @cached_property
    def _names(self) -> list[str]:
        """The columns that the file has; older ones have fewer."""
        return [name for name in SCHEMA.names if name in self._table.column_names]

    @cached_property
    def years(self) -> npt.NDArray[np.int32]:
        """The year of each row, shape (n,); `NO_YEAR` where unknown."""
        chunks = [_years(chunk) for chunk in self._table["year"].chunks]
        return np.concatenate(chunks) if chunks else np.zeros(0, np.int32)

    @cached_property
    def ids(self) -> npt.NDArray[np.object_]:
        """The docid of each row, shape (n,); all in memory, so for batch work only."""
        return self._table["id"].to_numpy()

    @cached_property
    def has_abstract(self) -> npt.NDArray[np.bool_]:
        """Whether each row has an abstract, shape (n,); no abstract is read for it."""
        lengths = [np.diff(_ends(chunk)) for chunk in self._table["abstract"].chunks]
        return np.concatenate([*lengths, np.zeros(0, np.int32)]) > 0

    def texts(self, name: str, rows: npt.NDArray[np.int32]) -> Any:
        """Return a column of text of some rows, in their order, as an Arrow array."""
        order = np.argsort(rows, kind="stable")
        parts = [
            self._table[name].chunk(batch).take(as_rows([row - batch * BATCH for row in group]))
            for batch, group in groupby(rows[order].tolist(), key=lambda row: row // BATCH)
        ]
        back = as_rows(np.argsort(order).tolist())
        return pa.concat_arrays(parts).take(back) if parts else strings([])

    def column(self, name: str) -> Any:
        """Return a column of text as one Arrow array."""
        chunks = self._table[name].chunks
        return pa.concat_arrays(chunks) if chunks else strings([])

    def authors(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return the names of all authors as one Arrow array, and how many each row has, shape (n,)."""
        chunks = self._table["authors"].chunks
        names = pa.concat_arrays([chunk.flatten() for chunk in chunks]) if chunks else strings([])
        counts = [np.diff(_ends(chunk)) for chunk in chunks]
        return names, np.concatenate([*counts, np.zeros(0, np.int64)])

    @property
    def id_column(self) -> Any:
        """The docids as an Arrow column, of which nothing is in memory yet."""
        return self._table["id"]

    @property
    def doi_columns(self) -> list[Any]:
        """The Arrow columns that may hold a paper's DOI: the ids, and, unless the index is older, the stated DOIs."""
        return [self._table[name] for name in ("id", "doi") if name in self._names]

    @property
    def title_column(self) -> Any:
        """The titles as an Arrow column, of which nothing is in memory yet."""
        return self._table["title"]

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """Return the docids of some rows."""
        return [self._value("id", int(row)) for row in rows]

    def ids_like(self, pattern: str) -> list[str]:
        """Return the docids that a regular expression (RE2) finds something in."""
        matches = compute.match_substring_regex(self.id_column, pattern)
        return self.id_column.filter(matches).to_pylist()

    def titles(self) -> Iterator[str]:
        """Yield the title of each row."""
        for chunk in self._table["title"].chunks:
            yield from chunk.to_pylist()

    def rows_of(self, docids: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the rows of docids, shape (len(docids),); -1 where there is no such paper."""
        # The docids wanted are hashed, not those of the corpus: they are few.
        there = compute.is_in(self.id_column, value_set=strings(docids))
        found = self.id_column.filter(there).to_pylist()
        rows = dict(zip(found, compute.indices_nonzero(there).to_pylist(), strict=True))
        return np.array([rows.get(docid, -1) for docid in docids], np.int32)

    def _value(self, column: str, row: int) -> Any:
        batch, offset = divmod(row, BATCH)
        return self._table[column].chunk(batch)[offset].as_py()


def _paper(record: dict[str, Any]) -> Paper:
    record["authors"] = tuple(record["authors"] or ())
    return Paper(**record)


# pyarrow imports pandas for pa.array, pa.scalar, fill_null and to_numpy: 0.2 s and 60 MB of a command that takes
# one second. So what recommends and is small is made and read here by its buffers.


def strings(texts: Sequence[str]) -> Any:
    """Return strings as an Arrow array; half a surrogate pair is kept, and equals nothing."""
    encoded = [text.encode(errors="surrogatepass") for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )


def codes(texts: Any) -> tuple[Any, npt.NDArray[np.int32]]:
    """Return the distinct texts of an Arrow array, and the number of each text among them, shape (len(texts),)."""
    encoded = texts.dictionary_encode()
    numbers = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(texts))
    return encoded.dictionary, numbers


def as_rows(numbers: Sequence[int]) -> Any:
    """Return row numbers as an Arrow array."""
    content = pa.py_buffer(np.array(numbers, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, content])


def _years(chunk: Any) -> npt.NDArray[np.int32]:
    """Return the years of a chunk as it lies in the file, `NO_YEAR` for null."""
    valid, values = chunk.buffers()
    years = np.frombuffer(values, np.int32, len(chunk))
    if valid is None:
        return years
    known = np.unpackbits(np.frombuffer(valid, np.uint8), count=len(chunk), bitorder="little")
    return np.where(known, years, np.int32(NO_YEAR))


def _ends(chunk: Any) -> npt.NDArray[np.int32]:
    """Return where each text or list of a chunk begins, and where the last one ends."""
    return np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1)


def no_later(
    papers: npt.NDArray[np.int32], queries: npt.NDArray[np.int32] | np.int32
) -> npt.NDArray[np.bool_]:
    """Return which papers are of no later year than the queries, by their years; shapes broadcast.

    A paper of an unknown year is not known to be later, and for a query of an unknown year no paper is.
    """
    return (papers <= queries) | (queries == NO_YEAR)
