"""A local server that answers as OpenAlex and Semantic Scholar do, from any papers, and refuses what they refuse.

Shapes and rules: https://developers.openalex.org, github.com/ourresearch/openalex-elastic-api, and
https://api.semanticscholar.org/api-docs/graph; bodies are as recorded, shortened. It misbehaves on demand.

A paper is a canonical record. Further keys: `elided` (its publisher withholds the references at Semantic Scholar: null;
"late": the batch has an empty list, the paper's own list is null; "empty": that list has them), `merged` (the URL of
another page of the same work at OpenAlex), `retracted`.
"""

import gzip
import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from citerec.bibliography.keys import title_key
from support.corpora import SAMPLE
from support.http_server import Handler, running

Params = Mapping[str, str]
WORK_FIELDS = frozenset(
    "id doi title publication_year type authorships primary_location locations biblio cited_by_count "
    "referenced_works abstract_inverted_index is_retracted".split()
)
PAPER_FIELDS = frozenset(
    "paperId externalIds url title abstract venue year publicationDate publicationTypes journal authors "
    "citationCount referenceCount references".split()
)
MOST_URL = 4096  # bytes
UNTIL_MIDNIGHT = "53578"  # seconds


class RefusedError(Exception):
    """A request that the rules of a service refuse: with this status, body and headers."""

    def __init__(
        self,
        status: int,
        value: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(value)
        self.status, self.value, self.headers = status, value, headers


def refuse_query(message: str) -> None:
    raise RefusedError(
        400, {"error": "Invalid query parameters error.", "message": message}
    )


def refuse_paper(message: str) -> None:
    raise RefusedError(400, {"error": message})


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
HTML = Fault(
    body=b"<html>Welcome to the hotel</html>", headers={"Content-Type": "text/html"}
)


@dataclass
class Sent:
    """A request as it arrived."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]
    body: str = ""
    url: str = ""


class ScholarServer(ThreadingHTTPServer):
    """Both services at once, below `url`."""

    daemon_threads = True

    def __init__(self, papers: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        # the answers of the next requests; None: as it should
        self.faults: list[Fault | None] = []
        self.requests: list[Sent] = []
        self.keys: set[str] = set()  # the keys that it accepts; all if empty
        self.hidden: set[str] = set()  # papers that it does not know for now
        self.most_bytes = 10 * 2**20  # of an answer of /paper/batch
        # of an answer of /paper/batch; it leaves out the others
        self.most_references = 9999
        # what was answered to requests against the rules
        self.refused: list[Mapping[str, Any]] = []
        self.unspeakable = ""  # a word that OpenAlex refuses for a reason of its own
        # dollars that are left to requests of OpenAlex without a key
        self.budget: float | None = None
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
        self.by_doi = {
            str(p["doi"]).lower(): i for i, p in self.papers.items() if p.get("doi")
        }
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
        found = (
            set.intersection(*(self.with_word.get(w, set()) for w in words))
            if words
            else set()
        )
        return sorted(found - self.hidden, key=lambda i: (-len(self.cited_by[i]), i))

    def near(self, text: str) -> list[str]:
        """Return the papers whose titles share words with a text, those that share most first."""
        words = title_key(text).split()
        shared = Counter(i for word in set(words) for i in self.with_word.get(word, ()))
        return [i for i, _ in shared.most_common() if i not in self.hidden]

    def reply(self, sent: Sent) -> tuple[int, Any]:
        key = sent.params.get("api_key") or sent.headers.get("x-api-key") or ""
        if self.keys and key not in self.keys:
            return 403, {"message": f"Invalid key: {key}"}
        names = [
            name
            for name, _ in parse_qsl(urlsplit(sent.url).query, keep_blank_values=True)
        ]
        if len(names) > len(set(names)):
            refuse_query(f"each parameter once, found {names}")
        if len(sent.url) > MOST_URL:
            raise RefusedError(414, {"error": "URI Too Long"})
        match sent.path.strip("/").split("/"):
            case ["works"]:
                if not key:
                    self.spend(sent.params)
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
            "authorships": [
                {"author": {"display_name": a}} for a in paper.get("authors", [])
            ],
            "primary_location": {"source": {"display_name": paper.get("venue")}},
            "locations": [
                {"landing_page_url": url} for url in [paper.get("merged")] if url
            ],
            "is_retracted": bool(paper.get("retracted")),
            "cited_by_count": len(self.cited_by[i]),
            "referenced_works": [
                f"https://openalex.org/{self.number[r]}" for r in self.references[i]
            ],
            "abstract_inverted_index": dict(words) if words else None,
        }

    def spend(self, params: Params) -> None:
        """Take the price of a request from the budget; 429 if it is used up."""
        if self.budget is None:
            return
        is_search = "search" in params or "title.search:" in params.get("filter", "")
        price = 0.001 if is_search else 0.0001
        if "search.semantic" in params:
            price = 0.01
        if self.budget < price:
            message = f"Insufficient budget. This request costs ${price} but you only have $0 remaining."
            left = {"Limit-USD": "0.1", "Remaining-USD": "0", "Reset": UNTIL_MIDNIGHT}
            headers = {f"X-RateLimit-{name}": value for name, value in left.items()}
            body = {"error": "Rate limit exceeded", "message": message}
            raise RefusedError(429, body, {**headers, "Retry-After": UNTIL_MIDNIGHT})
        self.budget -= price

    def check_search(self, text: str) -> None:
        """Refuse the signs that are commands of a search, wherever they cannot be one."""
        if "*" in text or "?" in text:
            refuse_query(
                f"Wildcards (* or ?) require exact (no-stem) search, e.g. {text}."
            )
        if "|" in text or "!" in text:
            refuse_query(f"The search parameter does not support this operator: {text}")
        if (
            text.count('"') % 2
            or text.count("(") != text.count(")")
            or text.endswith("~")
        ):
            refuse_query(f"Failed to parse query: {text}")
        if self.unspeakable and self.unspeakable in text:
            refuse_query(f"Failed to parse query: {text}")

    def filtered(self, filters: str) -> list[str]:
        first, *others = (part.partition(":") for part in filters.split(","))
        for name, _, value in (first, *others):
            if value.lower() in {"", "none", "undefined"}:
                refuse_query(
                    f"Invalid filter value for '{name}': value cannot be '{value}'."
                )
        values = [value.lower() for value in first[2].split("|")]
        if len(values) > 100:
            refuse_query(f"Maximum number of values exceeded for {first[0]}.")
        if first[0] == "title.search":
            self.check_search(first[2])
        elif self.unspeakable and self.unspeakable in first[2]:
            refuse_query(f"Invalid filter value: {first[2]}")
        known = [self.by_name[value] for value in values if value in self.by_name]
        found = {
            "doi": lambda: [self.by_doi[v] for v in values if v in self.by_doi],
            "openalex": lambda: known,
            "cites": lambda: list(
                dict.fromkeys(i for c in known for i in self.cited_by[c])
            ),
            "title.search": lambda: self.matching(first[2]),
            "locations.landing_page_url": lambda: [
                i for i, paper in self.papers.items() if paper.get("merged") in values
            ],
        }[first[0]]()
        for name, _, value in others:
            assert name == "from_publication_date"
            found = [
                i for i in found if (self.papers[i].get("year") or 0) >= int(value[:4])
            ]
        return [i for i in found if i not in self.hidden]

    def works(self, params: Params) -> dict[str, Any]:
        search = params.get("search")
        self.check_search(search or "")
        if "search.semantic" in params:
            found = self.near(params["search.semantic"][:2000])[:50]
        else:
            found = self.matching(search) if search else self.filtered(params["filter"])
        if params.get("sort") == "cited_by_count:desc":
            found = sorted(found, key=lambda i: -len(self.cited_by[i]))
        size, cursor = int(params.get("per_page", 25)), params.get("cursor", "")
        if not 1 <= size <= 200:
            message = "per-page parameter must be between 1 and 200."
            raise RefusedError(400, {"error": "Pagination error.", "message": message})
        start = int(cursor) if cursor not in {"", "*"} else 0
        following = str(start + size) if start + size < len(found) and cursor else None
        names = params.get("select", "id,title").split(",")
        if bad := {*names} - WORK_FIELDS:
            refuse_query(f"{bad} is not a valid select field.")
        rows = [self.openalex(i) for i in found[start : start + size]]
        return {
            "meta": {"count": len(found), "per_page": size, "next_cursor": following},
            "results": [{name: row.get(name) for name in names} for row in rows],
        }

    # Semantic Scholar

    def s2(self, i: str, fields: str) -> dict[str, Any]:
        paper, names = (
            self.papers[i],
            {name.partition(".")[0] for name in fields.split(",")},
        )
        if (
            len(set(fields.split(","))) < len(fields.split(","))
            or not names <= PAPER_FIELDS
        ):
            refuse_paper(f"Unrecognized or unsupported fields: [{fields}]")
        every = {
            "externalIds": {"DOI": paper["doi"]} if paper.get("doi") else {},
            "title": paper["title"],
            "abstract": paper.get("abstract") or None,
            "venue": paper.get("venue", ""),
            "year": paper.get("year"),
            "authors": [{"authorId": "1", "name": a} for a in paper.get("authors", [])],
            "citationCount": len(self.cited_by[i]),
            "referenceCount": len(paper.get("citations", [])),
            "references": [
                {"paperId": self.hash[r], "citationCount": len(self.cited_by[r])}
                for r in self.references[i]
                if not paper.get("elided")
            ],
        }
        if paper.get("elided") is True:
            every["references"] = None
        return {
            "paperId": self.hash[i],
            **{k: v for k, v in every.items() if k in names},
        }

    def s2_id(self, name: str) -> str | None:
        kind, _, value = name.lower().partition(":")
        doi = {"doi": value, "arxiv": f"10.48550/arxiv.{value}"}.get(kind)
        return self.by_doi.get(doi) if doi else self.by_name.get(name.lower())

    def s2_answer(self, sent: Sent, rest: Sequence[str]) -> tuple[int, Any]:
        params = sent.params
        match rest:
            case ["batch"]:
                names = json.loads(sent.body)["ids"]
                if len(names) > 500:
                    refuse_paper("Too many paper ids: at most 500")
                found = [self.s2_id(name) for name in names]
                if not any(found):
                    return 400, {"error": "No valid paper ids given"}
                rows = [self.s2(i, params["fields"]) if i else None for i in found]
                room = self.most_references
                for row in filter(None, rows):
                    if row.get("references"):
                        row["references"] = row["references"][:room]
                        room -= len(row["references"])
                if len(json.dumps(rows)) > self.most_bytes:
                    return 400, {"error": "Response would exceed maximum size"}
                return 200, rows
            case ["search", ("match" | "bulk") as kind]:
                found = self.matching(params["query"])
                data = [
                    self.s2(i, params["fields"])
                    for i in found[: 1 if kind == "match" else None]
                ]
                return (
                    (200, {"data": data})
                    if data or kind == "bulk"
                    else (404, {"error": "none"})
                )
            case [name, ("citations" | "references") as what]:
                if not (i := self.s2_id(name)):
                    return 404, {"error": "none"}
                is_citing = what == "citations"
                papers = self.cited_by[i] if is_citing else self.references[i]
                papers = [one for one in papers if one not in self.hidden]
                if int(params["limit"]) > 1000:
                    refuse_paper("limit must be <= 1000")
                if int(params["offset"]) + int(params["limit"]) >= 10_000:
                    refuse_paper("offset + limit must be < 10000")
                if not is_citing and self.papers[i].get("elided") in {True, "late"}:
                    notice = "Notice: fields have been elided by the publisher: {'references'}"
                    about = {
                        "paperId": self.hash[i],
                        "openAccessPdf": {"disclaimer": notice},
                    }
                    return 200, {"data": None, "citingPaperInfo": about}
                key = "citingPaper" if is_citing else "citedPaper"
                end = int(params["offset"]) + int(params["limit"])
                page = papers[int(params["offset"]) : end]
                more = {"next": end} if end < len(papers) else {}
                return 200, {
                    **more,
                    "data": [{key: self.s2(p, params["fields"])} for p in page],
                }
            case _:
                return 404, {"error": "no such path"}


class Answers(Handler):
    def respond(self) -> None:
        scholar, address = cast("ScholarServer", self.server), urlsplit(self.path)
        params = dict(parse_qsl(address.query, keep_blank_values=True))
        body = self.body().decode()
        sent = Sent(unquote(address.path), params, dict(self.headers), body, self.path)
        scholar.requests.append(sent)
        fault = (scholar.faults.pop(0) if scholar.faults else None) or Fault(wait=-1)
        time.sleep(max(fault.wait, 0))
        if fault.cut or fault.wait:
            headers = None
            try:
                status, value = scholar.reply(sent)
            except RefusedError as refusal:
                status, value, headers = refusal.status, refusal.value, refusal.headers
                scholar.refused.append(value)
            content = json.dumps(value).encode()
            self.answer(
                status,
                content,
                headers,
                cut_at=len(content) // 2 if fault.cut else None,
            )
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


def papers_around(seed: str) -> list[dict[str, Any]]:
    """Return a paper of the sample, those that it cites, and those that cite it, each with the DOI 10.5555/ID."""
    papers = papers_of(SAMPLE)
    [cited] = [paper["citations"] for paper in papers if paper["id"] == seed]
    return [
        {**paper, "doi": f"10.5555/{paper['id']}"}
        for paper in papers
        if paper["id"] in (seed, *cited) or seed in paper["citations"]
    ]
