"""Finds the sentence of a paper's abstract that is nearest to the claim of a draft."""

from collections.abc import Sequence

from citerec.files.arrays import Vectors
from citerec.index.bm25 import analyze_in_python
from citerec.index.vectors import unit
from citerec.retrieve.bm25 import Bm25Retriever
from citerec.retrieve.dense import DenseRetriever
from citerec.text import sentences
from citerec.types import Paper, Query

MOST = 3  # sentences of an abstract that are encoded: those with the heaviest words of the query


def passages(
    query: Query,
    vector: Vectors | None,
    papers: Sequence[Paper],
    bm25: Bm25Retriever | None,
    dense: DenseRetriever | None,
) -> list[str]:
    """Return the nearest sentence of each paper's abstract, by vectors where there are some, else by words.

    `vector` is that of the query, shape (dim,). All sentences are encoded as one batch. Empty for a paper without an
    abstract, or without a word of the query where there are no vectors.
    """
    weights = bm25.term_weights(query) if bm25 else {}
    chosen: list[list[tuple[float, str]]] = []
    for paper in papers:
        scored = [
            (
                sum(
                    weights.get(term, 0) for term in {*(analyze_in_python(text) or ())}
                ),
                text,
            )
            for text in sentences(paper.abstract)
        ]
        chosen.append(sorted(scored, key=lambda pair: -pair[0])[:MOST])
    if dense is None or vector is None:
        return [best[0][1] if best and best[0][0] else "" for best in chosen]
    texts = [text for best in chosen for _, text in best]
    if not texts:
        return ["" for _ in papers]
    queries = [Query(id=f"{i}", title=text) for i, text in enumerate(texts)]
    cosines = iter((unit(dense.encoder.encode(queries)) @ unit(vector)).tolist())
    nearest: list[str] = []
    for best in chosen:
        by_vector = [(next(cosines), text) for _, text in best]
        nearest.append(max(by_vector)[1] if by_vector else "")
    return nearest
