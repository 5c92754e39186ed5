"""Dataset statistics as in table 1 of the reranker paper: numbers of papers, citations and queries."""

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.corpus.splits import SPLITS, gold_citations, open_queries, read_ids
from citerec.folder import IndexFolder


def corpus_statistics(index: IndexFolder) -> dict[str, float]:
    """Return the statistics of an index; only citations within the corpus of no later year count.

    Gold per query is the mean over all queries of all splits. Unknown years are left out.
    """
    years = index.papers.years
    gold = gold_citations(index.graph, years)
    answers = np.bincount(index.graph.citing[gold], minlength=len(index.papers))
    splits = {name: _answers(index, name, answers) for name in SPLITS}
    every = np.concatenate(list(splits.values()))
    dated = years[years != NO_YEAR]
    figures = {
        "papers": len(index.papers),
        "with abstract": index.papers.has_abstract.sum(),
        "citations": gold.sum(),
        "citing papers": (answers > 0).sum(),
        **{f"{name} queries": len(splits[name]) for name in SPLITS},
        "gold per query": every.mean() if len(every) else 0,
        **({"first year": dated.min(), "last year": dated.max()} if len(dated) else {}),
    }
    return {name: float(figure) for name, figure in figures.items()}


def _answers(
    index: IndexFolder, split: str, answers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the number of gold papers of each query of a split, shape (queries,)."""
    shipped = open_queries(index.splits)
    if shipped:
        return np.array([len(gold) for gold in shipped.gold.get(split, {}).values()], np.int64)
    rows = index.papers.rows_of(read_ids(index.splits / f"{split}.ids"))
    return answers[rows[rows >= 0]]
