"""The settings of an OpenSearch index, its documents and its queries, as OpenSearch 2.9 and later read them."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from orjson import OPT_SORT_KEYS, dumps

from citerec.config import Bm25Config
from citerec.encode.spec import Similarity
from citerec.folder import DENSE, PAPERS, IndexFolder
from citerec.index.vectors import NAME as VECTORS
from citerec.text import contents
from citerec.types import Eligibility, Paper

ID, CONTENTS, YEAR, VECTOR = "id", "contents", "year", "vector"
META = "citerec"  # what an index says of the papers that it holds
HELD = "rows"  # in `META`: the rows that it holds, see `rows_before`
MOST_HITS = 10_000  # of one query: index.max_result_window
# of one query: indices.query.bool.max_clause_count is 1024, and counts the filter, too
MOST_TERMS = 1000
MOST_ID_BYTES = 512  # of an id in OpenSearch
_IDS_AT_ONCE = 4096
SPACES = {Similarity.COSINE: "innerproduct", Similarity.L2: "l2"}


def index_body(
    index: IndexFolder, config: Bm25Config | None = None, *, shards: int = 1, replicas: int = 1
) -> dict[str, Any]:
    """Return settings and mapping of an OpenSearch index for the papers of an index folder.

    The analysis is Lucene's for English, as in the folder; `refresh_interval` is -1, as `load` refreshes at its end.

    Args:
        index: The index folder.
        config: `k1` and `b` of BM25.
        shards: Into how many parts OpenSearch divides the papers; it cannot be changed later.
        replicas: Copies of each.
    """
    bm25 = config or Bm25Config()
    fields: dict[str, Any] = {
        ID: {"type": "keyword"},
        CONTENTS: {"type": "text", "analyzer": "english"},
        YEAR: {"type": "integer"},
    }
    if index.is_embedded:
        settings = index.manifest.settings["dense"]
        fields[VECTOR] = {
            "type": "knn_vector",
            "dimension": int(settings["dim"]),
            "method": {
                "name": "hnsw",
                "engine": "faiss",
                "space_type": SPACES[Similarity(settings["similarity"])],
                "parameters": {"m": 32, "ef_construction": 200},
            },
        }
    of_index = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "refresh_interval": "-1",
        "knn": index.is_embedded,
        "similarity": {"default": {"type": "BM25", "k1": bm25.k1, "b": bm25.b}},
    }
    mapping = {"dynamic": "strict", "_source": {"enabled": False}, "properties": fields}
    return {"settings": {"index": of_index}, "mappings": mapping}


def state_of(index: IndexFolder) -> dict[str, str]:
    """Return what identifies the papers and vectors of an index folder: the checksums of their files."""
    sums = index.manifest.checksums
    return {"papers": sums.get(PAPERS, ""), "vectors": sums.get(f"{DENSE}/{VECTORS}", "")}


def rows_before(index: IndexFolder, end: int) -> str:
    """Return what identifies the first rows of an index: their number, and a digest of their ids and the encoder.

    A paper that is replaced gets a new row, so papers of the same rows and ids are the same. All these ids are read.

    Args:
        index: The index folder.
        end: The row after the last one.
    """
    digest = blake2b(dumps(index.manifest.settings.get("encoder"), option=OPT_SORT_KEYS))
    for start in range(0, end, _IDS_AT_ONCE):
        ids = index.papers.ids_at(range(start, min(start + _IDS_AT_ONCE, end)))
        digest.update("\n".join(ids).encode() + b"\n")
    return f"{end}:{digest.hexdigest()[:32]}"


def document(paper: Paper, vector: npt.NDArray[np.float32] | None) -> dict[str, Any]:
    """Return the document of a paper."""
    content: dict[str, Any] = {ID: paper.id, CONTENTS: contents(paper)}
    if paper.year is not None:
        content[YEAR] = paper.year
    if vector is not None:
        content[VECTOR] = vector.tolist()
    return content


def eligible_filter(rule: Eligibility, excluded: Sequence[str]) -> dict[str, Any]:
    """Return the filter of eligible papers, empty if all are; a paper without a year passes every bound.

    Args:
        rule: The rule of a query.
        excluded: The ids of its excluded papers.
    """
    without: list[dict[str, Any]] = []
    if rule.year_max is not None:
        without.append({"range": {YEAR: {"gt": rule.year_max}}})
    if excluded:
        without.append(among(excluded))
    return {"bool": {"must_not": without}} if without else {}


def among(ids: Sequence[str]) -> dict[str, Any]:
    """Return the filter of the papers with these ids."""
    return {"ids": {"values": list(ids)}}


def term_search(counts: Mapping[str, int], accepted: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return a search by BM25.

    Args:
        counts: How often the query has each of its index terms; the `MOST_TERMS` most frequent ones are searched.
        accepted: The filter of eligible papers.
        k: The number of hits.
    """
    most = sorted(counts.items(), key=lambda item: -item[1])[:MOST_TERMS]  # ties: the earlier one
    terms = [{"term": {CONTENTS: {"value": term, "boost": count}}} for term, count in most]
    query: dict[str, Any] = {"should": terms, "minimum_should_match": 1}
    return _search({"bool": query | ({"filter": [accepted]} if accepted else {})}, k)


def vector_search(
    vector: npt.NDArray[np.float32], accepted: Mapping[str, Any], k: int
) -> dict[str, Any]:
    """Return a search by a vector, shape (dim,); the filter holds while the graph is searched.

    Without a filter the engine does not visit all papers to apply it.
    """
    nearest: dict[str, Any] = {"vector": vector.tolist(), "k": k}
    return _search({"knn": {VECTOR: nearest | ({"filter": accepted} if accepted else {})}}, k)


def similarity_of(score: float, similarity: Similarity) -> float:
    """Return the similarity that a score of a vector search states.

    Args:
        score: Of OpenSearch: 1 + p for an inner product p of at least 0, else 1 / (1 - p); 1 / (1 + d * d) for a
            Euclidean distance d.
        similarity: How vectors are compared.

    Returns:
        The inner product, or minus the distance.

    Source: https://docs.opensearch.org/latest/mappings/supported-field-types/knn-spaces.
    """
    if similarity is Similarity.COSINE:
        return score - 1 if score >= 1 else 1 - 1 / score
    return -sqrt(max(1 / score - 1, 0.0))


def _search(query: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return a search whose hits have nothing but score and id, equal scores by rising id."""
    return {
        "size": k,
        "track_total_hits": False,
        "stored_fields": "_none_",
        "query": query,
        "sort": [{"_score": {"order": "desc"}}, {ID: {"order": "asc"}}],
    }
