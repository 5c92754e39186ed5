"""Converts hits (row numbers) to a run (docids)."""

import numpy as np

from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.run import Run
from citerec.types import Hits, Ranking


def as_run(name: str, index: IndexFolder, task: EvalSet, hits: list[Hits]) -> Run:
    """Return the run of some hits; only the docids of hit rows are read."""
    rows = np.unique(np.concatenate([ranking.rows for ranking in hits]))
    ids = np.array(index.papers.ids_at(rows.tolist()), np.object_)
    rankings = {
        query.id: Ranking(
            tuple(ids[np.searchsorted(rows, ranking.rows)]), tuple(ranking.scores.tolist())
        )
        for query, ranking in zip(task.queries, hits, strict=True)
    }
    return Run(name, rankings)
