"""Which queries train, dev and test hold: as shipped with the corpus, else by the protocol.

A corpus ships `splits/{train,dev,test}.ids`, the ids of papers, or BEIR's `queries.jsonl` and `qrels/*.tsv`: queries
that are no papers of it, with what they cite. An index stores the former in `splits/`, and the latter there as
`queries.jsonl` (canonical records) and `gold.json`.

The protocol: papers that have a year, ordered by year and within a year by the sha1 of their id; the oldest 80 % are
train, the next 10 % dev, the latest 10 % test; a paper without an eligible reference is not a query.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson

from citerec.errors import BadInputError
from citerec.files.arrays import Flags, Years
from citerec.files.checksums import sha256_of
from citerec.files.reading import read_rows, reading
from citerec.files.trec import Qrels, read_qrels
from citerec.index.graph import Graph
from citerec.index.papers import NO_YEAR, no_later
from citerec.types import Query

SPLITS = ("train", "dev", "test")
FOLDER = "splits"
QUERIES = "queries.jsonl"
GOLD = "gold.json"


def gold_citations(graph: Graph, years: Years) -> Flags:
    """Return which citations count as gold, shape (citations,): those not to a paper of a later year.

    If one of the two years is unknown, the citation counts.
    """
    return no_later(years[graph.indices], years[graph.citing])


def split_by_year(
    ids: Sequence[str], years: Years, graph: Graph
) -> dict[str, list[str]]:
    """Split the queries of a corpus by the protocol, `ids` and `years` being those of each row, shape (n,).

    Returns the docids of each split, oldest first.
    """
    gold = gold_citations(graph, years)
    gold_counts = np.bincount(graph.citing[gold], minlength=len(ids))
    dated = [int(row) for row in np.flatnonzero(years != NO_YEAR)]
    dated.sort(
        key=lambda row: (years[row], hashlib.sha1(ids[row].encode()).hexdigest())
    )
    ends = (0, len(dated) * 8 // 10, len(dated) * 9 // 10, len(dated))
    return {
        name: [ids[row] for row in dated[ends[n] : ends[n + 1]] if gold_counts[row]]
        for n, name in enumerate(SPLITS)
    }


def shipped_splits(folder: Path) -> dict[str, list[str]] | None:
    """Read `splits/{train,dev,test}.ids` next to a corpus; None if there are none, BadInputError if only some are."""
    files = {name: folder / FOLDER / f"{name}.ids" for name in SPLITS}
    missing = [f"{name}.ids" for name, file in files.items() if not file.is_file()]
    if len(missing) == len(SPLITS):
        return None
    if missing:
        message = f"{', '.join(missing)} is missing; expected all three, or none"
        raise BadInputError(folder / FOLDER, message)
    splits = {name: read_ids(file) for name, file in files.items()}
    seen: dict[str, str] = {}
    for name, ids in splits.items():
        for docid in ids:
            if docid in seen:
                fault = f"{docid!r} is a {seen[docid]} query, too; expected it once"
                raise BadInputError(files[name], fault)
            seen[docid] = name
    return splits


def read_ids(path: Path) -> list[str]:
    """Read ids, one per line; an id may contain any white space except line breaks. BadInputError if it is no text."""
    rows = [row for _, row in read_rows(path, "one id a line")]
    try:
        ids = [row.decode().removesuffix("\n").removesuffix("\r") for row in rows]
    except UnicodeDecodeError as error:
        raise BadInputError(path, "not UTF-8 text; expected one id a line") from error
    return [docid for docid in ids if docid.strip()]


def splits_sha256(folder: Path) -> str:
    """Return one sha256 of the splits in a folder."""
    sums = "".join(sha256_of(folder / f"{name}.ids") for name in SPLITS)
    return hashlib.sha256(sums.encode()).hexdigest()


def write_splits(folder: Path, splits: Mapping[str, Sequence[str]]) -> None:
    """Write each split as a file of ids, one per line."""
    folder.mkdir(exist_ok=True)
    for name, ids in splits.items():
        (folder / f"{name}.ids").write_text(
            "".join(f"{i}\n" for i in ids), encoding="utf-8"
        )


@dataclass(frozen=True, slots=True)
class ShippedQueries:
    """Queries and, for each split, the papers that each of its queries cites, with their grades."""

    queries: Mapping[str, Query]  # by id
    gold: Mapping[str, Qrels]  # by split

    @property
    def splits(self) -> dict[str, list[str]]:
        """The ids of the queries of each split."""
        return {name: list(self.gold.get(name, {})) for name in SPLITS}


def shipped_queries(folder: Path) -> ShippedQueries | None:
    """Read `queries.jsonl` and `qrels/*.tsv` next to a corpus; return None if there are none.

    BadInputError if a file cannot be read, a query occurs twice with different texts, or the qrels name a query that is
    missing.
    """
    # here: no query needs the readers
    from citerec.bibliography.fields import Fields
    from citerec.corpus.readers.files import json_records, read_file

    with reading(folder):
        files = {name: folder / "qrels" / f"{name}.tsv" for name in SPLITS}
        files = {name: file for name, file in files.items() if file.is_file()}
        names = [
            folder / f"{QUERIES}{packed}" for packed in ("", ".gz", ".zst", ".bz2")
        ]
        path = next(filter(Path.is_file, names), None)
    if path is None or not files:
        return None
    queries: dict[str, Query] = {}
    for number, row in read_file(path, json_records):
        if isinstance(row, str):
            raise BadInputError(path, row, line=number)
        fields = Fields(row, path, number)
        year = (
            fields.year("metadata.year")
            if isinstance(row.get("metadata"), dict)
            else None
        )
        if not (title := fields.title("text")):
            fields.fail("'text' is empty; a query needs at least one word")
        query = Query(id=fields.id("_id"), title=title, year=year)
        if queries.setdefault(query.id, query) != query:
            fields.fail(
                f"query {query.id!r} occurs above with another text; expected it once"
            )
    gold = {name: read_qrels(file) for name, file in files.items()}
    for name, qrels in gold.items():
        if unknown := sorted(qrels.keys() - queries.keys()):
            raise BadInputError(
                files[name], f"query {unknown[0]!r} is not in {path.name}"
            )
    return ShippedQueries(queries, gold)


def write_queries(folder: Path, shipped: ShippedQueries) -> None:
    """Write queries and their gold into the splits folder of an index; gold of grade 1 alone as a list."""
    folder.mkdir(exist_ok=True)
    lines = [orjson.dumps(asdict(query)) + b"\n" for query in shipped.queries.values()]
    (folder / QUERIES).write_bytes(b"".join(lines))
    gold = {
        name: {
            qid: sorted(grades)
            if max(grades.values()) == 1
            else dict(sorted(grades.items()))
            for qid, grades in qrels.items()
        }
        for name, qrels in shipped.gold.items()
    }
    (folder / GOLD).write_bytes(orjson.dumps(gold))


def open_queries(folder: Path) -> ShippedQueries | None:
    """Open the queries that `write_queries` wrote; return None if there are none."""
    if not (folder / QUERIES).is_file():
        return None
    lines = (folder / QUERIES).read_bytes().splitlines()
    gold = {
        name: {
            qid: gold if isinstance(gold, dict) else dict.fromkeys(gold, 1)
            for qid, gold in qrels.items()
        }
        for name, qrels in orjson.loads((folder / GOLD).read_bytes()).items()
    }
    queries = (Query(**orjson.loads(line)) for line in lines)
    return ShippedQueries({query.id: query for query in queries}, gold)
