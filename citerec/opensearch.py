"""Searches papers in OpenSearch, for collections too large for one machine: BM25, vectors and filters in one engine.

The index folder stays: papers, citations and vectors are read from its mapped files where candidates are ranked. It
needs `pip install 'citerec[opensearch]'`, and has not been run against a server of OpenSearch itself: the tests use a
small server that follows its documentation (2.9 and later).
"""

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import numpy.typing as npt

from citerec.config import Bm25Config, RecommendConfig
from citerec.encode.spec import Similarity
from citerec.errors import ConfigError, OpenSearchError, extra
from citerec.folder import DENSE, PAPERS, IndexFolder
from citerec.index.vectors import NAME as VECTORS
from citerec.index.vectors import RowsAndScores, open_dense
from citerec.retrieve.bm25 import resolve, terms_of
from citerec.retrieve.dense import DenseRetriever
from citerec.retrieve.hybrid import Retriever, encoder_of
from citerec.text import QueryForm, contents
from citerec.types import Eligibility, Hits, Log, Progress, Query, no_progress

Found = list[tuple[str, float]]  # ids and scores of hits, best first: equal scores by rising id
Floats = npt.NDArray[np.float32]
META = "citerec"  # in the mapping: the checksums of the papers and vectors that an index holds
MOST_HITS = 10_000  # of one query: index.max_result_window
MOST_TERMS = 1000  # of one query: indices.query.bool.max_clause_count is 1024, with the filter
AT_ONCE = 64  # queries of one request
CHUNK = 1000  # documents of one request, and at most 10 MiB: the server accepts 100
RETRIES = 5  # of documents that a busy server puts off, after 2, 4, 8, ... seconds


