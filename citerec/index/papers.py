"""`papers.arrow` and `lookup/`: the papers of an index, and sorted tables that find them; both are memory-mapped.

The row number is a paper's internal id. Arrow arrays are read through their buffers: `pa.array`, `to_numpy` and
`fill_null` import pandas, which takes 0.2 s and 60 MB of a command that takes one second.
"""

import struct
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from citerec.display import one_line
from citerec.files.arrays import (
    Counts,
    Flags,
    Rows,
    Years,
    batched,
    check_rows,
    concatenated,
    open_array,
    save_array,
)
from citerec.types import BIBLIOGRAPHIC, Json, Paper

Codes = npt.NDArray[np.uint64]

BATCH = 4096  # papers per Arrow batch, so that division gives the batch of a row
NO_YEAR = 0  # an unknown year
_NO_TEXTS: Any = pa.StringArray.from_buffers(
    0, pa.py_buffer(bytes(4)), pa.py_buffer(b"")
)
_KINDS: Json = {  # not text
    "year": pa.int32(),
    "authors": pa.list_(pa.string()),
    "retracted": pa.bool_(),
}
SCHEMA = pa.schema(
    pa.field(name, _KINDS.get(name, pa.string()), nullable=False)
    for name in (
        "id",
        "title",
        "abstract",
        "year",
        "authors",
        "venue",
        *BIBLIOGRAPHIC,
        "retracted",
    )
)
_ARROW_ERRORS = (pa.ArrowException, MemoryError, OverflowError, UnicodeDecodeError)


# --- Tables from keys to rows


def codes_of(keys: Iterable[str]) -> Codes:
    """Return the codes of keys, shape (keys,)."""
    digests = b"".join(
        blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for key in keys
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True, slots=True)
class Table:
    """The 64-bit codes of keys, rising, and the row of a paper that has each; both have shape (entries,).

    Two keys may share a code: whoever reads a table compares the texts. Only names of authors are not compared: among
    100 million names, the chance that any two share a code is 1 in 3,700.
    """

    codes: Codes
    rows: Rows  # rising among equal codes

    @classmethod
    def of(cls, codes: Codes, rows: Rows) -> Self:
        """Return the table of some entries; those of equal codes must have rising rows."""
        # what is sorted for the most part, as in an index that grows, takes a third of the time of others
        order = np.argsort(codes, kind="stable")
        return cls(codes[order], rows[order])

    def where(self, keep: Flags) -> Self:
        """Return the table of the entries that a mask selects, shape (entries,)."""
        return replace(self, codes=self.codes[keep], rows=self.rows[keep])

    def moved(self, places: Rows) -> Self:
        """Return the table with other rows, by the row of each entry; entries whose row becomes -1 are dropped."""
        rows = places[self.rows]
        return replace(self, rows=rows).where(rows >= 0)

    def rows_of(self, keys: Iterable[str]) -> list[Rows]:
        """Return the rows that may have each key, rising: all that have it, and those of an equal code."""
        wanted = codes_of(keys)
        first = np.searchsorted(self.codes, wanted, "left").tolist()
        last = np.searchsorted(self.codes, wanted, "right").tolist()
        return [np.array(self.rows[a:b]) for a, b in zip(first, last, strict=True)]


@dataclass(frozen=True, slots=True)
class Lookup:
    """The tables of an index, `lookup/*_codes.npy` and `lookup/*_rows.npy`."""

    ids: Table  # by id
    dois: Table  # by the `id_key` of ids and DOIs that are DOIs
    titles: Table  # by `title_codes`
    authors: Table  # by the `name_key` of each author

    def write(self, folder: Path) -> None:
        """Write the tables into the folder of an index."""
        (folder / "lookup").mkdir()
        for field in fields(self):
            table: Table = getattr(self, field.name)
            save_array(folder / "lookup" / f"{field.name}_codes.npy", table.codes)
            save_array(folder / "lookup" / f"{field.name}_rows.npy", table.rows)


