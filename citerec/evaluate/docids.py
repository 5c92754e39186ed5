"""Puts docids for row numbers: what was found for each query becomes a run."""

import numpy as np

from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.run import Run
from citerec.types import Hits, Ranking


def as_run(name: str, index: IndexFolder, task: EvalSet, hits: list[Hits]) -> Run:
    """Put docids for rows; only the rows that were hit are read."""
    rows = np.unique(np.concatenate([found.rows for found in hits]))
    ids = np.array(index.papers.ids_at(rows.tolist()), np.object_)
    rankings = {
        query.id: Ranking(
            tuple(ids[np.searchsorted(rows, found.rows)]), tuple(found.scores.tolist())
        )
        for query, found in zip(task.queries, hits, strict=True)
    }
    return Run(name, rankings)
