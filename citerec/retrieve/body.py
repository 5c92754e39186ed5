"""Searches the sentences of a draft's body one by one, and fuses their hits.

A paper is often cited for one aspect that title and abstract of the draft do not name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from citerec.config import BODY_SENTENCES
from citerec.files.arrays import Rows
from citerec.retrieve.dense import DenseRetriever, LexicalScores
from citerec.retrieve.fuse import summed
from citerec.stages import Retriever
from citerec.types import Eligibility, Hits, Query, Sentence, SentenceScores

BM25 = "body"  # the names of the hits
DENSE = "body_dense"
DEEP = 50  # hits of each sentence
K0 = 10  # the first ranks of a sentence count more than those of a draft


@dataclass(frozen=True, slots=True)
class BodyHits:
    """What the sentences of one draft find, and what compares them with papers."""

    hits: dict[str, Hits]
    scores: SentenceScores


def search_bodies(
    queries: Sequence[Query],
    eligible: Sequence[Eligibility],
    lexical: Retriever | None,
    table: LexicalScores | None,
    dense: DenseRetriever | None,
    id_rank: Rows,
    k: int,
) -> list[BodyHits]:
    """Search the bodies of some drafts, whose sentences are encoded as one batch."""
    parts = [[_alone(query, s) for s in searched(query.body)] for query in queries]
    every = [part for of_query in parts for part in of_query]
    rules = [rule for part, rule in zip(parts, eligible, strict=True) for _ in part]
    bounds = [*pairwise(accumulate(map(len, parts), initial=0))]
    by_name = dict[str, list[Hits]]()
    if lexical:
        by_name[BM25] = lexical.retrieve(every, rules, DEEP)
    vectors = None
    if dense:
        vectors = dense.encoded(every)
        by_name[DENSE] = dense.search(vectors, rules, DEEP)
    found = list[BodyHits]()
    for part, (start, end) in zip(parts, bounds, strict=True):
        own = None if vectors is None else vectors[start:end]
        found.append(
            BodyHits(
                {
                    name: fused(hits[start:end], id_rank, k)
                    for name, hits in by_name.items()
                },
                SentenceScores(
                    None if own is None else partial(np.asarray, own),
                    partial(table.scores_of_papers, part) if table else None,
                ),
            )
        )
    return found


def fused(rankings: Sequence[Hits], id_rank: Rows, k: int) -> Hits:
    """Sum 1 / (K0 + rank) over the sentences that find a paper."""
    points = [1 / (K0 + np.arange(1, len(hits) + 1)) for hits in rankings]
    return summed(rankings, points, [1.0] * len(points), id_rank, k)


def searched(body: Sequence[Sentence]) -> Sequence[Sentence]:
    """Return the sentences of a body that are searched."""
    return body[:BODY_SENTENCES]


def _alone(query: Query, sentence: Sentence) -> Query:
    return replace(
        query, title=sentence.text, abstract="", authors=(), venue="", body=()
    )
