"""Keeps the test papers of one dataset out of the training of another: drops train queries of the same title.

So the reranker paper trains on Open Research for DBLP and PubMed (section 4.1).
"""

from collections.abc import Iterator
from pathlib import Path

from citerec.corpus.readers import detect_format, read_papers
from citerec.corpus.readers.source import find_source
from citerec.corpus.splits import FOLDER as SPLITS
from citerec.corpus.splits import read_ids
from citerec.datasets.dataset import DatasetError
from citerec.datasets.record import Record, read_record, write_record
from citerec.datasets.titles import same_titles
from citerec.errors import ConfigError, writing
from citerec.types import Paper, Progress

TRAIN, HELD_OUT = "train.ids", ("dev.ids", "test.ids")


def drop_train_queries(folder: Path, other: Path, tell: Progress) -> int:
    """Drop the train queries of a dataset whose title is that of a dev or test query of another.

    The queries alone: the papers stay in the corpus, and may be cited. Done twice, it drops nothing more.

    Args:
        folder: The dataset, fetched; its `splits/train.ids` is written anew.
        other: The dataset whose queries are held out, fetched.
        tell: Is told how many titles have been compared.

    Returns:
        How many were dropped.

    Raises:
        DatasetError: If one of the two was not fetched, or has no splits.
        ConfigError: If they are one.
    """
    if folder.resolve() == other.resolve():
        raise ConfigError(f"{folder} cannot be kept apart from itself; name another dataset")
    record, held_out = fetched(folder), fetched(other)
    asked = {docid for name in HELD_OUT for docid in read_ids(other / SPLITS / name)}
    against = [paper.title for paper in _papers(other) if paper.id in asked]
    same = _same_as(folder, against, record.counts.get("papers", 0), tell)
    dropped = _drop(folder / SPLITS / TRAIN, same)
    write_record(folder, record.leaving_out(held_out.dataset, dropped))
    return dropped


def fetched(folder: Path) -> Record:
    """Return the record of a dataset that was fetched and has splits.

    Raises:
        DatasetError: If it is none.
    """
    record = read_record(folder)
    if record is None or not (folder / SPLITS / TRAIN).is_file():
        raise DatasetError(
            f"{folder} holds no dataset with splits; fetch it: citerec datasets fetch {folder.name}"
        )
    return record


def _same_as(folder: Path, against: list[str], papers: int, tell: Progress) -> set[str]:
    """Return the ids of the papers whose title is one of `against`."""
    same, ids, first = set[str](), list[str](), 0  # the ids are those of the batch on its way

    def titles() -> Iterator[str]:
        for paper in _papers(folder):
            ids.append(paper.id)
            yield paper.title

    def compared(done: int) -> None:
        nonlocal first
        first = done
        ids.clear()
        tell("titles", done, papers)

    for place, _ in same_titles(titles(), against, tell=compared):
        same.add(ids[place - first])
    return same


def _papers(folder: Path) -> Iterator[Paper]:
    source = find_source(folder)
    for located in read_papers(source, detect_format(source)):
        if isinstance(located.paper, Paper):
            yield located.paper


def _drop(file: Path, ids: set[str]) -> int:
    """Write a file of ids without some of them; return how many these were."""
    dropped = 0
    beside = file.with_name(f".{file.name}.new")
    with (
        writing(file),
        file.open(encoding="utf-8") as old,
        beside.open("w", encoding="utf-8") as new,
    ):
        for line in old:
            if line.removesuffix("\n") in ids:
                dropped += 1
            else:
                new.write(line)
    with writing(file):
        beside.replace(file)
    return dropped
