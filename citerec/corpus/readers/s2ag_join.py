"""Joins the dumps of the Semantic Scholar Academic Graph on disk, by DuckDB within a memory limit.

Lines are parsed here, so that a fault has its file and line, and appended to tables. DuckDB sorts the tables by corpus
id; they are then read together, a range of corpus ids at a time. Source: https://duckdb.org/docs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pyarrow as pa

from citerec.corpus.readers import s2ag
from citerec.corpus.readers.fields import Fields
from citerec.corpus.readers.streams import Broken, Located, located, read_file
from citerec.errors import BadRecordError, OutputError, extra
from citerec.types import Log

MEMORY = (
    256,
    4096,
)  # the least and the greatest memory limit of DuckDB, in MB; beyond it, DuckDB uses the disk
SHARE = 32  # the limit is this part of the packed dumps: a sort in too little memory fails
PER_THREAD = 256  # MB
BATCH = 8_192  # rows that are appended or read at once
_TEXT, _NUMBER = pa.string(), pa.int64()
_SCHEMAS = {
    "papers": pa.schema(
        {"corpus": _NUMBER, "file": pa.int32(), "line": _NUMBER, "record": _TEXT}.items()
    ),
    "abstracts": pa.schema({"corpus": _NUMBER, "text": _TEXT}.items()),
    "citations": pa.schema({"citing": _NUMBER, "cited": _NUMBER}.items()),
    "paper-ids": pa.schema({"corpus": _NUMBER, "sha": _TEXT}.items()),
}
_KEPT = ("title", "externalids", "url", "authors", "venue", "year", "publicationtypes", "journal")
_SORT = """
CREATE TABLE abstract AS SELECT corpus, any_value(text) AS text FROM abstracts
    SEMI JOIN papers USING (corpus) GROUP BY corpus ORDER BY corpus;
DROP TABLE abstracts;
CREATE TABLE sha AS SELECT corpus, min(sha) AS sha FROM "paper-ids" GROUP BY corpus;
DROP TABLE "paper-ids";
CREATE TABLE edge AS SELECT citing, cited AS number, coalesce(sha, cited::VARCHAR) AS cited FROM
    (SELECT DISTINCT citing, cited FROM citations SEMI JOIN papers ON citing = corpus) AS c
    LEFT JOIN sha ON c.cited = sha.corpus ORDER BY citing, number;
DROP TABLE citations;
CREATE TABLE paper AS SELECT papers.*, coalesce(sha, papers.corpus::VARCHAR) AS id
    FROM papers LEFT JOIN sha USING (corpus) ORDER BY corpus, file, line;
DROP TABLE papers; DROP TABLE sha;
"""
_READ = """
WITH part AS (SELECT *, rowid AS row FROM paper WHERE rowid >= $first AND rowid < $last),
    span AS (SELECT min(corpus) AS low, max(corpus) AS high FROM part),
    its AS (SELECT citing, list(cited ORDER BY number) AS cited FROM edge
        WHERE citing >= (SELECT low FROM span) AND citing <= (SELECT high FROM span) GROUP BY citing)
SELECT part.file, part.line, part.record, part.id, a.text, its.cited FROM part
    LEFT JOIN (SELECT * FROM abstract
        WHERE corpus >= (SELECT low FROM span) AND corpus <= (SELECT high FROM span)) AS a USING (corpus)
    LEFT JOIN its ON part.corpus = its.citing ORDER BY part.row
