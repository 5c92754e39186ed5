"""Files of a collection: responses that were received (SQLite), and the finished corpus.

Every response is committed before it is used, so that a killed run loses one request at most. The corpus is written at
the end; each file appears whole, and `collection.json`, the last one, names the checksum of the papers.
"""

import gzip
import hashlib
import shutil
import sqlite3
import time
import zlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from citerec.collect.service import SourceName
from citerec.corpus.readers import Source, read_papers
from citerec.errors import BadInputError, OutputError, writing
from citerec.io import MAX_RECORD, replacing
from citerec.text import csv_cell
from citerec.types import Paper

PAPERS, RECORD, UNRESOLVED = "papers.jsonl.gz", "collection.json", "unresolved.tsv"
WORK = ".collect"  # readers of corpora skip folders whose name begins with a dot
_KINDS = {"seeds": list, "runs": list, "query": dict, "finished": str}  # of collection.json
MAX_AGE = 30 * 24 * 3600  # seconds after which a stored response is fetched again


class ResponseCache:
    """The responses of an unfinished run, by a hash of the request; keys of services are not in it."""

    def __init__(self, connection: sqlite3.Connection, file: Path) -> None:
        self._connection, self._file = connection, file

    def get(self, digest: str) -> bytes | None:
        """Return the body of a stored response; None if there is none."""
        with _sqlite(self._file):
            row = self._connection.execute(
                "SELECT body FROM responses WHERE digest = ?", (digest,)
            ).fetchone()
        return zlib.decompress(row[0]) if row else None

    def put(self, digest: str, request: str, body: bytes) -> None:
        """Store a response; it is on the disk when this returns.

        Args:
            digest: The hash of the request.
            request: A description of the request, without a key.
            body: The body, as JSON.
        """
        with _sqlite(self._file), self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)",
                (digest, request, time.time(), zlib.compress(body, 1)),
            )

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM responses").fetchone()[0])


@contextmanager
def open_cache(folder: Path, run: str) -> Generator[ResponseCache]:
    """Open the responses in the work folder of a corpus; those of another run are dropped.

    Args:
        folder: The folder of the corpus; created if it does not exist.
        run: What this run is: a first collection, or an update of the collection of a date.

    Raises:
        OutputError: If the folder cannot be written, or another process fills it.
    """
    work = folder / WORK
    with writing(folder):
        work.mkdir(parents=True, exist_ok=True)
    file = work / "responses.sqlite"
    with _sqlite(file):
        connection = sqlite3.connect(file, timeout=0.5)
    try:
        with _sqlite(file):
            _prepare(connection, run)
        yield ResponseCache(connection, file)
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, run: str) -> None:
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA synchronous = NORMAL")
    with connection:
        connection.execute("BEGIN EXCLUSIVE")  # no second process may fill this folder
        connection.execute("CREATE TABLE IF NOT EXISTS run (name TEXT)")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS responses (digest TEXT PRIMARY KEY, request TEXT, time REAL, body BLOB)"
        )
        if connection.execute("SELECT name FROM run").fetchall() != [(run,)]:
            connection.execute("DELETE FROM responses")
            connection.execute("DELETE FROM run")
            connection.execute("INSERT INTO run VALUES (?)", (run,))
        connection.execute("DELETE FROM responses WHERE time < ?", (time.time() - MAX_AGE,))


def remove_cache(folder: Path) -> None:
    """Remove the work folder of a finished collection."""
    shutil.rmtree(folder / WORK, ignore_errors=True)


@contextmanager
def _sqlite(file: Path) -> Generator[None]:
    """Turn errors of SQLite into an `OutputError`."""
    try:
        yield
    except sqlite3.Error as error:
        if "locked" in str(error):
            message = (
                f"{file.parent.parent} is being filled by another citerec collect; wait for its end"
            )
        elif isinstance(error, sqlite3.OperationalError):
            message = f"cannot write {file}: {error}"
        else:
            message = f"{file} is damaged ({error}); remove it, and run the command again"
        raise OutputError(message) from error


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a finished collection; empty if there is none.

    Raises:
        BadInputError: If the record is damaged.
    """
    file = folder / RECORD
    if not file.is_file():
        return {}
    try:
        with file.open("rb") as stream:
            record: Any = orjson.loads(stream.read(MAX_RECORD))
        datetime.fromisoformat(record["started"])
        if record["source"] in {*SourceName} and all(
            isinstance(record[name], kind) for name, kind in _KINDS.items()
        ):
            return record
    except (OSError, ValueError, KeyError, TypeError):  # JSONDecodeError is a ValueError
        pass
    raise BadInputError(file, "not a record of citerec collect; collect anew with --force")


def read_collected(folder: Path) -> Iterable[Paper]:
    """Yield the papers of a finished collection, in order.

    Raises:
        BadInputError: If the file is missing or damaged.
    """
    file = folder / PAPERS
    for located in read_papers(Source(folder, (file,)), "canonical"):
        if not isinstance(located.paper, Paper):
            raise located.paper
        yield located.paper


def write_corpus(
    folder: Path,
    papers: Iterable[Paper],
    unresolved: Sequence[Sequence[str]],
    record: Mapping[str, Any],
) -> dict[str, Any]:
    """Write papers, the table of unresolved references, and the record, each file whole.

    Args:
        folder: The folder of the corpus, which exists.
        papers: The papers, in order.
        unresolved: The rows of the table, the header first.
        record: What `collection.json` holds in addition to counts and checksum.

    Returns:
        The complete record.

    Raises:
        OutputError: If a file cannot be written.
    """
    with writing(folder):
        counts, checksum = _write_papers(folder / PAPERS, papers)
        _replace(folder / UNRESOLVED, "".join("\t".join(map(_cell, r)) + "\n" for r in unresolved))
        complete = {**record, "counts": counts, "papers_sha256": checksum}
        text = orjson.dumps(complete, option=orjson.OPT_INDENT_2).decode()
        _replace(folder / RECORD, f"{text}\n")
    return complete


def _write_papers(file: Path, papers: Iterable[Paper]) -> tuple[dict[str, int], str]:
    counts = {"papers": 0, "with_abstract": 0, "references": 0}
    with replacing(file) as temporary:
        with temporary.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
            for paper in papers:
                fields = {name: value for name, value in asdict(paper).items() if value}
                stream.write(orjson.dumps({"id": paper.id, "title": paper.title, **fields}) + b"\n")
                counts["papers"] += 1
                counts["with_abstract"] += bool(paper.abstract)
                counts["references"] += len(paper.citations)
        with temporary.open("rb") as written:
            checksum = hashlib.file_digest(written, "sha256").hexdigest()
    return counts, checksum


def _replace(file: Path, text: str) -> None:
    with replacing(file) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _cell(text: str) -> str:
    return csv_cell(" ".join(text.split()))
