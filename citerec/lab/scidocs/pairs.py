"""What the ranker of recommendations knows of a query and a candidate: ten features (SPECTER §3.4, §4).

Definitions are those of the published ranker (https://github.com/allenai/scidocs, `recommender/`), which has an
eleventh input, the position shown, that it sets to zero. It cuts titles into words by spaCy; here a word is a run of
letters and digits, and any other sign stands for itself; both mind capitals.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from math import log

import numpy as np
import numpy.typing as npt

from citerec.index.dense.library import Vectors
from citerec.lab.scidocs.metadata import PaperMetadata

FEATURES = (
    "author match",
    "title match",
    "similarity of vectors",
    "shared citing papers",
    "shared references",
    "candidate cites query",
    "query cites candidate",
    "age",
    "age against the query",
    "citations",
)
NOW = 2020  # what ages count from
SPAN = 20.0  # years that count as 1; more are cut

Features = npt.NDArray[np.float32]  # shape (pairs, 10)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def pair_features(
    pairs: Sequence[tuple[str, str]],
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
) -> Features:
    """Return the features of pairs of query and candidate, by `FEATURES`.

    The first two and the overlaps are Jaccard's, in [0, 1]; the similarity is the cosine; ages are in units of 20
    years, in [-1, 1], positive for an older candidate; citations are log(1 + n) / 10. What is not known is 0.

    Args:
        pairs: Ids of query and candidate.
        records: What is known of papers; some may be missing.
        vectors: Of papers; those without one are missing.
    """
    table = np.zeros((len(pairs), len(FEATURES)), np.float32)
    for row, (query, candidate) in enumerate(pairs):
        mine, other = records.get(query), records.get(candidate)
        if mine and other:
            table[row, [0, 1, 3, 4, 8]] = _of_both(mine, other)
        if other:
            table[row, [7, 9]] = _age(other.paper.year, NOW), log(1 + len(other.cited_by)) / 10
        table[row, 2] = _cosine(vectors.get(query), vectors.get(candidate))
        table[row, 5] = _cites(other, mine, candidate, query)
        table[row, 6] = _cites(mine, other, query, candidate)
    return table


def _of_both(query: PaperMetadata, candidate: PaperMetadata) -> tuple[float, ...]:
    return (
        _jaccard(query.authors, candidate.authors),
        _jaccard(_words(query.paper.title), _words(candidate.paper.title)),
        _jaccard(query.cited_by, candidate.cited_by),
        _jaccard(query.references, candidate.references),
        0.0 if query.paper.year is None else _age(candidate.paper.year, query.paper.year),
    )


def _jaccard(a: Set[str], b: Set[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


@lru_cache(maxsize=2**16)
def _words(title: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(title))


def _age(year: int | None, since: int) -> float:
    return 0.0 if year is None else max(-1.0, min(1.0, (since - year) / SPAN))


def _cites(
    citing: PaperMetadata | None, cited: PaperMetadata | None, citing_id: str, cited_id: str
) -> bool:
    """Whether one paper cites another, by what either says."""
    said = citing is not None and cited_id in citing.references
    return said or (cited is not None and citing_id in cited.cited_by)


def _cosine(a: Vectors | None, b: Vectors | None) -> float:
    if a is None or b is None:
        return 0.0
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-8))
