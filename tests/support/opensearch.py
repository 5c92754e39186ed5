"""A small server that speaks the part of OpenSearch's REST API that the guide uses, and refuses everything else.

It follows the documentation of OpenSearch 2 (https://docs.opensearch.org/2.19): queries are really evaluated, errors
have the documented form.
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
from urllib.parse import parse_qs, urlsplit

import numpy as np

from citerec.index.bm25 import analyze
from support.http_server import Handler, running

ORDER = [{"_score": "desc"}, {"id": "asc"}]
OPTIONS = {
    "search_type": ["dfs_query_then_fetch"],
    "allow_partial_search_results": ["false"],
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


@dataclass
class Shelf:
    """An index: its settings, its documents, and those that a search sees."""

    settings: Json
    written: dict[str, Json] = field(default_factory=dict[str, Json])
    visible: dict[str, Json] = field(default_factory=dict[str, Json])

    def search(self, body: Json) -> Json:
        assert {*body} == {"size", "query", "sort"}
        assert body["sort"] == ORDER
        scores = self._matching(**body["query"]["bool"])
        best = sorted(scores, key=lambda docid: (-scores[docid], docid))[: body["size"]]
        return {"hits": {"hits": [{"sort": [scores[docid], docid]} for docid in best]}}

    def _matching(
        self,
        *,
        should: list[Json],
        minimum_should_match: int,
        filter: list[Json] | None = None,
        must_not: list[Json] | None = None,
    ) -> dict[str, float]:
        assert len(should) <= 1024, "maxClauseCount is set to 1024"
        assert minimum_should_match == 1
        scores: Counter[str] = Counter()
        for clause in should:
            [(name, spec)] = clause["term"].items()
            scores.update(self._bm25(name, spec["value"], spec["boost"]))
        accepted = [self._accepts(clause) for clause in filter or ()]
        refused = [self._accepts(clause) for clause in must_not or ()]
        return {
            docid: float(np.float32(score))
            for docid, score in scores.items()
            if all(accepts(docid) for accepts in accepted)
            and not any(refuses(docid) for refuses in refused)
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

    def _accepts(self, query: Json) -> Callable[[str], bool]:
        [(kind, content)] = query.items()
        if kind == "ids":
            return lambda docid: docid in content["values"]
        assert kind == "range"
        [(name, bounds)] = content.items()
        return lambda docid: self.visible[docid].get(name, -math.inf) > bounds["gt"]


@dataclass
class FakeServer:
    """The server."""

    url: str = ""
    shelves: dict[str, Shelf] = field(default_factory=dict[str, Shelf])

    def answer(self, method: str, address: str, body: bytes) -> Json:
        path = urlsplit(address)
        name, _, action = path.path.strip("/").rpartition("/")
        if action == "_bulk":
            return self._bulk(body)
        if method == "PUT" and not name:
            content = json.loads(body)
            self.shelves[action] = Shelf(content["settings"]["index"])
        elif action == "_refresh":
            self.shelves[name].visible = dict(self.shelves[name].written)
        else:
            assert action == "_search"
            assert parse_qs(path.query) == OPTIONS
            return self.shelves[name].search(json.loads(body))
        return {"acknowledged": True}

    def _bulk(self, body: bytes) -> Json:
        lines = [json.loads(line) for line in body.splitlines()]
        items = list[dict[str, Any]]()
        for action, content in zip(lines[::2], lines[1::2], strict=True):
            target = action["index"]
            items.append({"index": {"_id": target["_id"], "status": 201}})
            self.shelves[target["_index"]].written[target["_id"]] = content
        return {"errors": False, "items": items}


@contextmanager
def opensearch_server() -> Generator[FakeServer]:
    """Run a server on a free port of this machine until the block ends."""
    fake = FakeServer()

    class Answers(Handler):
        def handle_any(self) -> None:
            content = fake.answer(self.command, self.path, self.body())
            self.answer(200, json.dumps(content).encode())

        do_GET = do_PUT = do_POST = do_HEAD = handle_any

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Answers)) as fake.url:
        yield fake
