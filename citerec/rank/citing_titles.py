"""The titles of the papers that cite a candidate, as one more field of its text."""

from collections import Counter
from typing import Any

import numpy as np

from citerec.rank.linked import Links, compact
from citerec.rank.words import Titles, words
from citerec.rules.known import Scores
from citerec.types import Query

K1, B = 1.2, 0.75


def citing_titles_score(query: Query, links: Links, titles: Titles) -> Scores:
    """Return the BM25 score of a query and the titles of the papers that cite each candidate, shape (candidates,).

    The field of a candidate is the text of all these titles. Its idf is that of the titles of all papers that cite a
    candidate, so nothing is read of other papers.

    Args:
        query: Its title and abstract are the words.
        links: The papers that cite each candidate.
        titles: The titles of the index.

    Returns:
        Scores divided by the best one, in [0, 1]; 0 for a candidate that no known paper cites.
    """
    distinct, links = compact(links)
    counts = Counter(words(f"{query.title} {query.abstract} {query.context}"))
    lengths, occurs = _occurrences(titles, distinct, {word: n for n, word in enumerate(counts)})
    weights = np.array([*counts.values()], np.float32)
    found = np.bincount(occurs.indices, minlength=len(counts))
    idf = np.log1p((len(distinct) - found + 0.5) / (found + 0.5))
    field, sizes = (links @ occurs).tocsr(), links @ lengths
    damping = K1 * (
        1 - B + B * sizes / max(float(sizes[sizes > 0].mean()) if sizes.any() else 1, 1e-9)
    )
    each = field.data / (field.data + np.repeat(damping, np.diff(field.indptr)))
    field.data = each * (K1 + 1) * (idf * weights)[field.indices]
    scores = np.asarray(field.sum(axis=1), np.float64).ravel()
    return (scores / max(float(scores.max(initial=0)), 1e-9)).astype(np.float32)


def _occurrences(titles: Titles, rows: Any, columns: dict[str, int]) -> tuple[Any, Any]:
    """Return the number of words of each title, and the query's words in it: a sparse matrix of ones."""
    from scipy.sparse import csr_array

    of_titles = titles.words(rows)
    query_words = columns.keys()
    shared = [sorted(columns[word] for word in query_words & of_title) for of_title in of_titles]
    ends = np.cumsum([0, *map(len, shared)])
    indices = np.array([column for of_title in shared for column in of_title], np.int32)
    ones = np.ones(len(indices), np.float32)
    lengths = np.array([*map(len, of_titles)], np.float32)
    return lengths, csr_array((ones, indices, ends), shape=(len(rows), len(columns)))