class OpenSearchIndex:
    """An index, or an alias of one, on an OpenSearch server; it may be used by several threads."""

    def __init__(
        self, url: str, name: str, *, timeout: float = 60, options: Mapping[str, Any] | None = None
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The server, such as `https://search.example.org:9200`; a name and a password in it are not shown.
            name: The index.
            timeout: Seconds to wait for an answer.
            options: Further arguments of `opensearchpy.OpenSearch`, such as `http_auth` or `ca_certs`.
        """
        with extra("opensearch"):  # by name, so that type checkers do not need the package
            self.library: Any = import_module("opensearchpy")
        parts = urlsplit(url)
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        self.name, self.where = name, f"OpenSearch at {shown}, index {name!r}"
        self.client: Any = self.library.OpenSearch(hosts=[url], timeout=timeout, **(options or {}))

    @contextmanager
    def answers(self) -> Generator[None]:
        """Turn the errors of the client into one line: an `OpenSearchError`."""
        errors = self.library.exceptions
        try:
            yield
        except errors.TransportError as error:  # also a server that does not answer
            info = error.info.get("error") if isinstance(error.info, Mapping) else error.info
            reason = _reason(info or error.error)
            raise self.error(f"{reason} (status {error.status_code})") from error
        except (errors.OpenSearchException, KeyError, TypeError) as error:
            raise self.error(f"the answer is not one of OpenSearch ({error!r})") from error

    def error(self, reason: str) -> OpenSearchError:
        """Return an error that names the server and the index."""
        return OpenSearchError(f"{self.where}: {reason}")

    def search(self, bodies: Sequence[Mapping[str, Any]], **header: str) -> list[Found]:
        """Search by several requests, sent together; `header` goes with each.

        Raises:
            OpenSearchError: If the server refuses one, or a shard did not answer: no list is made of the others.
        """
        results: list[Found] = []
        with self.answers():
            for start in range(0, len(bodies), AT_ONCE):
                part = bodies[start : start + AT_ONCE]
                lines = [line for body in part for line in ({"index": self.name, **header}, body)]
                for response in self.client.msearch(body=lines)["responses"]:
                    if "error" in response:
                        raise self.error(_reason(response["error"]))
                    shards = response["_shards"]
                    if response["timed_out"] or shards["failed"]:
                        what = f"{shards['failed']} of {shards['total']} shards did not answer"
                        reasons = [_reason(one.get("reason")) for one in shards.get("failures", [])]
                        raise self.error(f"{what}, or not in time: {reasons[:1]}")
                    hits = [hit["sort"] for hit in response["hits"]["hits"]]
                    results.append([(docid, float(score)) for score, docid in hits])
        return results


def index_body(
    index: IndexFolder, config: Bm25Config | None = None, *, shards: int = 1, replicas: int = 1
) -> dict[str, Any]:
    """Return settings and mapping of an OpenSearch index for the papers of an index folder.

    The analysis is Lucene's for English, as in the folder; `refresh_interval` is -1, as `load` refreshes at its end.
    The number of shards cannot be changed later.
    """
    bm25 = config or Bm25Config()
    fields: dict[str, Any] = {"id": {"type": "keyword"}, "year": {"type": "integer"}}
    fields["contents"] = {"type": "text", "analyzer": "english"}
    if index.is_embedded:
        dense = index.manifest.settings["dense"]
        is_cosine = dense["similarity"] == Similarity.COSINE
        method = {"name": "hnsw", "engine": "faiss"}
        method |= {"parameters": {"m": 32, "ef_construction": 200}}
        method |= {"space_type": "innerproduct" if is_cosine else "l2"}
        fields["vector"] = {"type": "knn_vector", "dimension": int(dense["dim"]), "method": method}
    similarity = {"default": {"type": "BM25", "k1": bm25.k1, "b": bm25.b}}
    settings = {
        "number_of_shards": shards,
        "number_of_replicas": replicas,
        "knn": index.is_embedded,
    }
    settings |= {"refresh_interval": "-1", "similarity": similarity}
    mapping = {"dynamic": "strict", "_source": {"enabled": False}, "properties": fields}
    return {"settings": {"index": settings}, "mappings": mapping}


def load(
    server: OpenSearchIndex,
    index: IndexFolder,
    *,
    body: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
) -> int:
    """Write the papers of an index folder into an OpenSearch index, which is created if it does not exist.

    A paper takes the place of one with its id, so that a load may be repeated. Until it is complete, the retrievers
    refuse the index. Returns how many papers were written.

    Raises:
        OpenSearchError: If the server does not answer or refuses a paper, or if its index holds other papers, too.
    """
    indices, total = server.client.indices, len(index.papers)
    with server.answers():
        if not indices.exists(index=server.name):
            indices.create(index=server.name, body=body or index_body(index))
        indices.put_mapping(index=server.name, body={"_meta": {META: {}}})
        options = {"chunk_size": CHUNK, "max_chunk_bytes": 10 * 2**20, "max_retries": RETRIES}
        documents = _documents(server.name, index)
        written = server.library.helpers.streaming_bulk(
            server.client, documents, raise_on_error=False, **options
        )
        for number, (is_written, item) in enumerate(written, start=1):
            if not is_written:
                failed = item["index"]
                reason = _reason(failed.get("error", failed))
                raise server.error(f"it refuses the paper {failed.get('_id')!r}: {reason}")
            if number % CHUNK == 0 or number == total:
                progress("loading", number, total)
        indices.refresh(index=server.name)
        found = int(server.client.count(index=server.name)["count"])
    if found != total:
        raise server.error(
            f"it holds {found:,} papers, {index.path} holds {total:,}; load all of them into a new index"
        )
    with server.answers():
        indices.put_mapping(index=server.name, body={"_meta": {META: _state_of(index)}})
    return total


def open_retrievers(
    server: OpenSearchIndex,
    index: IndexFolder,
    config: RecommendConfig | None = None,
    log: Log | None = None,
) -> list[Retriever]:
    """Open BM25 and, where the index folder has vectors, dense retrieval over an OpenSearch index."""
    config = config or RecommendConfig()
    retrievers: list[Retriever] = [OpenSearchBm25(server, index, config.bm25)]
    if encoder := encoder_of(index, config, log):
        vectors = OpenSearchVectors(server, index)
        retrievers.append(DenseRetriever(index, encoder, config.dense, search=vectors))
    return retrievers


class OpenSearchBm25:
    """Finds papers by the words of the query, and scores given ones; a `Retriever` with `LexicalScores`.

    The engine scores with the `k1` and `b` of its own settings. OpenSearch 2 multiplies the scores of Lucene by k1 + 1;
    no later stage depends on their scale.
    """

    name = "bm25"

    def __init__(
        self, server: OpenSearchIndex, index: IndexFolder, config: Bm25Config | None = None
    ) -> None:
        """Check that OpenSearch holds the papers of the index; an `OpenSearchError` says why not."""
        self.config = resolve(config or Bm25Config(), index)
        if self.config.form is QueryForm.KEY_TERMS:
            raise ConfigError("OpenSearch is searched by title or title-abstract, not by key-terms")
        _check(server, index, "papers")
        self._server, self._index = server, index

    def retrieve(
        self, queries: Sequence[Query], eligible: Sequence[Eligibility], k: int
    ) -> list[Hits]:
        """Return the `k` best eligible papers of each query."""
        found = self._search(queries, _filters(self._index, eligible, k), k)
        return [Hits.ordered(*pair, self._index.id_rank, k) for pair in found]

    def scores_of_papers(self, queries: Sequence[Query], rows: npt.NDArray[np.int32]) -> Floats:
        """Return the score of each distinct paper for each query, 0 without a common term, shape (queries, papers)."""
        table = np.zeros((len(queries), len(rows)), np.float32)
        place = np.full(len(self._index.papers), -1, np.int64)
        place[rows] = np.arange(len(rows))
        for first in range(0, len(rows), MOST_HITS):
            ids = self._index.papers.ids_at(rows[first : first + MOST_HITS].tolist())
            among = [{"ids": {"values": list(ids)}}] * len(queries)
            for scores, pair in zip(table, self._search(queries, among, len(ids)), strict=True):
                scores[place[pair[0]]] = pair[1]
        return table

    def _search(
        self, queries: Sequence[Query], filters: Sequence[dict[str, Any]], k: int
    ) -> list[RowsAndScores]:
        bodies: list[dict[str, Any]] = []
        for query, accepted in zip(queries, filters, strict=True):
            counts = Counter(terms_of(query, self.config)).most_common(MOST_TERMS)
            terms = [{"term": {"contents": {"value": t, "boost": n}}} for t, n in counts]
            words = {"should": terms, "minimum_should_match": 1}
            bodies.append(_body({"bool": words | ({"filter": [accepted]} if accepted else {})}, k))
        # the statistics of all shards, not those of each
        found = self._server.search(bodies, search_type="dfs_query_then_fetch")
        return [_rows_and_scores(self._index, one) for one in found]


class OpenSearchVectors:
    """Finds about the nearest vectors; a `VectorSearch` for `DenseRetriever`."""

    name = "dense"

    def __init__(self, server: OpenSearchIndex, index: IndexFolder) -> None:
        """Check that OpenSearch holds the vectors of the index; raise as `OpenSearchBm25` does."""
        index.check_embedded()
        _check(server, index, "papers", "vectors")
        self._is_cosine = index.manifest.settings["dense"]["similarity"] == Similarity.COSINE
        self._server, self._index = server, index

    def nearest(
        self, vectors: Floats, eligible: Sequence[Eligibility], k: int
    ) -> list[RowsAndScores]:
        """Return rows and scores of about the `k` nearest eligible papers of each query."""
        bodies: list[dict[str, Any]] = []
        for vector, accepted in zip(vectors, _filters(self._index, eligible, k), strict=True):
            nearest = {"vector": vector.tolist(), "k": k}
            nearest |= {"filter": accepted} if accepted else {}  # holds while the graph is searched
            bodies.append(_body({"knn": {"vector": nearest}}, k))
        found = self._server.search(bodies)
        pairs = [_rows_and_scores(self._index, one) for one in found]
        return [(rows, self._similarities(scores)) for rows, scores in pairs]

    def _similarities(self, scores: Floats) -> Floats:
        """Return the inner products, or minus the Euclidean distances, that scores state.

        Source: https://docs.opensearch.org/latest/mappings/supported-field-types/knn-spaces.
        """
        exact = scores.astype(np.float64)
        if self._is_cosine:
            return np.where(exact >= 1, exact - 1, 1 - 1 / exact).astype(np.float32)
        return -np.sqrt(np.maximum(1 / exact - 1, 0)).astype(np.float32)


def _documents(name: str, index: IndexFolder) -> Iterator[dict[str, Any]]:
    settings, years = index.manifest.settings, index.papers.years
    dense = open_dense(index.path / DENSE, settings["dense"], years) if index.is_embedded else None
    for start in range(0, len(index.papers), CHUNK):
        papers = index.papers.at(range(start, min(start + CHUNK, len(index.papers))))
        rows = np.fromiter(papers, np.int32, len(papers))
        vectors = dense.vectors(rows).tolist() if dense else [None] * len(rows)
        for paper, vector in zip(papers.values(), vectors, strict=True):
            stated = {"id": paper.id, "contents": contents(paper), "year": paper.year}
            source = {n: v for n, v in (stated | {"vector": vector}).items() if v is not None}
            yield {"_op_type": "index", "_index": name, "_id": paper.id, "_source": source}


def _state_of(index: IndexFolder) -> dict[str, str]:
    sums = index.manifest.checksums
    return {"papers": sums.get(PAPERS, ""), "vectors": sums.get(f"{DENSE}/{VECTORS}", "")}


def _check(server: OpenSearchIndex, index: IndexFolder, *parts: str) -> None:
    """Refuse an OpenSearch index that holds other papers or vectors, or whose load was not completed."""
    with server.answers():
        mappings: Mapping[str, Any] = server.client.indices.get_mapping(index=server.name)
    if len(mappings) != 1:
        raise server.error(f"the alias names {len(mappings)} indexes; let it name one")
    [mapping] = mappings.values()
    found = mapping["mappings"].get("_meta", {}).get(META) or {}
    expected = _state_of(index)
    if wrong := [part for part in parts if found.get(part) != expected[part]]:
        holds = f"it holds other {wrong[0]} than {index.path}" if found else "no load was completed"
        raise server.error(f"{holds}; load them: citerec.opensearch.load")


def _filters(index: IndexFolder, eligible: Sequence[Eligibility], k: int) -> list[dict[str, Any]]:
    """Return the filter of each rule, empty if all papers are eligible; one without a year passes every bound."""
    if not 1 <= k <= MOST_HITS:
        raise ConfigError(
            f"OpenSearch returns from 1 to {MOST_HITS:,} papers of a query, got {k:,}"
        )
    filters: list[dict[str, Any]] = []
    for rule in eligible:
        refused: list[dict[str, Any]] = []
        if rule.year_max is not None:
            refused.append({"range": {"year": {"gt": rule.year_max}}})
        if rule.excluded:
            refused.append({"ids": {"values": list(index.papers.ids_at(sorted(rule.excluded)))}})
        filters.append({"bool": {"must_not": refused}} if refused else {})
    return filters


def _body(query: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return a search whose hits have nothing but score and id, equal scores by rising id."""
    sort = [{"_score": {"order": "desc"}}, {"id": {"order": "asc"}}]
    hits = {"size": k, "track_total_hits": False, "stored_fields": "_none_"}
    return {**hits, "query": query, "sort": sort}


def _rows_and_scores(index: IndexFolder, found: Found) -> RowsAndScores:
    rows = index.papers.rows_of([docid for docid, _ in found])
    if (rows < 0).any():
        raise OpenSearchError(f"OpenSearch found papers that {index.path} does not have")
    return rows, np.array([score for _, score in found], np.float32)


def _reason(error: Any) -> str:
    """Return the reason of an error of the server: that of its cause, if it states one."""
    if not isinstance(error, Mapping):
        return str(error)
    if cause := error.get("caused_by"):
        return _reason(cause)
    return str(error.get("reason") or error.get("type") or dict(error))
