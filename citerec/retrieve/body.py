"""Searches the sentences of a draft's body one by one, and fuses their hits.

A paper is often cited for one aspect that title and abstract of the draft do not name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from citerec.files.arrays import Rows
from citerec.retrieve.dense import DenseRetriever, LexicalScores, scores_of_parts
from citerec.retrieve.fuse import rrf
from citerec.stages import Retriever
from citerec.types import BODY_SENTENCES, Eligibility, Hits, Query, SentenceScores

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
) -> dict[int, BodyHits]:
    """Search the bodies of the drafts that have one, by their places; all sentences are encoded as one batch."""
    parts = {
        place: [
            replace(query, title=text, abstract="", authors=(), venue="", body=())
            for text in query.body[:BODY_SENTENCES]
        ]
        for place, query in enumerate(queries)
        if query.body and not query.context
    }
    if not parts:
        return {}
    every = [sentence for part in parts.values() for sentence in part]
    rules = [eligible[place] for place, part in parts.items() for _ in part]
    encoded = None
    by_name = dict[str, list[Hits]]()
    if lexical:
        by_name[BM25] = lexical.retrieve(every, rules, DEEP)
    if dense:
        vectors = dense.encoded(every)
        by_name[DENSE] = dense.search(vectors, rules, DEEP)
        encoded = partial(np.asarray, vectors)
    found = dict[int, BodyHits]()
    end = 0
    of_parts = scores_of_parts([*parts.values()], table, encoded)
    for (place, part), scores in zip(parts.items(), of_parts, strict=True):
        rows = slice(end, end + len(part))
        end += len(part)
        hits = {
            name: rrf(each[rows], id_rank, k0=K0, k=k) for name, each in by_name.items()
        }
        found[place] = BodyHits(hits, scores)
    return found
