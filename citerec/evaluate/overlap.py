"""Word overlap of a query and its cited papers: where it is low, lexical retrieval fails.

Source: the failure analysis of Nogueira et al. 2020, Evaluating Pretrained Transformer Models for Citation
Recommendation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.run import Qrels, Run
from citerec.text import STOP_WORDS, WORD, contents
from citerec.types import Paper, Query

Overlap = Mapping[str, Mapping[str, float]]  # by query and by cited paper, in [0, 1]

CUTOFF = 20  # ranks that count as found
READ_AT_ONCE = 10_000  # papers


@dataclass(frozen=True, slots=True)
class Quartile:
    """A quartile of some values."""

    label: str
    members: npt.NDArray[np.bool_]  # flags in the order of the values


@dataclass(frozen=True, slots=True)
class PairBin:
    """A bin of pairs of a query and a cited paper, with the recall of each system."""

    label: str
    pairs: int
    recall: Mapping[str, float]  # by system: the share of these papers in its top 20


def overlaps(index: IndexFolder, task: EvalSet) -> Overlap:
    """Return for each query and each cited paper the share of the paper's words that are in the query."""
    words = _words_of_papers(index, sorted(frozenset[str]().union(*task.qrels.values())))
    by_query: dict[str, dict[str, float]] = {}
    for query in task.queries:
        query_words = words_of(query)
        by_query[query.id] = {
            docid: share(query_words, words[docid]) for docid in task.qrels[query.id]
        }
    return by_query


def words_of(paper: Paper | Query) -> frozenset[str]:
    """Return the distinct words of title and abstract in lower case, without function words."""
    words = (word.lower() for word in WORD.findall(contents(paper)))
    return frozenset(word for word in words if len(word) > 1 and word not in STOP_WORDS)


def share(query: frozenset[str], cited: frozenset[str]) -> float:
    """Return the share of the cited paper's words that are in the query, in [0, 1]; 0 for a paper without words."""
    return len(query & cited) / len(cited) if cited else 0.0


def means(overlap: Overlap) -> dict[str, float]:
    """Return the mean overlap of each query over its cited papers."""
    return {qid: float(np.mean([*shares.values()])) for qid, shares in overlap.items() if shares}


def quartiles(values: Sequence[float], form: str = "{:g}") -> list[Quartile]:
    """Split values into quartiles, lowest first; empty quartiles (equal values) are left out.

    Args:
        values: At least one.
        form: The format of the bounds in the labels.
    """
    array = np.array(values)
    number = np.searchsorted(np.quantile(array, [0.25, 0.5, 0.75]), array, side="left")
    cut: list[Quartile] = []
    for quarter in np.unique(number).tolist():
        members = number == quarter
        ends = (form.format(end(array[members]).item()) for end in (np.min, np.max))
        cut.append(Quartile("-".join(ends), members))
    return cut


def pair_bins(overlap: Overlap, qrels: Qrels, runs: Sequence[Run]) -> tuple[PairBin, ...]:
    """Return the recall of each system in quartiles of the overlap of query and cited paper."""
    pairs = [
        (qid, docid, overlap[qid][docid])
        for qid, gold in sorted(qrels.items())
        for docid in sorted(gold)
        if docid in overlap.get(qid, {})
    ]
    if not pairs:
        return ()
    hits = {run.name: found_pairs(run, pairs) for run in runs}
    return tuple(
        PairBin(
            quarter.label,
            int(quarter.members.sum()),
            {name: float(flags[quarter.members].mean()) for name, flags in hits.items()},
        )
        for quarter in quartiles([value for *_, value in pairs], "{:.2f}")
    )


def found_pairs(run: Run, pairs: Sequence[tuple[str, str, float]]) -> npt.NDArray[np.bool_]:
    """Return which pairs (query, paper, value) have the paper in the top 20 of the query, in their order."""
    best = {qid: frozenset(ranking.ids[:CUTOFF]) for qid, ranking in run.rankings.items()}
    return np.array([docid in best.get(qid, ()) for qid, docid, _ in pairs])


def _words_of_papers(index: IndexFolder, ids: Sequence[str]) -> dict[str, frozenset[str]]:
    words: dict[str, frozenset[str]] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        rows = index.papers.rows_of(list(ids[start : start + READ_AT_ONCE])).tolist()
        papers = index.papers.at(rows)
        words |= {paper.id: words_of(paper) for paper in papers.values()}
    return words