def open_lookup(folder: Path) -> Lookup:
    """Map the tables of an index into memory; their content is not read. OSError or ValueError if it is none."""

    def table(name: str) -> Table:
        codes = open_array(folder / "lookup" / f"{name}_codes.npy", np.uint64)
        return Table(
            codes,
            open_array(
                folder / "lookup" / f"{name}_rows.npy", np.int32, length=len(codes)
            ),
        )

    return Lookup(*(table(field.name) for field in fields(Lookup)))


# --- Papers


@contextmanager
def write_rows(path: Path, schema: Any) -> Generator[Callable[..., None]]:
    """Yield a function that adds a row to an Arrow file, which is complete when the block ends.

    One batch is in memory at a time.
    """
    rows: list[Sequence[Any]] = []
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, schema) as writer,
    ):

        def flush() -> None:
            if rows:
                columns = dict(zip(schema.names, zip(*rows, strict=True), strict=True))
                writer.write_batch(pa.RecordBatch.from_pydict(columns, schema))
                rows.clear()

        def add(*row: Any) -> None:
            rows.append(row)
            if len(rows) == BATCH:
                flush()

        yield add
        flush()


def merge_rows(
    path: Path,
    schema: Any,
    files: Iterable[tuple[Path, Rows]],
    columns: Mapping[str, Any],
) -> int:
    """Write an Arrow file of the rows of others that stay, as `write_rows` would; one batch is in memory at a time.

    A row belongs to the paper that its column `row` states, or is that paper.

    Args:
        path: The file.
        schema: That of all files.
        files: Each with the new row of each of its papers, rising from file to file; -1 for those that are dropped.
            A file that does not exist has no rows.
        columns: What replaces columns of the files.

    Returns:
        The number of rows that stay.

    Raises:
        ValueError: If a file is not of the schema, or damaged.
    """
    tables: list[Any] = []
    rows: list[Rows] = []
    for file, places in files:
        if file.is_file():
            table = open_table(file, schema)
            check_table(table)
            numbers = np.arange(len(table))
            if "row" in schema.names:
                numbers = table["row"].to_numpy()
                check_rows("row", numbers, len(places))
            rows.append(places[numbers])
            tables.append(table)
    if not tables:
        return 0
    of_papers = np.concatenate(rows)
    keep = of_papers >= 0
    if "row" in schema.names:
        columns = {**columns, "row": of_papers}
    merged = pa.concat_tables(tables)
    for name, column in columns.items():
        number = schema.get_field_index(name)
        merged = merged.set_column(number, schema.field(number), pa.array(column))
    path.parent.mkdir(exist_ok=True)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for kept in batched(np.flatnonzero(keep), BATCH):
            start = int(kept[0])
            end = int(kept[-1]) + 1
            part = merged.slice(start, end - start).filter(pa.array(keep[start:end]))
            writer.write_table(part.combine_chunks())
    return int(np.count_nonzero(keep))


@contextmanager
def write_papers(path: Path) -> Generator[Callable[[Paper], None]]:
    """Yield a function that adds a paper to an Arrow file; its row number is the number of papers before it."""
    columns = attrgetter(*SCHEMA.names)
    with write_rows(path, SCHEMA) as add:
        # only a year may be None
        yield lambda paper: add(*(NO_YEAR if v is None else v for v in columns(paper)))


