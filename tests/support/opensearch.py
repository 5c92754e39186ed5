"""A small server that speaks the part of OpenSearch's REST API that citerec uses, and refuses everything else.

It follows the documentation of OpenSearch 2 (https://docs.opensearch.org/2.19): requests are parsed strictly, queries
are really evaluated, errors have the documented form. Vectors are compared exactly.
"""

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

import numpy as np

from citerec.index.bm25 import analyze

SEARCH_KEYS = {"size", "track_total_hits", "stored_fields", "query", "sort"}
ORDER = [{"_score": {"order": "desc"}}, {"id": {"order": "asc"}}]
INDEX_SETTINGS = {
    *("number_of_shards", "number_of_replicas", "refresh_interval", "knn", "similarity"),
}
Json = Mapping[str, Any]


@cache
def terms_of(text: str) -> Counter[str]:
    """What the analyzer `english` makes of a text."""
    return Counter(analyze(text) or [])


def rounded(length: int) -> int:
    """The length of a text as Lucene stores it: four significant bits of what exceeds 24."""
    above = max(length - 24, 0)
    dropped = max(above.bit_length() - 4, 0)
    return length - above + (above >> dropped << dropped)


class RefusedError(Exception):
    """A request that OpenSearch refuses."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        cause = {"type": kind, "reason": reason}
        self.content = {"error": {"root_cause": [cause], **cause}, "status": status}


@dataclass
class Shelf:
    """An index: its settings and mapping, its documents, and those that a search sees."""

    settings: Json
    mapping: dict[str, Any]
    written: dict[str, Json] = field(default_factory=dict[str, Json])
    visible: dict[str, Json] = field(default_factory=dict[str, Json])

    def __post_init__(self) -> None:
        if unknown := {*self.settings} - INDEX_SETTINGS:
            raise RefusedError(
                400, "illegal_argument_exception", f"unknown setting [index.{min(unknown)}]"
            )
        for name, spec in self.fields.items():
            if spec["type"] not in {"keyword", "text", "integer", "knn_vector"}:
                raise RefusedError(
                    400, "mapper_parsing_exception", f"No handler for type on {name}"
                )
            if spec["type"] == "knn_vector":
                assert self.settings["knn"] is True
                assert spec["method"]["engine"] in {"faiss", "lucene"}  # those that filter

    @property
    def fields(self) -> Json:
        return self.mapping["properties"]

    def shard(self, docid: str) -> int:
        return crc32(docid.encode()) % self.settings.get("number_of_shards", 1)

    def write(self, docid: str, content: Json) -> None:
        if len(docid.encode()) > 512:
            raise RefusedError(400, "illegal_argument_exception", "id is too long, must be <= 512")
        for name, value in content.items():
            spec = self.fields.get(name)
            if spec is None:
                raise RefusedError(
                    400,
                    "strict_dynamic_mapping_exception",
                    f"mapping set to strict, dynamic introduction of [{name}] is not allowed",
                )
            if spec["type"] == "knn_vector" and len(value) != spec["dimension"]:
                raise RefusedError(
                    400,
                    "mapper_parsing_exception",
                    f"Vector dimension mismatch. Expected: {spec['dimension']}, Given: {len(value)}",
                )
            if spec["type"] == "integer":
                assert isinstance(value, int)
        self.written[docid] = content

    def search(self, body: Json, *, by_all_shards: bool) -> Json:
        if unknown := {*body} - SEARCH_KEYS:
            raise RefusedError(400, "parsing_exception", f"Unknown key for [{min(unknown)}].")
        if body["size"] > 10_000:
            raise RefusedError(400, "illegal_argument_exception", "Result window is too large")
        assert body["sort"] == ORDER
        scores = self._scores(body["query"], by_all_shards)
        best = sorted(scores, key=lambda docid: (-scores[docid], docid))[: body["size"]]
        return {
            "hits": [
                {"_index": "p", "_score": scores[docid], "sort": [scores[docid], docid]}
                for docid in best
            ]
        }

    def _scores(self, query: Json, by_all_shards: bool) -> dict[str, float]:
        [(kind, content)] = query.items()
        if kind == "knn":
            return self._nearest(content)
        if kind != "bool" or "should" not in content:
            raise RefusedError(400, "parsing_exception", f"unknown query [{kind}]")
        if len(content["should"]) > 1024:
            raise RefusedError(400, "too_many_clauses", "maxClauseCount is set to 1024")
        assert content["minimum_should_match"] == 1
        accepted = [self._accepts(one) for one in content.get("filter", [])]
        scores: Counter[str] = Counter()
        for clause in content["should"]:
            [(kind, [(name, spec)])] = [(k, [*v.items()]) for k, v in clause.items()]
            assert kind == "term"
            scores.update(self._bm25(name, spec["value"], spec["boost"], by_all_shards))
        return {
            docid: float(np.float32(score))
            for docid, score in scores.items()
            if all(accepts(docid) for accepts in accepted)
        }

    def _bm25(self, name: str, term: str, boost: float, by_all_shards: bool) -> dict[str, float]:
        assert self.fields[name] == {"type": "text", "analyzer": "english"}
        similarity = self.settings["similarity"]["default"]
        k1, b = similarity["k1"], similarity["b"]
        groups: dict[int, dict[str, Counter[str]]] = {}
        for docid, content in self.visible.items():
            group = groups.setdefault(0 if by_all_shards else self.shard(docid), {})
            group[docid] = terms_of(content[name])
        scores: dict[str, float] = {}
        for group in groups.values():
            frequencies = {docid: terms[term] for docid, terms in group.items() if term in terms}
            df, average = len(frequencies), sum(map(Counter.total, group.values())) / len(group)
            idf = math.log(1 + (len(group) - df + 0.5) / (df + 0.5))
            for docid, tf in frequencies.items():
                norm = k1 * (1 - b + b * rounded(group[docid].total()) / average)
                scores[docid] = boost * idf * (k1 + 1) * tf / (tf + norm)
        return scores

    def _nearest(self, content: Json) -> dict[str, float]:
        [(name, spec)] = content.items()
        if unknown := {*spec} - {"vector", "k", "filter"}:
            raise RefusedError(400, "parsing_exception", f"[knn] unknown token [{min(unknown)}]")
        field = self.fields[name]
        if len(spec["vector"]) != field["dimension"]:
            raise RefusedError(
                400,
                "query_shard_exception",
                f"Query vector has invalid dimension: {len(spec['vector'])}. "
                f"Dimension should be: {field['dimension']}",
            )
        accepts, query = (
            self._accepts(spec.get("filter", {"match_all": {}})),
            np.array(spec["vector"]),
        )
        found: dict[str, float] = {}
        for docid, document in self.visible.items():
            if not accepts(docid):
                continue
            if field["method"]["space_type"] == "innerproduct":
                product = float(query @ np.array(document[name]))
                score = product + 1 if product >= 0 else 1 / (1 - product)
            else:
                score = 1 / (1 + float(((query - np.array(document[name])) ** 2).sum()))
            found[docid] = float(np.float32(score))
        best = sorted(found, key=lambda docid: -found[docid])
        of_shards = Counter[int]()
        kept: dict[str, float] = {}
        for docid in best:  # k of each shard
            of_shards[self.shard(docid)] += 1
            if of_shards[self.shard(docid)] <= spec["k"]:
                kept[docid] = found[docid]
        return kept

    def _accepts(self, query: Json) -> Callable[[str], bool]:
        [(kind, content)] = query.items()
        if kind == "match_all":
            return lambda _: True
        if kind == "ids":
            return lambda docid: docid in content["values"]
        if kind == "range":
            [(name, bounds)] = content.items()
            assert [*bounds] == ["gt"]
            return lambda docid: self.visible[docid].get(name, -math.inf) > bounds["gt"]
        if kind == "bool" and [*content] == ["must_not"]:
            refused = [self._accepts(one) for one in content["must_not"]]
            return lambda docid: not any(one(docid) for one in refused)
        raise RefusedError(400, "parsing_exception", f"unknown query [{kind}]")


@dataclass
class FakeServer:
    """The server; a test may change what it does."""

    url: str = ""
    shelves: dict[str, Shelf] = field(default_factory=dict[str, Shelf])
    failed_shards: int = 0  # that do not answer a search
    timed_out: bool = False
    answers_html: bool = False
    requests: list[str] = field(default_factory=list[str])  # method and path of each

    def answer(self, method: str, path: str, body: bytes) -> Json:
        self.requests.append(f"{method} {path}")
        parts = path.strip("/").split("/")
        name, action = ("", parts[0]) if parts[0].startswith("_") else (parts[0], parts[-1])
        if action == "_bulk":
            return self._bulk(body)
        if action == "_msearch":
            return self._msearch(body)
        if method == "PUT" and len(parts) == 1:
            if name in self.shelves:
                raise RefusedError(
                    400, "resource_already_exists_exception", f"index [{name}] exists"
                )
            content = json.loads(body)
            self.shelves[name] = Shelf(content["settings"]["index"], content["mappings"])
            return {"acknowledged": True, "shards_acknowledged": True, "index": name}
        shelf = self._shelf(name)
        if action == "_mapping" and method == "PUT":
            shelf.mapping |= json.loads(body)
            return {"acknowledged": True}
        answers: Mapping[str, Callable[[], Json]] = {
            name: lambda: {},  # HEAD: it exists
            "_mapping": lambda: {name: {"mappings": shelf.mapping}},
            "_refresh": lambda: self._refreshed(shelf),
            "_count": lambda: {"count": len(shelf.visible), "_shards": self._shards()},
        }
        return answers[action]()

    def _refreshed(self, shelf: Shelf) -> Json:
        shelf.visible = dict(shelf.written)
        return {"_shards": self._shards()}

    def _shards(self) -> Json:
        return {"total": 5, "successful": 5 - self.failed_shards, "skipped": 0, "failed": 0}

    def _shelf(self, name: str) -> Shelf:
        if name not in self.shelves:
            raise RefusedError(404, "index_not_found_exception", f"no such index [{name}]")
        return self.shelves[name]

    def _bulk(self, body: bytes) -> Json:
        lines = [json.loads(line) for line in body.splitlines()]
        items: list[Json] = []
        for action, content in zip(lines[::2], lines[1::2], strict=True):
            target = action["index"]
            try:
                self._shelf(target["_index"]).write(target["_id"], content)
                items.append({"index": {"_id": target["_id"], "status": 201}})
            except RefusedError as error:
                failed = {"_id": target["_id"], "status": error.status}
                items.append({"index": {**failed, "error": error.content["error"]}})
        return {
            "took": 1,
            "errors": any("error" in item["index"] for item in items),
            "items": items,
        }

    def _msearch(self, body: bytes) -> Json:
        lines = [json.loads(line) for line in body.splitlines()]
        responses: list[Json] = []
        for header, search in zip(lines[::2], lines[1::2], strict=True):
            dfs = header.get("search_type") == "dfs_query_then_fetch"
            try:
                hits = self._shelf(header["index"]).search(search, by_all_shards=dfs)
            except RefusedError as error:
                responses.append(error.content)
                continue
            shards: dict[str, Any] = {**self._shards(), "failed": self.failed_shards}
            if self.failed_shards:
                reason = {"type": "circuit_breaking_exception", "reason": "Data too large"}
                shards["failures"] = [{"shard": 0, "index": "p", "node": "n", "reason": reason}]
            answer = {"took": 1, "timed_out": self.timed_out, "_shards": shards}
            responses.append({**answer, "hits": hits, "status": 200})
        return {"took": 1, "responses": responses}


@contextmanager
def opensearch_server() -> Generator[FakeServer]:
    """Run a server on a free port of this machine until the block ends."""
    fake = FakeServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                status, content = 200, fake.answer(self.command, self.path.split("?")[0], body)
            except RefusedError as error:
                status, content = error.status, error.content
            payload = json.dumps(content).encode()
            kind = "application/json"
            if fake.answers_html:
                payload, kind = b"<html>", "text/html"
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=UTF-8")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(payload)

        do_GET = do_PUT = do_POST = do_HEAD = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
