"""Which papers are train, dev and test queries: as shipped with the corpus, else by the protocol.

The protocol: papers that have a year, ordered by year and within a year by the sha1 of their id; the oldest 80 % are
train, the next 10 % dev, the latest 10 % test; a paper without an eligible reference is not a query.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from citerec.corpus.graph import Graph
from citerec.corpus.papers import NO_YEAR, no_later
from citerec.errors import BadInputError
from citerec.inputs import read_rows
from citerec.manifest import sha256_of

SPLITS = ("train", "dev", "test")
FOLDER = "splits"


def gold_citations(graph: Graph, years: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Return which citations count as gold, shape (citations,): those not to a paper of a later year.

    If one of the two years is unknown, the citation counts.
    """
    return no_later(years[graph.indices], years[graph.citing])


def split_by_year(
    ids: Sequence[str], years: npt.NDArray[np.int32], graph: Graph
) -> dict[str, list[str]]:
    """Split the queries of a corpus by the protocol.

    Args:
        ids: The docid of each row.
        years: The year of each row, shape (n,).
        graph: Who cites whom.

    Returns:
        The docids of each split, oldest first.
    """
    gold = gold_citations(graph, years)
    gold_counts = np.bincount(graph.citing[gold], minlength=len(ids))
    dated = [int(row) for row in np.flatnonzero(years != NO_YEAR)]
    dated.sort(key=lambda row: (years[row], hashlib.sha1(ids[row].encode()).hexdigest()))
    ends = (len(dated) * 8 // 10, len(dated) * 9 // 10, len(dated))
    splits: dict[str, list[str]] = {}
    start = 0
    for name, end in zip(SPLITS, ends, strict=True):
        splits[name] = [ids[row] for row in dated[start:end] if gold_counts[row]]
        start = end
    return splits


def shipped_splits(folder: Path) -> dict[str, list[str]] | None:
    """Read `splits/{train,dev,test}.ids` next to a corpus; return None if there are none.

    Raises:
        BadInputError: If only some of the three files exist, or an id occurs twice.
    """
    files = {name: folder / FOLDER / f"{name}.ids" for name in SPLITS}
    present = [name for name, file in files.items() if file.is_file()]
    if not present:
        return None
    if len(present) < len(SPLITS):
        missing = ", ".join(f"{name}.ids" for name in SPLITS if name not in present)
        raise BadInputError(folder / FOLDER, f"{missing} is missing; expected all three, or none")
    splits = {name: read_ids(file) for name, file in files.items()}
    seen: dict[str, str] = {}
    for name, ids in splits.items():
        for docid in ids:
            if docid in seen:
                raise BadInputError(
                    files[name], f"{docid!r} is a {seen[docid]} query, too; expected it once"
                )
            seen[docid] = name
    return splits


def read_ids(path: Path) -> list[str]:
    """Read ids, one per line; an id may contain any white space except line breaks.

    Raises:
        BadInputError: If the file cannot be read, or is not UTF-8 text.
    """
    ids: list[str] = []
    for number, row in read_rows(path, "one id a line"):
        try:
            docid = row.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            message = "not UTF-8 text; expected one id a line"
            raise BadInputError(path, message, line=number) from error
        if docid.strip():
            ids.append(docid)
    return ids


def splits_sha256(folder: Path) -> str:
    """Return one sha256 of the splits in a folder.

    Raises:
        OSError: If one of them is missing.
    """
    files = [folder / f"{name}.ids" for name in SPLITS]
    return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()


def write_splits(folder: Path, splits: dict[str, list[str]]) -> None:
    """Write each split as a file of ids, one per line."""
    folder.mkdir(exist_ok=True)
    for name, ids in splits.items():
        (folder / f"{name}.ids").write_text("".join(f"{i}\n" for i in ids), encoding="utf-8")
