"""Works and citations of OpenAlex and Semantic Scholar, by the same methods.

Sources: https://developers.openalex.org, https://api.semanticscholar.org/api-docs/graph.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from citerec.bibliography.fields import Fields
from citerec.bibliography.keys import plain_text
from citerec.collect.client import Client, RefusedError, Service
from citerec.corpus.readers.files import ToPaper
from citerec.corpus.readers.json_formats import JSON_FORMATS, s2_paper
from citerec.errors import BadRecordError, InvalidValueError
from citerec.files.arrays import batched
from citerec.types import Json, Paper

Request = Callable[[Sequence[str]], dict[str, Paper]]
WORK_ID = re.compile(
    r"(?:https?://openalex\.org/(?:works/)?)?(W[0-9]{1,15})", re.IGNORECASE
)
PAPER_ID = re.compile(r"[0-9a-f]{40}|corpusid:[0-9]{1,12}", re.IGNORECASE)
# punctuation without apostrophes and the full stop, which belong to words
_SIGNS = re.compile(r"[!-&(-\-/:-@\[-`{-~\u2010-\u2017\u201c-\u205e]")


class SourceName(StrEnum):
    """The services."""

    OPENALEX = "openalex"
    S2 = "s2"


SERVICES = {
    SourceName.OPENALEX: Service(
        title="OpenAlex",
        url="https://api.openalex.org",
        variable="OPENALEX_API_KEY",
        parameter="api_key",
        rate=10.0,  # OpenAlex allows 100
    ),
    SourceName.S2: Service(
        title="Semantic Scholar",
        url="https://api.semanticscholar.org",
        variable="S2_API_KEY",
        header="x-api-key",
        rate=1 / 3,  # without a key all users share one allowance
    ),
}


def find_service(source: SourceName, rate: float | None) -> Service:
    """Return a service with the key of the environment; `OPENALEX_URL` and `S2_URL` name mirrors."""
    service = SERVICES[source]
    key = os.environ.get(service.variable, "").strip()
    url = os.environ.get(f"{source.name}_URL", "")
    own_rate = 1.0 if key and source is SourceName.S2 else service.rate
    return replace(service, key=key, url=url or service.url, rate=rate or own_rate)


def query_words(text: str) -> str:
    """Return the words of a query in lower case: other signs, and AND, OR and NOT, are commands of the services."""
    return " ".join(_SIGNS.sub(" ", text).lower().split())


class _Works:
    """The works of a service; those in lists are kept, so that `fetch` does not request them again.

    The ids of a work and of its citations are those of the service.
    """

    batch: int  # works of one request, at most

    def __init__(self, client: Client) -> None:
        self.client = client
        self.service = client.service
        self.dollars = 0.0  # of all requests
        # works whose list of references the publisher withholds
        self.elided = set[str]()
        # by work, what it cites as pages of citations and of references state it
        self.links: defaultdict[str, list[str]] = defaultdict(list)
        self._works: dict[str, Paper] = {}

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Paper]:
        """Return the works with these ids; unknown ones, and works without a title, are left out."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works]
        self._works |= self._in_batches(missing, self.batch, self._requested)
        return {i: self._works[i] for i in ids if i in self._works}

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        raise NotImplementedError

    def _in_batches(
        self, ids: Sequence[str], most: int, request: Request
    ) -> dict[str, Paper]:
        """Return what requests of `most` ids return; one that is refused is halved, a single id named and left out."""
        found: dict[str, Paper] = {}
        for batch in batched(ids, most):
            try:
                found |= request(batch)
            except RefusedError as error:
                if len(batch) > 1:
                    found |= self._in_batches(batch, len(batch) // 2, request)
                else:
                    self.client.log(f"{batch[0]} is left out: {error}")
        return found

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works."""
        return {
            i: (*work.citations, *self.links[i]) for i, work in self.fetch(ids).items()
        }


def _work(raw: Json, read: ToPaper) -> Paper | None:
    """Return the work of a JSON object; None if its id or title is missing, or a field has a wrong type."""
    try:
        paper = read(Fields(raw, Path(), 0))
    except (BadRecordError, InvalidValueError):
        return None
    return paper if paper.title else None


def citation_count(work: Paper) -> int:
    """Return how often a work is cited by all papers that the service knows."""
    return int(work.times_cited or 0)


class OpenAlex(_Works):
    """The works and citations of OpenAlex."""

    batch = 100  # results per page, and values of one filter, at most
    # https://developers.openalex.org/api-reference/authentication
    list_dollars = 0.0001
    search_dollars = 0.001
    semantic_dollars = 0.01
    nearest = 50  # works that a semantic search returns, at most
    longest = 2000  # characters of its text that count
    dois = 25  # or URLs of one filter, whose own URL may have about 4 KB
    select = (
        "id,doi,title,publication_year,type,authorships,primary_location,biblio,cited_by_count,referenced_works,"
        "abstract_inverted_index,is_retracted"
    )

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that the service knows."""
        found = {i: i.removeprefix("id:") for i in ids if i.startswith("id:W")}
        dois = dict[str, str]()
        pages = dict[str, str]()
        for name in ids:
            kind, _, value = name.partition(":")
            doi = f"10.48550/arxiv.{value}" if kind == "arxiv" else value.lower()
            if kind != "id" and not set(doi) & set("|, "):  # separators of filters
                dois[doi] = pages[f"https://doi.org/{doi}"] = name
            if kind == "arxiv":
                page = f"arxiv.org/abs/{value}"
                pages |= {f"https://{page}": name, f"http://{page}": name}
        found |= self._find(dois, "doi")
        # a preprint that was merged into its article has the article's DOI, and keeps its page
        pages = {page: name for page, name in pages.items() if name not in found}
        return found | self._find(pages, "locations.landing_page_url")

    def _find(self, names: Mapping[str, str], key: str) -> dict[str, str]:
        """Return the id of the work of each of `names` whose DOI or page a filter finds."""

        def request(values: Sequence[str]) -> dict[str, Paper]:
            params = {
                "filter": f"{key}:{'|'.join(values)}",
                "select": f"{self.select},locations",
            }
            works: dict[str, Paper] = {}
            for raw in self._request(params)["results"]:
                for work in self._keep([raw]):
                    pages = (
                        page.get("landing_page_url")
                        for page in raw.get("locations") or ()
                    )
                    works |= dict.fromkeys([work.doi.lower(), *pages], work)
            return works

        works = self._in_batches(list(names), self.dois, request)
        return {
            name: works[value].id for value, name in names.items() if value in works
        }

    def find_title(self, title: str) -> list[Paper]:
        """Return works whose title has the words of `title`, most relevant first."""
        words = query_words(plain_text(title))
        if words in {"none", "undefined"}:
            raise RefusedError(f"OpenAlex does not search the title {title!r}")
        return self._page({"filter": f"title.search:{words[:500]}", "per_page": "10"})

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that match a query, most relevant first."""
        return [work.id for work in self._all({"search": query_words(text)}, most)]

    def near(self, text: str) -> list[str]:
        """Return the ids of the works nearest in meaning to a text (https://developers.openalex.org/guides/semantic-search)."""
        words = " ".join(text.split())[: self.longest]
        params = {"search.semantic": words, "per_page": str(self.nearest)}
        return [work.id for work in self._page(params)]

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        return {
            work.id: work
            for work in self._page({"filter": f"openalex:{'|'.join(ids)}"})
        }

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited; OpenAlex states it with the works only."""
        works = self.fetch(ids)
        return {i: citation_count(works[i]) if i in works else 0 for i in ids}

    def citing(
        self, ids: Sequence[str], most: int, since: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield pairs of a citing work and one of these works; at most `most` of a work, the most cited ones.

        If `since` (YYYY-MM-DD) is given, only works published on that day or later count.
        """
        counts = {
            i: n for i, work in self.fetch(ids).items() if (n := citation_count(work))
        }
        dated = f",from_publication_date:{since}" if since else ""
        few = [i for i in counts if counts[i] <= most or since]
        many = ([i] for i in counts if i not in few)
        for group in (*batched(few, self.batch), *many):
            params = {
                "filter": f"cites:{'|'.join(group)}{dated}",
                "sort": "cited_by_count:desc",
            }
            for work in self._all(params, len(group) * most):
                yield from ((work.id, i) for i in work.citations if i in group)

    def _all(self, params: dict[str, str], most: int) -> Iterator[Paper]:
        """Yield at most `most` works of all pages of a list."""
        cursor = "*"
        listed = 0
        while cursor and listed < most:
            answer = self._request({**params, "cursor": cursor})
            page = answer["results"][: most - listed]
            yield from self._keep(page)
            listed += len(page)
            cursor = answer["meta"]["next_cursor"] if page else ""

    def _page(self, params: dict[str, str]) -> list[Paper]:
        return self._keep(self._request(params)["results"])

    def _request(self, params: dict[str, str]) -> Json:
        price = self.list_dollars
        if "search" in params or "title.search:" in params.get("filter", ""):
            price = self.search_dollars
        elif "search.semantic" in params:
            price = self.semantic_dollars
        self.dollars += price
        shape = {"select": self.select, "per_page": str(self.batch)}
        return self.client.fetch("/works", {**shape, **params})

    def _keep(self, page: Sequence[Json]) -> list[Paper]:
        """Return the works of a page, and remember them."""
        read = JSON_FORMATS["openalex"].read
        works = [work for raw in page if (work := _work(raw, read))]
        return [self._works.setdefault(work.id, work) for work in works]


class SemanticScholar(_Works):
    """The works and citations of Semantic Scholar."""

    batch = 200  # 500 are allowed, with 9,999 references in all
    most_listed = 9999  # references of a batch, or citations of one paper
    light = (
        "paperId,externalIds,url,title,abstract,venue,year,publicationTypes,journal,authors,"
        "citationCount,referenceCount"
    )

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._unlisted = set[str]()  # works that have references, but came without
        # how often a paper is cited, where a list states it
        self._counts: dict[str, int] = {}

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that the service knows."""
        prefixes = {"doi": "DOI:", "arxiv": "ARXIV:", "id": ""}
        names = dict[str, str]()
        for name in ids:
            kind, _, value = name.partition(":")
            if kind != "id" or PAPER_ID.fullmatch(value):
                names[f"{prefixes[kind]}{value}"] = name
        return {names[name]: work.id for name, work in self.fetch(list(names)).items()}

    def find_title(self, title: str) -> list[Paper]:
        """Return the work whose title matches best; empty if none is close."""
        params = {"query": title[:500], "fields": self.light}
        answer = (
            self.client.fetch("/graph/v1/paper/search/match", params, optional=True)
            or {}
        )
        return [
            work for raw in answer.get("data") or [] if (work := _work(raw, s2_paper))
        ]

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that have all words of a query, the most cited first."""
        params = {
            "query": query_words(text),
            "fields": "paperId",
            "sort": "citationCount:desc",
        }
        answer = self.client.fetch("/graph/v1/paper/search/bulk", params)
        return [raw["paperId"] for raw in answer["data"]][:most]

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        fields = f"{self.light},references.paperId,references.citationCount"
        try:
            answer = self.client.fetch("/graph/v1/paper/batch", {"fields": fields}, ids)
        except RefusedError as error:
            if "No valid paper ids given" in str(error):  # none is known
                return {}
            raise
        listed = sum(len(raw.get("references") or ()) for raw in answer if raw)
        if listed >= self.most_listed and len(ids) > 1:
            raise RefusedError(
                "Semantic Scholar leaves out references of a batch with more of them"
            )
        found: dict[str, Paper] = {}
        for given, raw in zip(ids, answer, strict=True):
            if work := _work(raw or {}, s2_paper):
                found[given] = found[work.id] = work
                self._count([raw, *(raw.get("references") or ())])
                if raw.get("referenceCount") and not raw.get("references"):
                    is_elided = raw.get("references") is None
                    (self.elided if is_elided else self._unlisted).add(work.id)
        return found

    def _count(self, papers: Sequence[Json]) -> None:
        self._counts |= {
            raw.get("paperId") or "": raw.get("citationCount") or 0 for raw in papers
        }

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited, as the lists that contain it state it."""
        return {i: self._counts.get(i, 0) for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works; of one that came without them, from its own list, unless it is withheld."""
        for paper_id in ids:
            if paper_id in self._unlisted and paper_id not in self.elided:
                for page in self._pages(paper_id, "references", "citedPaper"):
                    self.links[paper_id] += (raw["paperId"] for raw in page)
                if not self.links[paper_id]:
                    self.elided.add(paper_id)
        return super().references(ids)

    def citing(
        self, ids: Sequence[str], most: int, since: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield at most `most` citations of each work, the latest first, by works published `since` a day."""
        for cited in ids:
            if cited in self._works and not citation_count(self._works[cited]):
                continue
            found = 0
            for page in self._pages(cited, "citations", "citingPaper"):
                for raw in page:
                    self.links[raw["paperId"]].append(cited)
                    # one with a year only counts if it was published in that year or later
                    date = raw.get("publicationDate")
                    year = raw.get("year") or 0
                    if found < most and (
                        date >= since if date else year >= int(since[:4] or 0)
                    ):
                        found += 1
                        yield raw["paperId"], cited
                if found == most:
                    break

    def _pages(self, paper_id: str, what: str, key: str) -> Iterator[list[Json]]:
        """Yield the papers with an id of each page of a list that the service serves; their citations are counted."""
        offset = 0
        while offset < self.most_listed:
            path = f"/graph/v1/paper/{quote(paper_id, safe='')}/{what}"
            params = {
                "fields": "paperId,citationCount,year,publicationDate",
                "limit": str(min(1000, self.most_listed - offset)),
                "offset": str(offset),
            }
            answer = self.client.fetch(path, params, optional=True) or {}
            papers = (link.get(key) or {} for link in answer.get("data") or [])
            page = [raw for raw in papers if raw.get("paperId")]
            self._count(page)
            yield page
            offset = answer.get("next") or self.most_listed


Source = OpenAlex | SemanticScholar
