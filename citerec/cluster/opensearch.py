"""Searches papers in OpenSearch, for collections too large for one machine: BM25, vectors and filters in one engine.

The index folder stays: papers, citations and vectors are read from its mapped files where candidates are ranked. It
needs `pip install 'citerec[opensearch]'`, and has not been run against a server of OpenSearch itself: the tests use a
small server that follows its documentation (2.9 and later).
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from citerec.config import Bm25Config, RecommendConfig
from citerec.display import one_line
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError, OpenSearchError, extra
from citerec.files.arrays import Rows, Scores
from citerec.index.folder import DENSE, PAPERS, IndexFolder
from citerec.index.vectors import NAME as VECTORS
from citerec.index.vectors import RowsAndScores, vectors_of
from citerec.retrieve.bm25 import resolve, terms_of
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import encoder_of
from citerec.stages import Retriever
from citerec.text import QueryForm, contents
from citerec.types import Eligibility, Hits, Json, Progress, Query, no_progress

DEFAULT = Bm25Config()
RECOMMEND = RecommendConfig()
META = "citerec"  # in the mapping: the checksums of the papers and vectors that an index holds
MOST_TERMS = (
    1000  # of one query: indices.query.bool.max_clause_count is 1024, with the filter
)
AT_ONCE = 64  # queries of one request
CHUNK = 1000  # documents of one request, and at most 10 MiB: the server accepts 100
RETRIES = 5  # of documents that a busy server puts off, after 2, 4, 8, ... seconds


class OpenSearchIndex:
    """An index, or an alias of one, on an OpenSearch server; it may be used by several threads."""

    def __init__(self, url: str, name: str, options: Json | None = None) -> None:
        """Prepare; nothing is sent yet.

        `url` may hold a name and a password; `options` are arguments of `opensearchpy.OpenSearch`, such as `ca_certs`.
        """
        # by name, so that type checkers do not need the package
        with extra("opensearch"):
            self.library: Any = import_module("opensearchpy")
        host = urlsplit(url).netloc.rpartition("@")[2]
        self.name = name
        self.where = f"OpenSearch at {host}, index {name!r}"
        settings = {"timeout": 60, **(options or {})}
        self.client: Any = self.library.OpenSearch(hosts=[url], **settings)

    @contextmanager
    def answers(self) -> Generator[None]:
        """Turn the errors of the client into one line: an `OpenSearchError`."""
        errors = self.library.exceptions
        try:
            yield
        except (
            errors.OpenSearchException
        ) as error:  # also a server that does not answer
            raise self.error(one_line(str(error)[:400])) from error
        except (KeyError, TypeError) as error:
            raise self.error(
                f"the answer is not one of OpenSearch ({error!r})"
            ) from error

    def error(self, reason: str) -> OpenSearchError:
        """Return an error that names the server and the index."""
        return OpenSearchError(f"{self.where}: {reason}")

    def search(
        self, index: IndexFolder, queries: Sequence[Json], k: int, **header: str
    ) -> list[RowsAndScores]:
        """Return rows and scores of the best `k` papers of each query, equal scores by rising id.

        OpenSearchError if the server refuses one, or a shard did not answer: no list is made of the others.
        """
        results: list[RowsAndScores] = []
        sort = [{"_score": {"order": "desc"}}, {"id": {"order": "asc"}}]
        shape = {
            "size": k,
            "track_total_hits": False,
            "stored_fields": "_none_",
            "sort": sort,
        }
        with self.answers():
            for start in range(0, len(queries), AT_ONCE):
                lines: list[Json] = []
                for query in queries[start : start + AT_ONCE]:
                    lines += [{"index": self.name, **header}, {**shape, "query": query}]
                for response in self.client.msearch(body=lines)["responses"]:
                    if "error" in response:
                        raise self.error(str(response["error"]["reason"]))
                    shards = response["_shards"]
                    if response["timed_out"] or shards["failed"]:
                        what = f"{shards['failed']} of {shards['total']} shards did not answer"
                        raise self.error(
                            f"{what}, or not in time: {shards.get('failures')}"[:400]
                        )
                    hits = [hit["sort"] for hit in response["hits"]["hits"]]
                    rows = index.papers.rows_of([docid for _, docid in hits])
                    results.append(
                        (rows, np.array([score for score, _ in hits], np.float32))
                    )
        return results


def index_body(
    index: IndexFolder, config: Bm25Config = DEFAULT, *, shards: int = 1
) -> Json:
    """Return settings and mapping of an OpenSearch index; the analysis is Lucene's for English, as in the folder."""
    fields: Json = {
        "id": {"type": "keyword"},
        "year": {"type": "integer"},
        "contents": {"type": "text", "analyzer": "english"},
    }
    if index.is_embedded:
        dense = index.manifest.settings["dense"]
        is_cosine = dense["similarity"] == Similarity.COSINE
        graph = {
            "name": "hnsw",
            "engine": "faiss",
            "parameters": {"m": 32, "ef_construction": 200},
        }
        method = {**graph, "space_type": "innerproduct" if is_cosine else "l2"}
        fields["vector"] = {
            "type": "knn_vector",
            "dimension": int(dense["dim"]),
            "method": method,
        }
    settings = {
        "number_of_shards": shards,
        "knn": index.is_embedded,
        "refresh_interval": "-1",  # `load` refreshes at its end
        "similarity": {"default": {"type": "BM25", "k1": config.k1, "b": config.b}},
    }
    mapping = {"dynamic": "strict", "_source": {"enabled": False}, "properties": fields}
    return {"settings": {"index": settings}, "mappings": mapping}