class Papers:
    """The papers of an index, read on demand from a memory-mapped file."""

    lookup: Lookup  # set where an index is opened

    def __init__(self, path: Path) -> None:
        """Map the papers into memory; OSError or ValueError if it is not a file that `write_papers` wrote."""
        self.table: pa.Table = open_table(path, SCHEMA)

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, row: int) -> Paper:
        """Return the paper at `row`, without its references, which are in the graph."""
        return self.at([row])[row]

    def at(self, rows: Iterable[int]) -> dict[int, Paper]:
        """Return the papers at `rows`, by row; much faster than one by one."""
        by_row: dict[int, Paper] = {}
        for batch, group in groupby(sorted(set(rows)), key=lambda row: row // BATCH):
            group_rows = list(group)
            offsets = _as_rows([row - batch * BATCH for row in group_rows])
            names = self.table.column_names
            columns = [
                self.table[name].chunk(batch).take(offsets).to_pylist()
                for name in names
            ]
            for row, values in zip(group_rows, zip(*columns, strict=True), strict=True):
                record: Json = dict(zip(names, values, strict=True))
                record["year"] = record["year"] or None
                record["authors"] = tuple(record["authors"] or ())
                by_row[row] = Paper(**record)
        return by_row

    @cached_property
    def years(self) -> Years:
        """The year of each row, shape (n,); `NO_YEAR` where unknown."""
        chunks = self.table["year"].chunks
        years = [
            np.frombuffer(c.buffers()[1], np.int32, len(c), 4 * c.offset)
            for c in chunks
        ]
        return concatenated(years, np.int32)

    @cached_property
    def retracted(self) -> Rows:
        """The rows of the retracted papers, rising."""
        flags = self.column("retracted")
        bits = np.frombuffer(flags.buffers()[1], np.uint8)
        return np.flatnonzero(
            np.unpackbits(bits, count=len(flags), bitorder="little")
        ).astype(np.int32)

    @cached_property
    def ids(self) -> npt.NDArray[np.object_]:
        """The docid of each row, shape (n,). All of them are loaded into memory: for batch work only."""
        return self.table["id"].to_numpy()

    def counts(self) -> dict[str, int]:
        """Return how many papers there are, and how many without a title, with an abstract, undated and retracted."""
        texts = {
            name: sum(
                int(np.count_nonzero(np.diff(_ends(chunk))))
                for chunk in self.table[name].chunks
            )
            for name in ("title", "abstract")
        }
        return {
            "papers": len(self),
            "empty_titles": len(self) - texts["title"],
            "with_abstract": texts["abstract"],
            "without_year": int(np.count_nonzero(self.years == NO_YEAR)),
            "retracted": len(self.retracted),
        }

    @cached_property
    def has_authors(self) -> bool:
        """Whether any paper has an author."""
        return any(
            np.diff(_ends(chunk)).any() for chunk in self.table["authors"].chunks
        )

    def lengths(self, name: str, rows: Rows) -> Counts:
        """Return the bytes of a text, or the number of authors, of some rows, shape of `rows`; no text is read."""
        lengths = np.zeros(len(rows), np.int64)
        batches = rows // BATCH
        for batch in np.unique(batches).tolist():
            of_batch = np.flatnonzero(batches == batch)
            ends = _ends(self.table[name].chunk(batch))
            places = rows[of_batch] - batch * BATCH
            lengths[of_batch] = ends[places + 1] - ends[places]
        return lengths

    def texts(self, name: str, rows: Rows) -> Any:
        """Return a text column for some rows, in the order of `rows`, as an Arrow array."""
        return texts_at(self.table, name, rows)

    def column(self, name: str) -> Any:
        """Return a text column as one Arrow array."""
        chunks = self.table[name].chunks
        return pa.concat_arrays(chunks) if chunks else _NO_TEXTS

    def authors(self) -> tuple[Any, Counts]:
        """Return the names of all authors as one Arrow array, and how many each row has, shape (n,)."""
        chunks = self.table["authors"].chunks
        names = (
            pa.concat_arrays([chunk.flatten() for chunk in chunks])
            if chunks
            else _NO_TEXTS
        )
        counts = [np.diff(_ends(chunk)) for chunk in chunks]
        return names, concatenated(counts, np.int64)

    def ids_at(self, rows: Iterable[int]) -> list[str]:
        """Return the docids of some rows."""
        return [self._id(int(row)) for row in rows]

    def rows_of(self, docids: Sequence[str]) -> Rows:
        """Return the rows of docids, shape (len(docids),); -1 for a docid that is not in the index."""
        pairs = zip(docids, self.lookup.ids.rows_of(docids), strict=True)
        found = [
            next((row for row in rows.tolist() if self._id(row) == docid), -1)
            for docid, rows in pairs
        ]
        return np.array(found, np.int32)

    def _id(self, row: int) -> str:
        batch, offset = divmod(row, BATCH)
        return self.table["id"].chunk(batch)[offset].as_py()


def no_later(papers: Years, queries: Years | np.int32) -> Flags:
    """Return which papers are of no later year than the queries, by their years; shapes broadcast.

    A paper of an unknown year is not known to be later, and for a query of an unknown year no paper is.
    """
    return (papers <= queries) | (queries == NO_YEAR)


def codes(texts: Any) -> tuple[Any, Rows]:
    """Return the distinct texts of an Arrow array, and the number of each text among them, shape (len(texts),)."""
    encoded = texts.dictionary_encode()
    return encoded.dictionary, np.frombuffer(
        encoded.indices.buffers()[1], np.int32, len(texts)
    )


def texts_at(table: Any, name: str, rows: Rows) -> Any:
    """Return a text column of a table for some rows, in the order of `rows`, as an Arrow array."""
    order = np.argsort(rows, kind="stable")
    parts = [
        table[name].chunk(batch).take(_as_rows([row - batch * BATCH for row in group]))
        for batch, group in groupby(rows[order].tolist(), key=lambda row: row // BATCH)
    ]
    inverse = _as_rows(np.argsort(order).tolist())
    return pa.concat_arrays(parts).take(inverse) if parts else _NO_TEXTS


def open_table(path: Path, schema: Any) -> Any:
    """Map a table of a schema into memory; ValueError if it is none, or is missing.

    Its messages are read one after the other, and a compressed one is refused: it might be thousands of times as large
    in memory. Offsets and texts are not checked; see `check_content`.
    """
    try:
        source = pa.memory_map(str(path))
        source.seek(len(b"ARROW1\0\0"))
        messages = pa.ipc.MessageReader.open_stream(source)
        found = pa.ipc.read_schema(messages.read_next_message())
        if found != schema:
            raise ValueError(f"it has other columns: {', '.join(found.names)}"[:120])
        batches: list[Any] = []
        for message in messages:
            if _is_compressed(message.metadata):
                raise ValueError("it is compressed")
            batches.append(pa.ipc.read_record_batch(message, schema))
        for number, batch in enumerate(batches, start=1):
            batch.validate()  # sizes of buffers
            if any(column.null_count for column in batch.columns):
                raise ValueError("a value is null")
            if not 0 < len(batch) <= BATCH or (
                len(batch) < BATCH and number < len(batches)
            ):
                raise ValueError(f"batch {number} holds {len(batch):,} rows")
    except (*_ARROW_ERRORS, OSError, StopIteration, struct.error) as error:
        raise ValueError(one_line(str(error))[:120] or "it is cut off") from error
    return pa.Table.from_batches(batches, schema)


def _is_compressed(metadata: Any) -> bool:
    """Whether a message states a compression, by its FlatBuffers: field 2 of a message, field 3 of a record batch."""

    def read(kind: str, place: int) -> int:
        return struct.unpack_from(kind, metadata, place)[0]

    def field(table: int, number: int) -> int:
        """Return where a field of a table is; the table itself if it has none."""
        fields = table - read("<i", table)
        place = 4 + 2 * number
        return table + (read("<H", fields + place) if place < read("<H", fields) else 0)

    header = field(read("<I", 0), 2)
    batch = header + read("<I", header)
    return field(batch, 3) != batch


def check_table(table: Any) -> None:
    """Read every value of a table; ValueError if a text is not UTF-8, an offset is wrong, or a list has a null."""
    try:
        for column in table.columns:
            for chunk in column.chunks:
                chunk.validate(full=True)
                if pa.types.is_list(chunk.type) and chunk.values.null_count:
                    raise ValueError("a value is null")
    except _ARROW_ERRORS as error:
        raise ValueError(one_line(str(error))[:120]) from error


def _ends(chunk: Any) -> Rows:
    """Return the offsets of the texts or lists of a chunk, shape (len(chunk) + 1,)."""
    return np.frombuffer(chunk.buffers()[1], np.int32, len(chunk) + 1)


def _as_rows(numbers: Sequence[int]) -> Any:
    content = pa.py_buffer(np.array(numbers, np.int32))
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, content])
