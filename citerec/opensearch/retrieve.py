"""The first-stage retrievers over an OpenSearch index; `open_retrievers` opens them for a `citerec.Recommender`."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.config import Bm25Config, RecommendConfig
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError, OpenSearchError
from citerec.folder import IndexFolder
from citerec.index.vectors import RowsAndScores
from citerec.opensearch.bodies import (
    META,
    MOST_HITS,
    VECTOR,
    among,
    eligible_filter,
    similarity_of,
    state_of,
    term_search,
    vector_search,
)
from citerec.opensearch.server import Found, OpenSearchIndex
from citerec.retrieve.bm25 import resolve, terms_of
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import encoder_of
from citerec.retrieve.retriever import Retriever
from citerec.text import QueryForm
from citerec.types import Eligibility, Hits, Log, Query

Vectors = npt.NDArray[np.float32]  # shape (n, dim)
Table = npt.NDArray[np.float32]  # shape (queries, papers)


def open_retrievers(
    server: OpenSearchIndex,
    index: IndexFolder,
    config: RecommendConfig | None = None,
    log: Log | None = None,
) -> list[Retriever]:
    """Open BM25 and, where the index folder has vectors, dense retrieval over an OpenSearch index.

    Args:
        server: The OpenSearch index, which `citerec.opensearch.load` filled.
        index: The index folder.
        config: The settings of BM25 and the name of the encoder.
        log: Receives a message before a download from the hub.

    Raises:
        OpenSearchError: If the server does not answer, or its index holds other papers.
        CiterecError: As `encoder_of` raises.
    """
    config = config or RecommendConfig()
    retrievers: list[Retriever] = [OpenSearchBm25(server, index, config.bm25)]
    if encoder := encoder_of(index, config, log):
        vectors = OpenSearchVectors(server, index)
        retrievers.append(DenseRetriever(index, encoder, config.dense, search=vectors))
    return retrievers


class OpenSearchBm25:
    """Finds papers by the words of the query, and scores given ones; a `Retriever` with `LexicalScores`.

    The engine scores with the `k1` and `b` of its own settings, see `index_body`. OpenSearch 2 multiplies the scores
    of Lucene by k1 + 1; no later stage depends on their scale.
    """

    name = "bm25"

    def __init__(
        self, server: OpenSearchIndex, index: IndexFolder, config: Bm25Config | None = None
    ) -> None:
        """Check that OpenSearch holds the papers of the index.

        Args:
            server: The OpenSearch index.
            index: The index folder.
            config: The form of queries and their stop words.

        Raises:
            ConfigError: If the form is key terms, whose choice needs the statistics of the collection.
            OpenSearchError: If the server does not answer, or its index holds other papers.
        """
        self.config = resolve(config or Bm25Config(), index)
        if self.config.form is QueryForm.KEY_TERMS:
            raise ConfigError("OpenSearch is searched by title or title-abstract, not by key-terms")
        _check_papers(server, index, "papers")
        self._server, self._index = server, index

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query.

        Raises:
            ValueError: If `k` is less than 1.
            ConfigError: If `k` is more than OpenSearch returns.
            OpenSearchError: If the server does not answer, or not completely.
        """
        found = self._search(queries, _filters(self._index, eligible, k), k)
        return [Hits.ordered(*pair, self._index.id_rank, k) for pair in found]

    def scores_of_papers(self, queries: Sequence[Query], rows: npt.NDArray[np.int32]) -> Table:
        """Return the score of each paper for each query, 0 without a common term, shape (queries, papers).

        Args:
            queries: The queries.
            rows: Distinct papers, eligible or not.

        Raises:
            OpenSearchError: If the server does not answer, or not completely.
        """
        table = np.zeros((len(queries), len(rows)), np.float32)
        for first in range(0, len(rows), MOST_HITS):
            part = rows[first : first + MOST_HITS]
            filters = [among(self._index.papers.ids_at(part.tolist()))] * len(queries)
            by_row = np.argsort(part)
            found = self._search(queries, filters, len(part))
            for scores, (found_rows, found_scores) in zip(table, found, strict=True):
                places = by_row[np.searchsorted(part, found_rows, sorter=by_row)]
                scores[first + places] = found_scores
        return table

    def _search(
        self, queries: Sequence[Query], filters: Sequence[dict[str, Any]], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of the `k` best papers of each query that pass its filter."""
        counts = [Counter(terms_of(query, self.config)) for query in queries]
        searches = [
            term_search(counted, accepted, k)
            for counted, accepted in zip(counts, filters, strict=True)
            if counted
        ]
        answers = iter(self._server.search(searches, global_statistics=True) if searches else [])
        found = [next(answers) if counted else Found((), ()) for counted in counts]
        return _rows_and_scores(self._index, found, float)


class OpenSearchVectors:
    """Finds the nearest vectors; a `VectorSearch` for `DenseRetriever`."""

    name = "dense"

    def __init__(self, server: OpenSearchIndex, index: IndexFolder) -> None:
        """Check that OpenSearch holds the vectors of the index.

        Raises:
            ConfigError: If the index has none.
            OpenSearchError: If the server does not answer, or its index holds other vectors.
        """
        if not index.is_embedded:
            raise ConfigError(f"{index.path} has no vectors")
        mapping = _check_papers(server, index, "papers", "vectors")
        settings = index.manifest.settings["dense"]
        found = mapping["properties"].get(VECTOR, {}).get("dimension")
        if found != settings["dim"]:
            raise OpenSearchError(
                f"OpenSearch at {server.url}, index {server.name!r}: its vectors have {found} dimensions, those of "
                f"{index.path} have {settings['dim']}; load them into a new index"
            )
        self._similarity = Similarity(settings["similarity"])
        self._server, self._index = server, index

    def nearest(
        self, vectors: Vectors, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of about the `k` nearest eligible papers of each query.

        Raises:
            ConfigError: If `k` is more than OpenSearch returns.
            OpenSearchError: If the server does not answer, or not completely.
        """
        accepted = _filters(self._index, eligible, k)
        searches = [
            vector_search(vector, one, k) for vector, one in zip(vectors, accepted, strict=True)
        ]
        found = self._server.search(searches)
        return _rows_and_scores(
            self._index, found, lambda score: similarity_of(score, self._similarity)
        )


def _check_papers(server: OpenSearchIndex, index: IndexFolder, *parts: str) -> Any:
    """Return the mapping of an OpenSearch index that holds the parts of an index folder.

    Raises:
        OpenSearchError: If it holds others, or its load was not completed.
    """
    mapping = server.mapping()
    found, expected = mapping.get("_meta", {}).get(META), state_of(index)
    where = f"OpenSearch at {server.url}, index {server.name!r}"
    if not found or "papers" not in found:
        raise OpenSearchError(
            f"{where}: no load of papers was completed; run it again: citerec.opensearch.load"
        )
    if wrong := [part for part in parts if found.get(part) != expected[part]]:
        raise OpenSearchError(
            f"{where}: it holds other {wrong[0]} than {index.path}; load them: citerec.opensearch.load"
        )
    return mapping


def _filters(index: IndexFolder, eligible: Sequence[Eligibility], k: int) -> list[dict[str, Any]]:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if k > MOST_HITS:
        raise ConfigError(f"OpenSearch returns at most {MOST_HITS:,} papers of a query, got {k:,}")
    return [eligible_filter(rule, index.papers.ids_at(sorted(rule.excluded))) for rule in eligible]


def _rows_and_scores(
    index: IndexFolder, found: Sequence[Found], score_of: Callable[[float], float]
) -> list[RowsAndScores]:
    """Return the rows of the hits of several queries, with their scores.

    Raises:
        OpenSearchError: If a hit is not a paper of the index.
    """
    ids = [*dict.fromkeys(docid for one in found for docid in one.ids)]
    rows = index.papers.rows_of(ids) if ids else np.zeros(0, np.int32)
    if (rows < 0).any():
        unknown = ids[int(np.argmin(rows))]
        raise OpenSearchError(
            f"OpenSearch found the paper {unknown!r}, which {index.path} does not have"
        )
    row_of = dict(zip(ids, rows.tolist(), strict=True))
    return [
        (
            np.array([row_of[docid] for docid in one.ids], np.int32),
            np.array([score_of(score) for score in one.scores], np.float32),
        )
        for one in found
    ]
