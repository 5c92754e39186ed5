"""Which papers are train queries, which are held out, and which models were trained on the papers of an index.

Held out are dev and test queries, also those of other indexes. A rebuilt index keeps its models: papers that they were
trained on may be its test queries now. A model of the package was trained on the train papers of some corpora, and may
be evaluated on them with the same splits, and on any other corpus.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from citerec.bibliography.keys import title_key
from citerec.files.arrays import Flags, Rows
from citerec.files.checksums import TRAINING, read_record
from citerec.index.folder import IndexFolder
from citerec.index.splits import QUERIES, open_queries, read_ids, splits_sha256

HELD_OUT = ("dev", "test")  # the splits whose queries no model is trained on
# entry of a record of training: the data of the base model and of the teacher, and of those that they learned from
BASES = "base_indexes"


def held_out_rows(index: IndexFolder) -> Rows:
    """Return the rows of the dev and test queries that are papers of an index, rising."""
    return _rows(index, HELD_OUT)


def train_rows(index: IndexFolder) -> Rows:
    """Return the rows of the train papers of an index, rising.

    In a corpus with queries of its own, these are all papers except those that are a dev or test query.
    """
    if (index.splits / QUERIES).is_file():
        return np.setdiff1d(
            np.arange(len(index.papers), dtype=np.int32), held_out_rows(index)
        )
    return _rows(index, ("train",))


def train_papers(index: IndexFolder) -> Flags:
    """Return a mask of the papers at `train_rows`, shape (papers,)."""
    mask = np.zeros(len(index.papers), np.bool_)
    mask[train_rows(index)] = True
    return mask


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out queries of some splits, by id and by title."""

    ids: frozenset[str]
    titles: frozenset[str]  # normalised by `title_key`

    def allowed_mask(self, ids: Sequence[str], titles: Sequence[str]) -> Flags:
        """Return a mask of the papers that are not held out, shape (len(ids),)."""
        pairs = zip(ids, titles, strict=True)
        return np.array(
            [i not in self.ids and title_key(t) not in self.titles for i, t in pairs],
            np.bool_,
        )


def held_out(indexes: Iterable[IndexFolder], splits: Sequence[str]) -> HeldOut:
    """Return the queries of some splits of some indexes: no index that shares papers with them trains on these."""
    ids: set[str] = set()
    titles: set[str] = set()
    for index in indexes:
        split_ids = _ids(index, splits)
        rows = index.papers.rows_of(split_ids)
        titles.update(
            p.title for p in index.papers.at(rows[rows >= 0].tolist()).values()
        )
        ids.update(split_ids)
        if shipped := open_queries(index.splits):
            titles.update(
                shipped.queries[i].title for i in split_ids if i in shipped.queries
            )
    return HeldOut(frozenset(ids), frozenset(map(title_key, titles)) - {""})


def _ids(index: IndexFolder, splits: Sequence[str]) -> list[str]:
    """Return the ids of the queries of some splits, and of the papers that shipped ones were recognised as."""
    ids = [
        docid for split in splits for docid in read_ids(index.splits / f"{split}.ids")
    ]
    shipped = open_queries(index.splits)
    queries = shipped.queries if shipped else {}
    return [*ids, *(own for i in ids if i in queries for own in queries[i].corpus_ids)]


def _rows(index: IndexFolder, splits: Sequence[str]) -> Rows:
    rows = index.papers.rows_of(_ids(index, splits))
    return np.unique(rows[rows >= 0]).astype(np.int32)


Data = tuple[str, str]  # the sha256 of a corpus and that of its splits


def data_of(index: IndexFolder) -> Data:
    """Return what identifies the training data of an index; updates of the index keep it.

    OSError if a split is missing.
    """
    return index.manifest.lineage, splits_sha256(index.splits)


def trained_on_other_data(model: Path, index: IndexFolder) -> bool:
    """Return whether a model records that it was trained on other papers or splits than an index has."""
    trained = _recorded_data(model)
    return bool(trained) and data_of(index) not in trained


def trained_on_other_splits(model: Path, index: IndexFolder) -> bool:
    """Return whether a model, its base or its teacher records the papers of an index with other splits.

    Test papers of the index may then have been its train papers. A model of another corpus does not count.
    """
    data = data_of(index)
    return any(
        other[0] == data[0] and other != data for other in _data_with_bases(model)
    )


def may_know_queries(model: Path, index: IndexFolder) -> bool:
    """Return whether a model may have been trained on queries of an index.

    It, its base or its teacher records the same corpus, or it records no data. The splits are not compared: other
    splits of a corpus have other train queries, but the same papers.
    """
    corpora = {corpus for corpus, _ in _data_with_bases(model)}
    return not _recorded_data(model) or index.manifest.lineage in corpora


def recorded_indexes(models: Iterable[Path]) -> list[dict[str, str]]:
    """Return what identifies the data of models, their bases and teachers, for a record of training."""
    known = dict.fromkeys(data for model in models for data in _data_with_bases(model))
    return [
        {"corpus_sha256": corpus, "splits_sha256": splits} for corpus, splits in known
    ]


def _data_with_bases(model: Path) -> list[Data]:
    return [*_recorded_data(model), *_recorded_data(model, of_bases=True)]


def _recorded_data(model: Path, *, of_bases: bool = False) -> list[Data]:
    """Return what `data_of` returned for each index of a model, or of its bases and teachers; empty if unknown."""
    try:
        record: Any = orjson.loads(read_record(model / TRAINING))
        listed = record.get(BASES, []) if of_bases else record.get("indexes", [record])
        return [(record["corpus_sha256"], record["splits_sha256"]) for record in listed]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
