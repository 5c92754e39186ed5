"""Word overlap of a query and its cited papers: where it is low, lexical retrieval fails.

Source: the failure analysis of Nogueira et al. 2020, Evaluating Pretrained Transformer Models for Citation
Recommendation.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from citerec.evaluate.protocol import EvalSet
from citerec.folder import IndexFolder
from citerec.text import STOP_WORDS, WORD, contents
from citerec.types import Paper, Query

Overlap = Mapping[str, Mapping[str, float]]  # by query and by cited paper, in [0, 1]

READ_AT_ONCE = 10_000  # papers


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


def _words_of_papers(index: IndexFolder, ids: Sequence[str]) -> dict[str, frozenset[str]]:
    words: dict[str, frozenset[str]] = {}
    for start in range(0, len(ids), READ_AT_ONCE):
        rows = index.papers.rows_of(list(ids[start : start + READ_AT_ONCE])).tolist()
        papers = index.papers.at(rows)
        words |= {paper.id: words_of(paper) for paper in papers.values()}
    return words
