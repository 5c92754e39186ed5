"""The ten features of query and candidate of the recommendation ranker (SPECTER, sections 3.4 and 4).

The definitions are those of the published ranker (https://github.com/allenai/scidocs, `recommender/`); its eleventh
input, the shown position, is always zero there. It tokenizes titles with spaCy; here a token is a run of letters and
digits, or a single other character; both are case-sensitive.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from math import log

import numpy as np
import numpy.typing as npt

from citerec.index.vectors import Vectors
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
NOW = 2020  # the reference year of ages
SPAN = 20.0  # years that count as 1; larger ages are cut

Features = npt.NDArray[np.float32]  # shape (pairs, 10)
_TOKEN = re.compile(r"\w+|[^\w\s]")


def pair_features(
    pairs: Sequence[tuple[str, str]],
    records: Mapping[str, PaperMetadata],
    vectors: Mapping[str, Vectors],
) -> Features:
    """Return the features of pairs of query and candidate, shape (pairs, 10), columns as `FEATURES`.

    Matches and overlaps are Jaccard similarities in [0, 1]; the similarity is the cosine; ages are in units of 20 years
    in [-1, 1], positive for an older candidate; citations are log(1 + n) / 10. Unknown values are 0.

    Args:
        pairs: Ids of query and candidate.
        records: Metadata of papers; papers may be missing.
        vectors: Vectors of papers; papers may be missing.
    """
    table = np.zeros((len(pairs), len(FEATURES)), np.float32)
    for row, (query, candidate) in enumerate(pairs):
        query_paper, candidate_paper = records.get(query), records.get(candidate)
        if query_paper and candidate_paper:
            table[row, [0, 1, 3, 4, 8]] = _of_both(query_paper, candidate_paper)
        if candidate_paper:
            table[row, [7, 9]] = (
                _age(candidate_paper.paper.year, NOW),
                log(1 + len(candidate_paper.cited_by)) / 10,
            )
        table[row, 2] = _cosine(vectors.get(query), vectors.get(candidate))
        table[row, 5] = _cites(candidate_paper, query_paper, candidate, query)
        table[row, 6] = _cites(query_paper, candidate_paper, query, candidate)
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
    """Return whether one paper cites another, according to either."""
    referenced = citing is not None and cited_id in citing.references
    return referenced or (cited is not None and citing_id in cited.cited_by)


def _cosine(a: Vectors | None, b: Vectors | None) -> float:
    if a is None or b is None:
        return 0.0
    x, y = a.astype(np.float64), b.astype(np.float64)
    return float(x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-8))
