"""Keeps corpora apart that share papers: who is asked in the dev or test split of one teaches in none."""

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
    """Queries that are asked in a split, by id and by title."""

    ids: frozenset[str]
    titles: frozenset[str]  # as `title_key` has them

    def spares(self, ids: Sequence[str], titles: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return which of some papers are none of these queries, shape (len(ids),)."""
        pairs = zip(ids, titles, strict=True)
        return np.array(
            [i not in self.ids and title_key(t) not in self.titles for i, t in pairs], np.bool_
        )


def held_out(indexes: Iterable[IndexFolder], splits: Sequence[str]) -> HeldOut:
    """Return the queries of some splits of some indexes."""
    ids: set[str] = set()
    titles: set[str] = set()
    for index in indexes:
        named = [i for split in splits for i in read_ids(index.splits / f"{split}.ids")]
        rows = index.papers.rows_of(named)
        papers = index.papers.at(rows[rows >= 0].tolist())
        titles.update(title_key(paper.title) for paper in papers.values())
        ids.update(named)
        if (index.splits / QUERIES).is_file() and (shipped := open_queries(index.splits)):
            mine = [shipped.queries[i] for i in named if i in shipped.queries]
            titles.update(title_key(query.title) for query in mine)
    return HeldOut(frozenset(ids), frozenset(titles) - {""})
