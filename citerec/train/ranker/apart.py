"""Separates corpora that share papers: dev and test queries of one index are not train queries of another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.corpus.queries import QUERIES, open_queries
from citerec.corpus.splits import read_ids
from citerec.folder import IndexFolder
from citerec.query.exclude import title_key


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out queries of some splits, by id and by title."""

    ids: frozenset[str]
    titles: frozenset[str]  # normalised by `title_key`

    def allowed_mask(self, ids: Sequence[str], titles: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of the papers that are not held out, shape (len(ids),)."""
        pairs = zip(ids, titles, strict=True)
        return np.array(
            [i not in self.ids and title_key(t) not in self.titles for i, t in pairs], np.bool_
        )


def held_out(indexes: Iterable[IndexFolder], splits: Sequence[str]) -> HeldOut:
    """Return the queries of some splits of some indexes."""
    ids: set[str] = set()
    titles: set[str] = set()
    for index in indexes:
        split_ids = [i for split in splits for i in read_ids(index.splits / f"{split}.ids")]
        rows = index.papers.rows_of(split_ids)
        papers = index.papers.at(rows[rows >= 0].tolist())
        titles.update(title_key(paper.title) for paper in papers.values())
        ids.update(split_ids)
        if (index.splits / QUERIES).is_file() and (shipped := open_queries(index.splits)):
            queries = [shipped.queries[i] for i in split_ids if i in shipped.queries]
            titles.update(title_key(query.title) for query in queries)
    return HeldOut(frozenset(ids), frozenset(titles) - {""})
