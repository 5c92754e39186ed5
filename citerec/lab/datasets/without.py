"""Holds the test papers of one dataset out of the training on another: drops the train queries of the same papers.

The reranker paper trains on Open Research for DBLP and PubMed in this way (section 4.1). Held out are the dev and test
queries of a dataset, matched by title, since ids differ between datasets. SciDocs has no queries; all its papers are
held out, matched by title or id, which it shares with Open Research (both are of Semantic Scholar).
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from citerec.corpus.readers import detect_format, read_papers
from citerec.corpus.readers.source import find_source
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import read_ids
from citerec.errors import BadInputError, ConfigError, writing
from citerec.io import replacing
from citerec.lab.datasets.catalogue import DatasetError
from citerec.lab.datasets.fetch import DatasetRecord, read_record, write_record
from citerec.lab.datasets.titles import same_titles
from citerec.lab.scidocs.layout import METADATA, read_json
from citerec.types import Paper, Progress

TRAIN, HELD_OUT = "train.ids", ("dev.ids", "test.ids")
SCIDOCS = "scidocs"


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """Papers that may not be train queries."""

    titles: list[str]
    ids: Set[str] = frozenset()  # if both datasets use the same ids


def drop_train_queries(folder: Path, other: Path, progress: Progress) -> int:
    """Drop the train queries of a dataset that are held-out papers of another.

    The papers stay in the corpus and can still be cited. A second call drops nothing more. The dropped ids are in
    `splits/without_<other>.ids`, which is written first, so that their number is right after an interruption.

    Args:
        folder: A fetched dataset; its `splits/train.ids` is rewritten.
        other: The fetched dataset with the held-out papers.
        progress: Receives the number of compared titles.

    Returns:
        The number of dropped queries.

    Raises:
        DatasetError: If a dataset was not fetched, or has no splits.
        BadInputError: If a file of a dataset cannot be read.
        ConfigError: If both are the same folder.
    """
    if folder.resolve() == other.resolve():
        raise ConfigError(f"{folder} cannot be held out of itself; choose another dataset")
    record, name = _with_splits(folder), fetched(other).dataset
    held_out = _scidocs_papers(other) if name == SCIDOCS else _queries(other)
    same = (
        _same_as(folder, held_out.titles, record.counts.get("papers", 0), progress) | held_out.ids
    )
    train, dropped = folder / SPLITS / TRAIN, folder / SPLITS / f"without_{name}.ids"
    before = read_ids(dropped) if dropped.is_file() else []
    queries = read_ids(train)
    newly_dropped = [docid for docid in queries if docid in same]
    all_dropped = list(dict.fromkeys([*before, *newly_dropped]))
    _write_ids(dropped, all_dropped)
    _write_ids(train, [docid for docid in queries if docid not in same])
    write_record(folder, replace(record, without={**record.without, name: len(all_dropped)}))
    return len(newly_dropped)


def fetched(other: Path) -> DatasetRecord:
    """Return the record of a fetched dataset with papers that can be held out.

    Raises:
        DatasetError: If it is none.
    """
    record = read_record(other)
    if record is not None and record.dataset == SCIDOCS:
        return record
    return _with_splits(other)


def _with_splits(folder: Path) -> DatasetRecord:
    record = read_record(folder)
    if record is None or not (folder / SPLITS / TRAIN).is_file():
        raise DatasetError(
            f"{folder} contains no dataset with splits; fetch it: citerec datasets fetch {folder.name}"
        )
    return record


def _queries(other: Path) -> _HeldOut:
    query_ids = {docid for name in HELD_OUT for docid in read_ids(other / SPLITS / name)}
    return _HeldOut([paper.title for paper in _papers(other) if paper.id in query_ids])


def _scidocs_papers(other: Path) -> _HeldOut:
    """Read the ids and titles of all papers of SciDocs; one file in memory at a time."""
    titles = dict[str, str]()
    for name in METADATA:
        records = read_json(other / name)
        titles |= {paper: _title(other / name, paper, raw) for paper, raw in records.items()}
    return _HeldOut(list(dict.fromkeys(titles.values())), frozenset(titles))


def _title(path: Path, paper: str, raw: Any) -> str:
    title = raw.get("title") or "" if isinstance(raw, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(title, str):
        raise BadInputError(path, f"the title of paper {paper!r} is no text")
    return title


def _same_as(folder: Path, against: list[str], papers: int, progress: Progress) -> set[str]:
    """Return the ids of the papers whose title equals one of `against`."""
    same, ids, first = set[str](), list[str](), 0  # `ids` are those of the current batch

    def titles() -> Iterator[str]:
        for paper in _papers(folder):
            ids.append(paper.id)
            yield paper.title

    def compared(done: int) -> None:
        nonlocal first
        first = done
        ids.clear()
        progress("titles", done, papers)

    for place, _ in same_titles(titles(), against, progress=compared):
        same.add(ids[place - first])
    return same


def _papers(folder: Path) -> Iterator[Paper]:
    source = find_source(folder)
    for located in read_papers(source, detect_format(source)):
        if isinstance(located.paper, Paper):
            yield located.paper


def _write_ids(file: Path, ids: list[str]) -> None:
    """Write a file of ids, whole or not at all."""
    with writing(file), replacing(file) as temporary:
        temporary.write_text("".join(f"{docid}\n" for docid in ids), encoding="utf-8")
