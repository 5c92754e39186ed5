"""Queries that are not papers of the corpus, with the papers that they cite, as BEIR folders ship them.

An index stores them in `splits/`: `queries.jsonl` (canonical records) and `gold.json`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.corpus.splits import SPLITS
from citerec.errors import BadInputError
from citerec.inputs import read_lines, reading
from citerec.types import Query

QUERIES, GOLD = "queries.jsonl", "gold.json"


@dataclass(frozen=True, slots=True)
class ShippedQueries:
    """Queries and, for each split, the docids that each of its queries cites."""

    queries: Mapping[str, Query]  # by id
    gold: Mapping[str, Mapping[str, frozenset[str]]]  # split -> query id -> docids

    @property
    def splits(self) -> dict[str, list[str]]:
        """The ids of the queries of each split."""
        return {name: list(self.gold.get(name, {})) for name in SPLITS}


def shipped_queries(folder: Path) -> ShippedQueries | None:
    """Read `queries.jsonl` and `qrels/*.tsv` next to a corpus; return None if there are none.

    Raises:
        BadInputError: If a file cannot be read, a query occurs twice with different texts, or the qrels name
            a query that is missing.
    """
    from citerec.run import read_qrels

    files = {name: folder / "qrels" / f"{name}.tsv" for name in SPLITS}
    with reading(folder):
        files = {name: file for name, file in files.items() if file.is_file()}
        names = [f"{QUERIES}{packed}" for packed in ("", ".gz", ".zst", ".bz2")]
        queries_file = next((folder / name for name in names if (folder / name).is_file()), None)
    if queries_file is None or not files:
        return None
    queries = _beir_queries(queries_file)
    gold = {name: read_qrels(file) for name, file in files.items()}
    for name, qrels in gold.items():
        if unknown := sorted(qrels.keys() - queries.keys()):
            raise BadInputError(files[name], f"query {unknown[0]!r} is not in {queries_file.name}")
    return ShippedQueries(queries, gold)


def write_queries(folder: Path, shipped: ShippedQueries) -> None:
    """Write queries and their gold into the splits folder of an index."""
    folder.mkdir(exist_ok=True)
    lines = [orjson.dumps(asdict(query)) + b"\n" for query in shipped.queries.values()]
    (folder / QUERIES).write_bytes(b"".join(lines))
    gold = {
        name: {qid: sorted(docids) for qid, docids in qrels.items()}
        for name, qrels in shipped.gold.items()
    }
    (folder / GOLD).write_bytes(orjson.dumps(gold))


def open_queries(folder: Path) -> ShippedQueries | None:
    """Open the queries that `write_queries` wrote; return None if there are none.

    Raises:
        BadInputError: If they cannot be parsed.
    """
    if not (folder / QUERIES).is_file():
        return None
    try:
        return _opened(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(repr(error).split())[:120]
        raise BadInputError(folder, f"its queries cannot be parsed ({reason})") from error


def _opened(folder: Path) -> ShippedQueries:
    records = (orjson.loads(line) for line in (folder / QUERIES).read_bytes().splitlines())
    lists = ("authors", "corpus_ids")
    queries = [
        Query(
            **record
            | {name: tuple(record.get(name, ())) for name in lists}
            | {
                "title": record["title"] or record["id"]
            }  # indexes of format 1 may hold an empty one
        )
        for record in records
    ]
    gold = {
        name: {qid: frozenset(docids) for qid, docids in qrels.items()}
        for name, qrels in orjson.loads((folder / GOLD).read_bytes()).items()
    }
    return ShippedQueries({query.id: query for query in queries}, gold)


def _beir_queries(path: Path) -> dict[str, Query]:
    from citerec.corpus.readers import parse_record

    queries: dict[str, Query] = {}
    for number, line in read_lines(path):
        fields = parse_record(path, number, line)
        metadata: Any = fields.record.get("metadata")
        year = fields.inner("metadata").year() if isinstance(metadata, dict) else None
        if not (title := fields.title("text")):
            fields.fail("'text' is empty; a query needs at least one word")
        query = Query(id=fields.id("_id"), title=title, year=year)
        if queries.setdefault(query.id, query) != query:
            fields.fail(f"query {query.id!r} occurs above with another text; expected it once")
    return queries