"""


def joined(
    files: Mapping[str, Sequence[Path]],
    read_bytes: Callable[[int], None],
    log: Log,
    scratch: Path | None,
) -> Iterator[Located]:
    """Yield the papers with their abstracts and references, after the faults of all dumps.

    Args:
        files: By the kind of the dump.
        read_bytes: Receives from time to time how many more bytes have been read.
        log: Receives what is joined.
        scratch: Where the temporary tables go; the system's folder for temporary files if None.

    Raises:
        BadInputError: If a file cannot be read to its end.
        MissingExtraError: If DuckDB is not installed.
        OutputError: If the disk is full.
    """
    with extra("corpora"):
        import duckdb

    with TemporaryDirectory(prefix=".joining-", dir=scratch, ignore_cleanup_errors=True) as folder:
        try:
            with closing(
                duckdb.connect(f"{folder}/tables", config=_config(folder, files))
            ) as tables:
                tables.execute("SET enable_progress_bar = false")  # it would go to stdout
                yield from _fill(tables, files, read_bytes)
                counts = {kind: _count(tables, kind) for kind in files}
                log("joining " + ", ".join(f"{n:,} {kind}" for kind, n in counts.items() if n))
                for statement in filter(str.strip, _SORT.split(";")):
                    tables.execute(statement)
                yield from _papers(tables, files["papers"])
        except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
            reason = str(error).splitlines()[0][:200]
            raise OutputError(f"cannot join the dumps in {folder}: {reason}") from error


def _config(folder: str, files: Mapping[str, Sequence[Path]]) -> Any:
    """Return the settings of DuckDB: memory by the size of the dumps, temporary files in `folder`, no extensions."""
    size = sum(file.stat().st_size for dumps in files.values() for file in dumps)
    least, most = MEMORY
    memory = min(max(size // SHARE >> 20, least), most)
    return {
        "memory_limit": f"{memory}MB",
        "threads": min(memory // PER_THREAD, cpu_count() or 1),
        "temp_directory": f"{folder}/spill",
        "allow_unsigned_extensions": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }


def _fill(
    tables: Any, files: Mapping[str, Sequence[Path]], read_bytes: Callable[[int], None]
) -> Iterator[Located]:
    """Append the records of all files to the tables; yield the faults."""
    for kind, schema in _SCHEMAS.items():
        columns = ", ".join(f"{f.name} {_sql(f.type)}" for f in schema)
        tables.execute(f'CREATE TABLE "{kind}" ({columns})')
        rows: list[tuple[Any, ...]] = []
        for number, file in enumerate(files[kind]):
            for line, record in read_file(file, s2ag.records, read_bytes):
                if isinstance(record, Broken):
                    yield located(file, line, record, s2ag.read)
                    continue
                try:
                    row = _row(kind, Fields(record, file, line), number)
                except BadRecordError as error:
                    yield Located(file, line, error)
                    continue
                if row:
                    rows.append(row)
                if len(rows) == BATCH:
                    _append(tables, kind, rows)
        _append(tables, kind, rows)


def _row(kind: str, fields: Fields, file: int) -> tuple[Any, ...]:
    """Return a record as a row of its table; empty if it is not needed."""
    record = fields.record
    if kind == "citations":
        if record.get("citedcorpusid") is None or record.get("citingcorpusid") is None:
            return ()  # a reference that Semantic Scholar does not know
        return s2ag.corpus_id(fields, "citingcorpusid"), s2ag.corpus_id(fields, "citedcorpusid")
    corpus = s2ag.corpus_id(fields)
    if kind == "papers":
        kept = {key: record[key] for key in _KEPT if key in record}
        return corpus, file, fields.line, orjson.dumps(kept).decode()
    if kind == "abstracts":
        return (corpus, text) if (text := fields.text("abstract")) else ()
    sha = fields.id("sha")
    return (corpus, sha) if record.get("primary") is not False else ()


def _append(tables: Any, kind: str, rows: list[tuple[Any, ...]]) -> None:
    """Append rows to a table, and forget them."""
    if not rows:
        return
    columns = zip(*rows, strict=True)
    types = zip(columns, _SCHEMAS[kind], strict=True)
    batch = pa.table([pa.array(column, f.type) for column, f in types], schema=_SCHEMAS[kind])
    tables.register("batch", batch)
    tables.execute(f'INSERT INTO "{kind}" SELECT * FROM batch')
    tables.unregister("batch")
    rows.clear()


def _papers(tables: Any, files: Sequence[Path]) -> Iterator[Located]:
    count = _count(tables, "paper")
    for first in range(0, count, BATCH):
        found = tables.execute(_READ, {"first": first, "last": first + BATCH}).fetchall()
        for file, line, record, docid, abstract, cited in found:
            row = {**orjson.loads(record), "id": docid, "abstract": abstract, "citations": cited}
            yield located(files[file], line, row, s2ag.read)


def _count(tables: Any, name: str) -> int:
    return tables.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]


def _sql(kind: Any) -> str:
    return "VARCHAR" if kind == _TEXT else "INTEGER" if kind == pa.int32() else "BIGINT"