def load(
    server: OpenSearchIndex,
    index: IndexFolder,
    *,
    body: Json | None = None,
    progress: Progress = no_progress,
) -> int:
    """Write the papers of an index folder into an OpenSearch index, which is created if needed; return how many.

    A load may be repeated: papers replace those with their ids. Until it is complete, the retrievers refuse the index.

    Raises:
        OpenSearchError: If the server does not answer or refuses a paper, or if its index holds other papers, too.
    """
    indices = server.client.indices
    total = len(index.papers)
    with server.answers():
        if not indices.exists(index=server.name):
            indices.create(index=server.name, body=body or index_body(index))
        indices.put_mapping(index=server.name, body={"_meta": {META: {}}})
        written = server.library.helpers.streaming_bulk(
            server.client,
            _documents(server.name, index),
            chunk_size=CHUNK,
            max_chunk_bytes=10 * 2**20,
            max_retries=RETRIES,
        )
        for number, _ in enumerate(written, start=1):
            if number % CHUNK == 0 or number == total:
                progress("loading", number, total)
        indices.refresh(index=server.name)
        found = int(server.client.count(index=server.name)["count"])
        if found != total:
            raise server.error(
                f"it holds {found:,} papers, {index.path} holds {total:,}; load all of them into a new index"
            )
        indices.put_mapping(index=server.name, body={"_meta": {META: _state_of(index)}})
    return total


def open_retrievers(
    server: OpenSearchIndex, index: IndexFolder, config: RecommendConfig = RECOMMEND
) -> list[Retriever]:
    """Open BM25 and, where the index folder has vectors, dense retrieval over an OpenSearch index."""
    retrievers: list[Retriever] = [OpenSearchBm25(server, index, config.bm25)]
    if encoder := encoder_of(index, config):
        nearest = OpenSearchVectors(server, index).nearest
        retrievers.append(DenseRetriever(index, encoder, config.dense, nearest=nearest))
    return retrievers


