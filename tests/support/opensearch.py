"""A small server that speaks the part of OpenSearch's REST API that citerec uses, and refuses everything else.

It follows the documentation of OpenSearch 2 (https://docs.opensearch.org/2.19): queries are really evaluated, errors
have the documented form. Vectors are compared exactly.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import ThreadingHTTPServer
from typing import Any

import numpy as np

from citerec.index.bm25 import analyze
from support.http_server import Handler, running

ORDER = [{"_score": {"order": "desc"}}, {"id": {"order": "asc"}}]
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

    def __init__(self, kind: str, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        cause = {"type": kind, "reason": reason}
        self.content = {"error": {"root_cause": [cause], **cause}, "status": status}


@dataclass
class Shelf:
    """An index: its settings and mapping, its documents, and those that a search sees."""

    settings: Json
    mapping: dict[str, Any]
    written: dict[str, Json] = field(default_factory=dict[str, Json])
    visible: dict[str, Json] = field(default_factory=dict[str, Json])

    def search(self, body: Json) -> Json:
        assert {*body} == {"size", "track_total_hits", "stored_fields", "query", "sort"}
        assert body["sort"] == ORDER
        if body["size"] > 10_000:
            raise RefusedError(
                "illegal_argument_exception", "Result window is too large"
            )
        [(kind, content)] = body["query"].items()
        is_knn = kind == "knn"
        scores = (
            self._nearest(**content["vector"]) if is_knn else self._matching(**content)
        )
        best = sorted(scores, key=lambda docid: (-scores[docid], docid))[: body["size"]]
        return {"hits": [{"sort": [scores[docid], docid]} for docid in best]}

    def _matching(
        self,
        *,
        should: list[Json],
        minimum_should_match: int,
        filter: list[Json] = [],  # noqa: B006
    ) -> dict[str, float]:
        assert len(should) <= 1024, "maxClauseCount is set to 1024"
        assert minimum_should_match == 1
        scores: Counter[str] = Counter()
        for clause in should:
            [(name, spec)] = clause["term"].items()
            scores.update(self._bm25(name, spec["value"], spec["boost"]))
        accepted = [self._accepts(one) for one in filter]
        return {
            docid: float(np.float32(score))
            for docid, score in scores.items()
            if all(accepts(docid) for accepts in accepted)
        }

    def _bm25(self, name: str, term: str, boost: float) -> dict[str, float]:
        similarity = self.settings["similarity"]["default"]
        k1, b = similarity["k1"], similarity["b"]
        documents = {
            docid: terms_of(found[name]) for docid, found in self.visible.items()
        }
        frequencies = {
            docid: terms[term] for docid, terms in documents.items() if term in terms
        }
        average = sum(map(Counter.total, documents.values())) / len(documents)
        df = len(frequencies)
        idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
        scores: dict[str, float] = {}
        for docid, tf in frequencies.items():
            norm = k1 * (1 - b + b * rounded(documents[docid].total()) / average)
            scores[docid] = boost * idf * (k1 + 1) * tf / (tf + norm)
        return scores

    def _nearest(
        self, vector: list[float], k: int, filter: Json | None = None
    ) -> dict[str, float]:
        space = self.mapping["properties"]["vector"]["method"]["space_type"]
        accepts = self._accepts(filter or {"bool": {"must_not": []}})
        found: dict[str, float] = {}
        for docid, document in self.visible.items():
            stored = np.array(document["vector"])
            if space == "innerproduct":
                product = float(np.array(vector) @ stored)
                score = product + 1 if product >= 0 else 1 / (1 - product)
            else:
                score = 1 / (1 + float(((np.array(vector) - stored) ** 2).sum()))
            if accepts(docid):
                found[docid] = float(np.float32(score))
        best = sorted(found, key=lambda docid: -found[docid])[:k]
        return {docid: found[docid] for docid in best}

    def _accepts(self, query: Json) -> Callable[[str], bool]:
        [(kind, content)] = query.items()
        if kind == "ids":
            return lambda docid: docid in content["values"]
        if kind == "range":
            [(name, bounds)] = content.items()
            return lambda docid: self.visible[docid].get(name, -math.inf) > bounds["gt"]
        assert kind == "bool"
        refused = [self._accepts(one) for one in content["must_not"]]
        return lambda docid: not any(one(docid) for one in refused)


@dataclass
class FakeServer:
    """The server; a test may change what it does."""

    url: str = ""
    shelves: dict[str, Shelf] = field(default_factory=dict[str, Shelf])
    failed_shards: int = 0  # that do not answer a search

    def answer(self, method: str, path: str, body: bytes) -> Json:
        name, _, action = path.strip("/").rpartition("/")
        if action == "_bulk":
            return self._bulk(body)
        if action == "_msearch":
            return self._msearch(body)
        if method == "PUT" and not name:
            content = json.loads(body)
            self.shelves[action] = Shelf(
                content["settings"]["index"], content["mappings"]
            )
            return {"acknowledged": True}
        shelf = self._shelf(name or action)
        if action == "_mapping" and method == "PUT":
            shelf.mapping |= json.loads(body)
        if action == "_refresh":
            shelf.visible = dict(shelf.written)
        answers = {
            "_mapping": {name: {"mappings": shelf.mapping}},
            "_count": {"count": len(shelf.visible)},
        }
        return answers.get(action, {})

    def _shelf(self, name: str) -> Shelf:
        if name not in self.shelves:
            raise RefusedError(
                "index_not_found_exception", f"no such index [{name}]", 404
            )
        return self.shelves[name]

    def _bulk(self, body: bytes) -> Json:
        lines, items = (
            [json.loads(line) for line in body.splitlines()],
            list[dict[str, Any]](),
        )
        for action, content in zip(lines[::2], lines[1::2], strict=True):
            target = action["index"]
            items.append({"index": {"_id": target["_id"], "status": 201}})
            self._shelf(target["_index"]).written[target["_id"]] = content
        return {"errors": False, "items": items}

    def _msearch(self, body: bytes) -> Json:
        lines, responses = (
            [json.loads(line) for line in body.splitlines()],
            list[Json](),
        )
        shards: dict[str, Any] = {"total": 5, "failed": self.failed_shards}
        shards["failures"] = [
            {"reason": {"reason": "Data too large"}}
        ] * self.failed_shards
        for header, search in zip(lines[::2], lines[1::2], strict=True):
            # else each shard would count the frequency of a term in its own documents
            is_vector = "knn" in search["query"]
            assert is_vector or header["search_type"] == "dfs_query_then_fetch"
            try:
                hits = self._shelf(header["index"]).search(search)
                answer = {"timed_out": False, "_shards": shards, "hits": hits}
            except RefusedError as error:
                answer = error.content
            responses.append(answer)
        return {"responses": responses}


@contextmanager
def opensearch_server() -> Generator[FakeServer]:
    """Run a server on a free port of this machine until the block ends."""
    fake = FakeServer()

    class Answers(Handler):
        def handle_any(self) -> None:
            try:
                status = 200
                content = fake.answer(
                    self.command, self.path.split("?")[0], self.body()
                )
            except RefusedError as error:
                status, content = error.content["status"], error.content
            self.answer(status, json.dumps(content).encode())

        do_GET = do_PUT = do_POST = do_HEAD = handle_any

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Answers)) as fake.url:
        yield fake
