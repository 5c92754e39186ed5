"""A local server that speaks the documented HTTP APIs of OpenAlex and Semantic Scholar, filled from any papers.

Shapes: https://developers.openalex.org and https://api.semanticscholar.org/api-docs/graph. It misbehaves on demand.
"""

import gzip
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from citerec.bibliography.keys import title_key
from support.http_server import Handler, running

Params = Mapping[str, str]


@dataclass(frozen=True)
class Fault:
    """One bad answer."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False  # whether the connection breaks in the middle of the right answer
    wait: float = 0.0  # seconds before the answer


def busy(seconds: str) -> Fault:
    return Fault(429, b'{"message": "Too Many Requests"}', {"Retry-After": seconds})


BROKEN = Fault(500, b'{"error": "Internal Server Error"}')
CUT = Fault(cut=True)
HTML = Fault(body=b"<html>Welcome to the hotel</html>", headers={"Content-Type": "text/html"})


@dataclass
class Sent:
    """A request as it arrived."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: str = ""


class ScholarServer(ThreadingHTTPServer):
    """Both services at once, below `url`."""

    daemon_threads = True

    def __init__(self, papers: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.faults: list[Fault | None] = []  # the answers of the next requests; None: as it should
        self.requests: list[Sent] = []
        self.keys: set[str] = set()  # the keys that it accepts; all if empty
        self.hidden: set[str] = set()  # papers that it does not know for now
        self.most_bytes = 10 * 2**20  # of an answer of /paper/batch
        self.fill(papers)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent about clients that were killed."""

    def fill(self, papers: Iterable[Mapping[str, Any]]) -> None:
        """Replace all papers; a paper without a DOI has none here, either."""
        self.papers = {str(paper["id"]): paper for paper in papers}
        self.number = {i: f"W{1000 + n}" for n, i in enumerate(self.papers)}
        self.hash = {i: hashlib.sha1(i.encode()).hexdigest() for i in self.papers}
        self.by_name = {name.lower(): i for i, name in self.number.items()}
        self.by_name |= {name: i for i, name in self.hash.items()}
        self.by_doi = {str(p["doi"]).lower(): i for i, p in self.papers.items() if p.get("doi")}
        self.references = {
            i: [r for r in p.get("citations", []) if r in self.papers]
            for i, p in self.papers.items()
        }
        self.cited_by: defaultdict[str, list[str]] = defaultdict(list)
        self.with_word: defaultdict[str, set[str]] = defaultdict(set)
        for i, paper in self.papers.items():
            for reference in dict.fromkeys(self.references[i]):
                self.cited_by[reference].append(i)
            for word in title_key(str(paper["title"])).split():
                self.with_word[word].add(i)

    def matching(self, text: str) -> list[str]:
        """Return the papers whose title has all words, the most cited first."""
        words = title_key(text).split()
        found = set.intersection(*(self.with_word.get(w, set()) for w in words)) if words else set()
        return sorted(found - self.hidden, key=lambda i: (-len(self.cited_by[i]), i))

    def reply(self, sent: Sent) -> tuple[int, Any]:
        key = sent.params.get("api_key") or sent.headers.get("x-api-key") or ""
        if self.keys and key not in self.keys:
            return 403, {"message": f"Invalid key: {key}"}
        match sent.path.strip("/").split("/"):
            case ["works"]:
                return 200, self.works(sent.params)
            case ["works", *rest]:
                i = self.by_name.get("/".join(rest).lower())
                return (200, self.openalex(i)) if i else (404, {"error": "Not Found"})
            case ["graph", "v1", "paper", *rest]:
                return self.s2_answer(sent, rest)
            case _:
                return 404, {"error": "no such path"}

    # OpenAlex

    def openalex(self, i: str) -> dict[str, Any]:
        paper = self.papers[i]
        words: defaultdict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(str(paper.get("abstract") or "").split()):
            words[word].append(place)
        return {
            "id": f"https://openalex.org/{self.number[i]}",
            "doi": f"https://doi.org/{paper['doi']}" if paper.get("doi") else None,
            "title": paper["title"],
            "publication_year": paper.get("year"),
            "type": "article",
            "authorships": [{"author": {"display_name": a}} for a in paper.get("authors", [])],
            "primary_location": {"source": {"display_name": paper.get("venue")}},
            "biblio": {"volume": "1", "issue": None, "first_page": "1", "last_page": "9"},
            "cited_by_count": len(self.cited_by[i]),
            "referenced_works": [
                f"https://openalex.org/{self.number[r]}" for r in self.references[i]
            ],
            "abstract_inverted_index": dict(words) if words else None,
        }

    def filtered(self, filters: str) -> list[str]:
        first, *others = (part.partition(":") for part in filters.split(","))
        values = [value.lower() for value in first[2].split("|")]
        assert len(values) <= 100, "OpenAlex accepts 100 values"
        known = [self.by_name[value] for value in values if value in self.by_name]
        found = {
            "doi": lambda: [self.by_doi[v] for v in values if v in self.by_doi],
            "openalex": lambda: known,
            "cites": lambda: list(dict.fromkeys(i for c in known for i in self.cited_by[c])),
            "title.search": lambda: self.matching(first[2]),
        }[first[0]]()
        for name, _, value in others:
            assert name == "from_publication_date"
            found = [i for i in found if (self.papers[i].get("year") or 0) >= int(value[:4])]
        return [i for i in found if i not in self.hidden]

    def works(self, params: Params) -> dict[str, Any]:
        search = params.get("search")
        found = self.matching(search) if search else self.filtered(params["filter"])
        if params.get("sort") == "cited_by_count:desc":
            found = sorted(found, key=lambda i: -len(self.cited_by[i]))
        size, cursor = int(params.get("per_page", 25)), params.get("cursor", "")
        assert size <= 100, "OpenAlex returns 100 works"
        start = int(cursor) if cursor not in {"", "*"} else 0
        following = str(start + size) if start + size < len(found) and cursor else None
        names = params.get("select", "id,title").split(",")
        rows = [self.openalex(i) for i in found[start : start + size]]
        return {
            "meta": {"count": len(found), "per_page": size, "next_cursor": following},
            "results": [{name: row.get(name) for name in names} for row in rows],
        }

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
                for r in self.references[i]
                if not paper.get("elided")
            ],
        }
        return {"paperId": self.hash[i], **{k: v for k, v in every.items() if k in names}}

    def s2_id(self, name: str) -> str | None:
        kind, _, value = name.lower().partition(":")
        doi = {"doi": value, "arxiv": f"10.48550/arxiv.{value}"}.get(kind)
        return self.by_doi.get(doi) if doi else self.by_name.get(name.lower())

    def s2_answer(self, sent: Sent, rest: Sequence[str]) -> tuple[int, Any]:
        params = sent.params
        match rest:
            case ["batch"]:
                names = json.loads(sent.body)["ids"]
                assert len(names) <= 500, "Semantic Scholar returns 500 papers"
                found = [self.s2_id(name) for name in names]
                rows = [self.s2(i, params["fields"]) if i else None for i in found]
                if len(json.dumps(rows)) > self.most_bytes:
                    return 400, {"error": "Response would exceed maximum size"}
                return 200, rows
            case ["search", ("match" | "bulk") as kind]:
                found = self.matching(params["query"])
                data = [
                    self.s2(i, params["fields"]) for i in found[: 1 if kind == "match" else None]
                ]
                return (200, {"data": data}) if data or kind == "bulk" else (404, {"error": "none"})
            case [name, ("citations" | "references") as what]:
                if not (i := self.s2_id(name)):
                    return 404, {"error": "none"}
                is_citing = what == "citations"
                papers = self.cited_by[i] if is_citing else self.references[i]
                papers = [one for one in papers if one not in self.hidden]
                key = "citingPaper" if is_citing else "citedPaper"
                end = int(params["offset"]) + int(params["limit"])
                page = papers[int(params["offset"]) : end]
                more = {"next": end} if end < len(papers) else {}
                return 200, {**more, "data": [{key: self.s2(p, params["fields"])} for p in page]}
            case _:
                return 404, {"error": "no such path"}


class Answers(Handler):
    def respond(self) -> None:
        scholar, address = cast("ScholarServer", self.server), urlsplit(self.path)
        params = dict(parse_qsl(address.query, keep_blank_values=True))
        sent = Sent(unquote(address.path), params, dict(self.headers), self.body().decode())
        scholar.requests.append(sent)
        fault = (scholar.faults.pop(0) if scholar.faults else None) or Fault(wait=-1)
        time.sleep(max(fault.wait, 0))
        if fault.cut or fault.wait:
            status, value = scholar.reply(sent)
            body = json.dumps(value).encode()
            self.answer(status, body, cut_at=len(body) // 2 if fault.cut else None)
        else:
            self.answer(fault.status, fault.body, fault.headers)

    do_GET = do_POST = respond


@contextmanager
def serving(papers: Iterable[Mapping[str, Any]]) -> Generator[ScholarServer]:
    """Serve papers until the block ends."""
    server = ScholarServer(papers)
    with running(server):
        yield server


def papers_of(corpus: Path) -> list[dict[str, Any]]:
    """Return the records of a canonical corpus, plain or packed by gzip."""
    packed = corpus.read_bytes()
    text = gzip.decompress(packed) if corpus.suffix == ".gz" else packed
    return [json.loads(line) for line in text.splitlines()]