class OpenSearchBm25:
    """Finds papers by the words of the query, and scores given ones; a `Retriever` with `LexicalScores`.

    The engine has its own `k1` and `b`. OpenSearch 2 multiplies Lucene's scores by k1 + 1; no stage depends on that.
    """

    name = "bm25"

    def __init__(
        self, server: OpenSearchIndex, index: IndexFolder, config: Bm25Config = DEFAULT
    ) -> None:
        """Check that OpenSearch holds the papers of the index; an `OpenSearchError` says why not."""
        self.config = resolve(config, index)
        if self.config.form is QueryForm.KEY_TERMS:
            raise ConfigError(
                "OpenSearch is searched by title or title-abstract, not by key-terms"
            )
        _check(server, index, "papers")
        self._server = server
        self._index = index

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query."""
        found = self._search(queries, _filters(self._index, eligible), k)
        return [Hits.ordered(*pair, self._index.id_rank, k) for pair in found]

    def scores_of_papers(self, queries: Sequence[Query], rows: Rows) -> Scores:
        """Return the score of each distinct paper for each query, 0 without a common term, shape (queries, papers)."""
        table = np.zeros((len(queries), len(rows)), np.float32)
        place = np.full(len(self._index.papers), -1, np.int64)
        place[rows] = np.arange(len(rows))
        among = {"ids": {"values": list(self._index.papers.ids_at(rows.tolist()))}}
        found = self._search(queries, [among] * len(queries), len(rows))
        for scores, (found_rows, found_scores) in zip(table, found, strict=True):
            scores[place[found_rows]] = found_scores
        return table

    def _search(
        self, queries: Sequence[Query], filters: Sequence[Json], k: int
    ) -> list[RowsAndScores]:
        sent: list[Json] = []
        for query, accepted in zip(queries, filters, strict=True):
            counts = Counter(terms_of(query, self.config)).most_common(MOST_TERMS)
            terms = [
                {"term": {"contents": {"value": t, "boost": n}}} for t, n in counts
            ]
            words = {"should": terms, "minimum_should_match": 1}
            sent.append({"bool": words | ({"filter": [accepted]} if accepted else {})})
        # the statistics of all shards, not those of each
        return self._server.search(
            self._index, sent, k, search_type="dfs_query_then_fetch"
        )


class OpenSearchVectors:
    """Finds about the nearest vectors for `DenseRetriever`."""

    def __init__(self, server: OpenSearchIndex, index: IndexFolder) -> None:
        """Check that OpenSearch holds the vectors of the index; raise as `OpenSearchBm25` does."""
        index.check_embedded()
        _check(server, index, "papers", "vectors")
        self._is_cosine = (
            index.manifest.settings["dense"]["similarity"] == Similarity.COSINE
        )
        self._server = server
        self._index = index

    def nearest(
        self, vectors: Scores, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of about the `k` nearest eligible papers of each query."""
        sent: list[Json] = []
        for vector, accepted in zip(
            vectors, _filters(self._index, eligible), strict=True
        ):
            nearest = {"vector": vector.tolist(), "k": k}
            # holds while the graph is searched
            nearest |= {"filter": accepted} if accepted else {}
            sent.append({"knn": {"vector": nearest}})
        found = self._server.search(self._index, sent, k)
        return [(rows, self._similarities(scores)) for rows, scores in found]

    def _similarities(self, scores: Scores) -> Scores:
        """Return the inner products, or minus the Euclidean distances, that scores state.

        Source: https://docs.opensearch.org/latest/mappings/supported-field-types/knn-spaces.
        """
        exact = scores.astype(np.float64)
        if self._is_cosine:
            return np.where(exact >= 1, exact - 1, 1 - 1 / exact).astype(np.float32)
        return -np.sqrt(np.maximum(1 / exact - 1, 0)).astype(np.float32)


def _documents(name: str, index: IndexFolder) -> Iterator[Json]:
    dense = vectors_of(index) if index.is_embedded else None
    for start in range(0, len(index.papers), CHUNK):
        papers = index.papers.at(range(start, min(start + CHUNK, len(index.papers))))
        rows = np.fromiter(papers, np.int32, len(papers))
        vectors = dense.vectors(rows).tolist() if dense else [None] * len(rows)
        for paper, vector in zip(papers.values(), vectors, strict=True):
            stated = {"id": paper.id, "contents": contents(paper), "year": paper.year}
            source = {
                n: v for n, v in (stated | {"vector": vector}).items() if v is not None
            }
            yield {
                "_op_type": "index",
                "_index": name,
                "_id": paper.id,
                "_source": source,
            }


def _state_of(index: IndexFolder) -> dict[str, str]:
    sums = index.manifest.checksums
    return {
        "papers": sums.get(PAPERS, ""),
        "vectors": sums.get(f"{DENSE}/{VECTORS}", ""),
    }


def _check(server: OpenSearchIndex, index: IndexFolder, *parts: str) -> None:
    """Refuse an OpenSearch index that holds other papers or vectors, or whose load was not completed."""
    with server.answers():
        [answer] = server.client.indices.get_mapping(index=server.name).values()
        found = answer["mappings"].get("_meta", {}).get(META) or {}
    expected = _state_of(index)
    if wrong := [part for part in parts if found.get(part) != expected[part]]:
        holds = (
            f"it holds other {wrong[0]} than {index.path}"
            if found
            else "no load was completed"
        )
        raise server.error(f"{holds}; load them: citerec.cluster.opensearch.load")


def _filters(index: IndexFolder, eligible: Sequence[Eligibility]) -> list[Json]:
    """Return the filter of each rule, empty if all papers are eligible; one without a year passes every bound."""
    filters: list[Json] = []
    for rule in eligible:
        refused: list[Json] = []
        for bound, year in (("gt", rule.year_max), ("lt", rule.year_min)):
            if year is not None:
                refused.append({"range": {"year": {bound: year}}})
        if rule.excluded:
            refused.append(
                {"ids": {"values": list(index.papers.ids_at(sorted(rule.excluded)))}}
            )
        filters.append({"bool": {"must_not": refused}} if refused else {})
    return filters
