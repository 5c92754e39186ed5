"""Dataset statistics as in table 1 of the reranker paper: numbers of papers, citations and queries."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import NO_YEAR
from citerec.corpus.queries import open_queries
from citerec.corpus.splits import SPLITS, gold_citations, read_ids
from citerec.folder import IndexFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics of an index. Only citations within the corpus of no later year count."""

    papers: int
    with_abstract: int  # papers
    citations: int
    citing_papers: int
    train_queries: int
    dev_queries: int
    test_queries: int
    gold_per_query: float  # mean over all queries of all splits; 0 where there is none
    first_year: int | None  # None if no paper has a year
    last_year: int | None

    @property
    def share_with_abstract(self) -> float:
        """The share of the papers with an abstract, in [0, 1]."""
        return self.with_abstract / self.papers if self.papers else 0.0


def statistics(index: IndexFolder) -> Statistics:
    """Compute the statistics of an index."""
    years = index.papers.years
    gold = gold_citations(index.graph, years)
    answers = np.bincount(index.graph.citing[gold], minlength=len(index.papers))
    splits = {name: _answers(index, name, answers) for name in SPLITS}
    every = np.concatenate(list(splits.values()))
    dated = years[years != NO_YEAR]
    return Statistics(
        papers=len(index.papers),
        with_abstract=int(index.papers.has_abstract.sum()),
        citations=int(gold.sum()),
        citing_papers=int((answers > 0).sum()),
        train_queries=len(splits["train"]),
        dev_queries=len(splits["dev"]),
        test_queries=len(splits["test"]),
        gold_per_query=float(every.mean()) if len(every) else 0.0,
        first_year=int(dated.min()) if len(dated) else None,
        last_year=int(dated.max()) if len(dated) else None,
    )


def corpus_statistics(index: IndexFolder) -> dict[str, float]:
    """Return the statistics as the metrics of a row; unknown years are left out."""
    counts = statistics(index)
    figures = {
        "papers": counts.papers,
        "with abstract": counts.with_abstract,
        "citations": counts.citations,
        "citing papers": counts.citing_papers,
        "train queries": counts.train_queries,
        "dev queries": counts.dev_queries,
        "test queries": counts.test_queries,
        "gold per query": counts.gold_per_query,
        "first year": counts.first_year,
        "last year": counts.last_year,
    }
    return {name: float(figure) for name, figure in figures.items() if figure is not None}


def _answers(
    index: IndexFolder, split: str, answers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the number of gold papers of each query of a split, shape (queries,)."""
    shipped = open_queries(index.splits)
    if shipped:
        return np.array([len(gold) for gold in shipped.gold.get(split, {}).values()], np.int64)
    rows = index.papers.rows_of(read_ids(index.splits / f"{split}.ids"))
    return answers[rows[rows >= 0]]
