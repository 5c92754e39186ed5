"""How many of a cited paper's words stand in the query: where few do, rankings by words fail.

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

Overlap = Mapping[str, Mapping[str, float]]  # by query and by paper that it cites, in [0, 1]

CUTOFF = 20  # ranks that a pair must be found in
READ_AT_ONCE = 10_000  # papers


@dataclass(frozen=True, slots=True)
class Quartile:
    """A quarter of some values, and who has them."""

    label: str
    members: npt.NDArray[np.bool_]  # of the values, in their order


@dataclass(frozen=True, slots=True)
class PairBin:
    """Some of the pairs of a query and a paper that it cites, and how many of them each system finds."""

    label: str
    pairs: int
    recall: Mapping[str, float]  # by system: the share of these papers that is among its best 20


def overlaps(index: IndexFolder, task: EvalSet) -> Overlap:
    """Return, for each query and each paper that it cites, the share of the paper's words that the query has."""
    words = _words_of_papers(index, sorted(frozenset[str]().union(*task.qrels.values())))
    found: dict[str, dict[str, float]] = {}
    for query in task.queries:
        mine = words_of(query)
        found[query.id] = {docid: share(mine, words[docid]) for docid in task.qrels[query.id]}
    return found


def words_of(paper: Paper | Query) -> frozenset[str]:
    """Return the distinct words of title and abstract in lower case, without function words."""
    words = (word.lower() for word in WORD.findall(contents(paper)))
    return frozenset(word for word in words if len(word) > 1 and word not in STOP_WORDS)


def share(query: frozenset[str], cited: frozenset[str]) -> float:
    """Return the share of the cited paper's words that the query has, in [0, 1]; 0 of none."""
    return len(query & cited) / len(cited) if cited else 0.0


def means(overlap: Overlap) -> dict[str, float]:
    """Return each query's mean over the papers that it cites."""
    return {qid: float(np.mean([*shares.values()])) for qid, shares in overlap.items() if shares}


def quartiles(values: Sequence[float], form: str = "{:g}") -> list[Quartile]:
    """Cut values into quarters, lowest first; many alike can empty one, which is left out.

    Args:
        values: At least one.
        form: How the ends of a quarter are written.
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
    """Count which cited papers each system finds, by quarters of the overlap of query and paper."""
    pairs = [
        (qid, docid, overlap[qid][docid])
        for qid, gold in sorted(qrels.items())
        for docid in sorted(gold)
        if docid in overlap.get(qid, {})
    ]
    if not pairs:
        return ()
    is_found = {run.name: found_pairs(run, pairs) for run in runs}
    return tuple(
        PairBin(
            quarter.label,
            int(quarter.members.sum()),
            {name: float(found[quarter.members].mean()) for name, found in is_found.items()},
        )
        for quarter in quartiles([value for *_, value in pairs], "{:.2f}")
    )


def found_pairs(run: Run, pairs: Sequence[tuple[str, str, float]]) -> npt.NDArray[np.bool_]:
    """Return which of some pairs (query, paper, whatever) a run has among its best 20, in their order."""
    best = {qid: frozenset(ranking.ids[:CUTOFF]) for qid, ranking in run.rankings.items()}
    return np.array([docid in best.get(qid, ()) for qid, docid, _ in pairs])


def _words_of_papers(index: IndexFolder, ids: Sequence[str]) -> dict[str, frozenset[str]]:
    words: dict[str, frozenset[str]] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        rows = index.papers.rows_of(list(ids[start : start + READ_AT_ONCE])).tolist()
        papers = index.papers.at(rows)
        words |= {paper.id: words_of(paper) for paper in papers.values()}
    return words
