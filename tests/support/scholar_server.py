"""A local server that speaks the documented HTTP APIs of OpenAlex and Semantic Scholar, filled from any papers.

Shapes: https://developers.openalex.org and https://api.semanticscholar.org/api-docs/graph. It misbehaves on demand.
"""

import gzip
import hashlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from citerec.bibliography.keys import title_key

PER_PAGE = 100  # OpenAlex's most
BATCH = 500  # Semantic Scholar's most


@dataclass(frozen=True)
class Fault:
    """One bad answer."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False  # whether the connection breaks in the middle of the right answer
    wait: float = 0.0  # seconds before the answer


def busy(seconds: str) -> Fault:
    message = b'{"message": "Too Many Requests"}'
    return Fault(429, message, {"Retry-After": seconds})


BROKEN = Fault(500, b'{"error": "Internal Server Error"}')
CUT = Fault(cut=True)
HTML = Fault(body=b"<html>Welcome to the hotel</html>", headers={"Content-Type": "text/html"})


@dataclass
class Sent:
    """A request as it arrived."""

    method: str
    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: str = ""


class ScholarServer(ThreadingHTTPServer):
    """Both services at once, below `url`."""

    daemon_threads = True

    def __init__(self, papers: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[Fault | None] = []  # the answers of the next requests; None: as it should
        self.requests: list[Sent] = []
        self.keys: set[str] = set()  # the keys that it accepts; all if empty
        self.hidden: set[str] = set()  # papers that it does not know for now
        self.most_bytes = 10 * 2**20  # of an answer of /paper/batch
        self.fill(papers)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that were killed."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fill(self, papers: Iterable[Mapping[str, Any]]) -> None:
        """Replace all papers; a paper without a DOI has none here, either."""
        self.papers = {str(paper["id"]): paper for paper in papers}
        self.number = {i: f"W{1000 + n}" for n, i in enumerate(self.papers)}
        self.hash = {i: hashlib.sha1(i.encode()).hexdigest() for i in self.papers}
        self.by_name = {name.lower(): i for i, name in [*self.number.items()]}
        self.by_name |= {name: i for i, name in self.hash.items()}
        self.by_doi = {str(p["doi"]).lower(): i for i, p in self.papers.items() if p.get("doi")}
        self.cited_by: defaultdict[str, list[str]] = defaultdict(list)
        self.with_word: defaultdict[str, set[str]] = defaultdict(set)
        for i, paper in self.papers.items():
            for reference in dict.fromkeys(paper.get("citations", [])):
                self.cited_by[reference].append(i)
            for word in title_key(str(paper["title"])).split():
                self.with_word[word].add(i)

    def visible(self, ids: Iterable[str]) -> list[str]:
        return [i for i in ids if i not in self.hidden]

    def matching(self, text: str) -> list[str]:
        """Return the papers whose title has all words, the most cited first."""
        words = title_key(text).split()
        found = set.intersection(*(self.with_word.get(w, set()) for w in words)) if words else set()
        return sorted(found - self.hidden, key=lambda i: (-len(self.cited_by[i]), i))

    # OpenAlex

    def openalex(self, i: str) -> dict[str, Any]:
        paper = self.papers[i]
        words: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(str(paper.get("abstract") or "").split()):
            words[word].append(place)
        references = [self.number[r] for r in paper.get("citations", []) if r in self.papers]
        return {
            "id": f"https://openalex.org/{self.number[i]}",
            "doi": f"https://doi.org/{paper['doi']}" if paper.get("doi") else None,
            "title": paper["title"],
            "publication_year": paper.get("year"),
            "publication_date": f"{paper.get('year')}-06-01",
            "type": "article",
            "authorships": [{"author": {"display_name": a}} for a in paper.get("authors", [])],
            "primary_location": {"source": {"display_name": paper.get("venue")}},
            "biblio": {"volume": "1", "issue": None, "first_page": "1", "last_page": "9"},
            "cited_by_count": len(self.cited_by[i]),
            "referenced_works": [f"https://openalex.org/{r}" for r in references],
            "abstract_inverted_index": dict(words) if words else None,
        }

    def filtered(self, filters: str) -> list[str]:
        found: list[str] = []
        first, *others = (part.partition(":") for part in filters.split(","))
        values = first[2].split("|")
        assert len(values) <= PER_PAGE, "OpenAlex accepts 100 values"
        match first[0]:
            case "doi":
                bare = (v.removeprefix("https://doi.org/").lower() for v in values)
                found = [self.by_doi[v] for v in bare if v in self.by_doi]
            case "openalex":
                found = [self.by_name[v.lower()] for v in values if v.lower() in self.by_name]
            case "cites":
                cited = [self.by_name[v.lower()] for v in values if v.lower() in self.by_name]
                found = list(dict.fromkeys(i for c in cited for i in self.cited_by[c]))
            case "title.search":
                found = self.matching(first[2])
        for name, _, value in others:
            assert name == "from_publication_date"
            found = [i for i in found if (self.papers[i].get("year") or 0) >= int(value[:4])]
        return self.visible(found)

    def works(self, params: Mapping[str, str]) -> dict[str, Any]:
        found = self.filtered(params["filter"]) if "filter" in params else []
        if "search" in params:
            found = self.matching(params["search"])
        if params.get("sort") == "cited_by_count:desc":
            found = sorted(found, key=lambda i: -len(self.cited_by[i]))
        size = int(params.get("per_page") or params.get("per-page") or 25)
        assert size <= PER_PAGE
        cursor = params.get("cursor", "")
        start = 0 if cursor in {"", "*"} else int(cursor.split("-")[1])
        page = found[start : start + size]
        following = f"c-{start + size}" if start + size < len(found) and cursor else None
        fields = params["select"].split(",") if "select" in params else None
        rows = [self.openalex(i) for i in page]
        if fields:
            rows = [{name: row.get(name) for name in fields} for row in rows]
        meta = {"count": len(found), "per_page": size, "next_cursor": following}
        return {"meta": meta, "results": rows}

    # Semantic Scholar

    def s2(self, i: str, fields: str) -> dict[str, Any]:
        paper, names = self.papers[i], {name.partition(".")[0] for name in fields.split(",")}
        every = {
            "externalIds": {"DOI": paper["doi"]} if paper.get("doi") else {},
            "url": f"https://www.semanticscholar.org/paper/{self.hash[i]}",
            "title": paper["title"],
            "abstract": paper.get("abstract") or None,
            "venue": paper.get("venue", ""),
            "year": paper.get("year"),
            "publicationDate": None,
            "publicationTypes": ["JournalArticle"],
            "journal": {"name": paper.get("venue", ""), "volume": "1", "pages": "1-9"},
            "authors": [{"authorId": "1", "name": a} for a in paper.get("authors", [])],
            "citationCount": len(self.cited_by[i]),
            "referenceCount": len(paper.get("citations", [])),
            "references": [
                {"paperId": self.hash[r], "citationCount": len(self.cited_by[r])}
                for r in paper.get("citations", [])
                if r in self.papers and not paper.get("elided")
            ],
        }
        return {"paperId": self.hash[i], **{k: v for k, v in every.items() if k in names}}

    def s2_id(self, name: str) -> str | None:
        kind, _, value = name.partition(":")
        if kind == "DOI":
            return self.by_doi.get(value.lower())
        if kind == "ARXIV":
            return self.by_doi.get(f"10.48550/arxiv.{value.lower()}")
        return self.by_name.get(name.lower())

    def s2_list(self, i: str, what: str, params: Mapping[str, str]) -> dict[str, Any]:
        ids = [r for r in self.papers[i].get("citations", []) if r in self.papers]
        papers = self.visible(self.cited_by[i] if what == "citations" else ids)
        key = "citingPaper" if what == "citations" else "citedPaper"
        offset, limit = int(params.get("offset", 0)), int(params.get("limit", 100))
        assert limit <= 1000
        page = papers[offset : offset + limit]
        answer: dict[str, Any] = {"offset": offset}
        if offset + limit < len(papers):
            answer["next"] = offset + limit
        data = [{key: self.s2(p, params["fields"])} for p in page]
        return {**answer, "data": data}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for an acknowledgement

    @property
    def scholar(self) -> ScholarServer:
        return cast("ScholarServer", self.server)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.respond("GET")

    def do_POST(self) -> None:
        self.respond("POST")

    def respond(self, method: str) -> None:
        address = urlsplit(self.path)
        params = dict(parse_qsl(address.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        sent = Sent(method, unquote(address.path), params, dict(self.headers), body.decode())
        self.scholar.requests.append(sent)
        fault = self.scholar.faults.pop(0) if self.scholar.faults else None
        if fault and fault.wait:
            time.sleep(fault.wait)
        if fault and not fault.cut and not fault.wait:
            self.send(fault.status, fault.body, fault.headers)
            return
        status, value = self.answer(sent)
        text = json.dumps(value).encode()
        self.send(status, text, {}, cut=fault is not None and fault.cut)

    def send(
        self, status: int, body: bytes, headers: Mapping[str, str], *, cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.close_connection = True

    def answer(self, sent: Sent) -> tuple[int, Any]:
        scholar = self.scholar
        key = sent.params.get("api_key") or sent.headers.get("x-api-key") or ""
        if scholar.keys and key not in scholar.keys:
            return 403, {"message": f"Invalid key: {key}"}
        parts = sent.path.strip("/").split("/")
        match parts:
            case ["works"]:
                return 200, scholar.works(sent.params)
            case ["works", *rest]:
                doi = "/".join(rest).removeprefix("doi:").lower()
                i = scholar.by_doi.get(doi) or scholar.by_name.get(doi)
                return (200, scholar.openalex(i)) if i else (404, {"error": "Not Found"})
            case ["graph", "v1", "paper", *rest]:
                return self.s2_answer(sent, rest)
            case _:
                return 404, {"error": "no such path"}

    def s2_answer(self, sent: Sent, rest: Sequence[str]) -> tuple[int, Any]:
        scholar, params = self.scholar, sent.params
        match rest:
            case ["batch"]:
                names = json.loads(sent.body)["ids"]
                if len(names) > BATCH:
                    return 400, {"error": "Can only process 500 paper ids at a time"}
                found = [scholar.s2_id(name) for name in names]
                rows = [scholar.s2(i, params["fields"]) if i else None for i in found]
                if len(json.dumps(rows)) > scholar.most_bytes:
                    return 400, {"error": "Response would exceed maximum size"}
                return 200, rows
            case ["search", "match"]:
                found = scholar.matching(params["query"])[:1]
                data = [{**scholar.s2(i, params["fields"]), "matchScore": 99.0} for i in found]
                return (200, {"data": data}) if data else (404, {"error": "Title match not found"})
            case ["search", "bulk"]:
                found = scholar.matching(params["query"])[:1000]
                data = [scholar.s2(i, params["fields"]) for i in found]
                return 200, {"total": len(data), "token": None, "data": data}
            case [name, ("citations" | "references") as what]:
                i = scholar.s2_id(name)
                return (200, scholar.s2_list(i, what, params)) if i else (404, {"error": "none"})
            case _:
                return 404, {"error": "no such path"}


@contextmanager
def serving(papers: Iterable[Mapping[str, Any]]) -> Generator[ScholarServer]:
    """Serve papers until the block ends."""
    server = ScholarServer(papers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def papers_of(corpus: Path) -> list[dict[str, Any]]:
    """Return the records of a canonical corpus, plain or packed by gzip."""
    packed = corpus.read_bytes()
    text = gzip.decompress(packed) if corpus.suffix == ".gz" else packed
    return [json.loads(line) for line in text.splitlines()]
