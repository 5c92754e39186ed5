"""Which papers are train queries, and which are held out: dev and test queries, also those of other indexes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.bibliography.keys import title_key
from citerec.corpus.queries import QUERIES, open_queries
from citerec.corpus.splits import read_ids
from citerec.folder import IndexFolder

HELD_OUT = ("dev", "test")  # the splits whose queries no model is trained on

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]


def held_out_rows(index: IndexFolder) -> Rows:
    """Return the rows of the dev and test queries that are papers of an index, rising."""
    return _rows(index, HELD_OUT)


def train_rows(index: IndexFolder) -> Rows:
    """Return the rows of the train papers of an index, rising.

    In a corpus with queries of its own, these are all papers except those with the id of a dev or test query.
    """
    if _ships_queries(index):
        return np.setdiff1d(np.arange(len(index.papers), dtype=np.int32), held_out_rows(index))
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
            [i not in self.ids and title_key(t) not in self.titles for i, t in pairs], np.bool_
        )


def held_out(indexes: Iterable[IndexFolder], splits: Sequence[str]) -> HeldOut:
    """Return the queries of some splits of some indexes: no index that shares papers with them trains on these."""
    ids: set[str] = set()
    titles: set[str] = set()
    for index in indexes:
        split_ids = _ids(index, splits)
        rows = index.papers.rows_of(split_ids)
        papers = index.papers.at(rows[rows >= 0].tolist())
        titles.update(title_key(paper.title) for paper in papers.values())
        ids.update(split_ids)
        if _ships_queries(index) and (shipped := open_queries(index.splits)):
            queries = [shipped.queries[i] for i in split_ids if i in shipped.queries]
            titles.update(title_key(query.title) for query in queries)
    return HeldOut(frozenset(ids), frozenset(titles) - {""})


def _ships_queries(index: IndexFolder) -> bool:
    return (index.splits / QUERIES).is_file()


def _ids(index: IndexFolder, splits: Sequence[str]) -> list[str]:
    return [docid for split in splits for docid in read_ids(index.splits / f"{split}.ids")]


def _rows(index: IndexFolder, splits: Sequence[str]) -> Rows:
    rows = index.papers.rows_of(_ids(index, splits))
    return np.unique(rows[rows >= 0]).astype(np.int32)
