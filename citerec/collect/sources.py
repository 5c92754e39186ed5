"""Works and citations of OpenAlex and Semantic Scholar, by the same methods.

Sources: https://developers.openalex.org, https://api.semanticscholar.org/api-docs/graph.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

from citerec.bibliography.fields import Fields
from citerec.bibliography.keys import title_key
from citerec.bibliography.markup import plain_text
from citerec.collect.client import Client, RefusedError, Service
from citerec.corpus.readers.json_formats import JSON_FORMATS
from citerec.errors import BadRecordError, InvalidValueError
from citerec.types import Paper

Json = dict[str, Any]
WORK_ID = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?(W[0-9]{1,15})", re.IGNORECASE)
PAPER_ID = re.compile(r"[0-9a-f]{40}|corpusid:[0-9]{1,12}", re.IGNORECASE)


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


class _Works:
    """The works of a service; those in lists are kept, so that `fetch` does not request them again.

    The ids of a work and of its citations are those of the service.
    """

    batch: int  # works of one request, at most

    def __init__(self, client: Client) -> None:
        self.client, self.service = client, client.service
        self.dollars = 0.0  # of all requests
        self._works: dict[str, Paper] = {}

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Paper]:
        """Return the works with these ids; unknown ones, and works without a title, are left out."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works]
        for batch in _batches(missing, self.batch):
            self._works |= self._requested(batch)
        return {i: self._works[i] for i in ids if i in self._works}

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        raise NotImplementedError

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works."""
        return {i: work.citations for i, work in self.fetch(ids).items()}


def _batches(ids: Sequence[str], most: int) -> list[Sequence[str]]:
    return [ids[start : start + most] for start in range(0, len(ids), most)]


def _work(raw: Json, read: Callable[[Fields], Paper]) -> Paper | None:
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
    list_dollars, search_dollars = 0.0001, 0.001
    dois = 25  # of one filter, whose URL may have about 4 KB
    select = (
        "id,doi,title,publication_year,type,authorships,primary_location,biblio,cited_by_count,referenced_works,"
        "abstract_inverted_index"
    )

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that the service knows."""
        found = {i: i.removeprefix("id:") for i in ids if i.startswith("id:W")}
        dois: dict[str, str] = {}
        for one in ids:
            kind, _, value = one.partition(":")
            doi = f"10.48550/arxiv.{value}" if kind == "arxiv" else value.lower()
            if kind != "id" and not set(doi) & set("|, "):  # separators of filters
                dois[doi] = one
        for batch in _batches(list(dois), self.dois):
            for work in self._page({"filter": f"doi:{'|'.join(batch)}"}):
                if (doi := work.doi.lower()) in dois:
                    found.setdefault(dois[doi], work.id)
        return found

    def find_title(self, title: str) -> list[Paper]:
        """Return works whose title has the words of `title`, most relevant first."""
        words = title_key(title)  # in lower case: AND, OR and NOT are operators
        return self._page({"filter": f"title.search:{words[:500]}", "per_page": "10"})

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that match a query, most relevant first."""
        return [work.id for work in self._all({"search": text}, most)]

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        return {work.id: work for work in self._page({"filter": f"openalex:{'|'.join(ids)}"})}

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited; OpenAlex states it with the works only."""
        works = self.fetch(ids)
        return {i: citation_count(works[i]) if i in works else 0 for i in ids}

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[tuple[str, str]]:
        """Yield pairs of a citing work and one of these works; at most `most` of a work, the most cited ones.

        If `since` (YYYY-MM-DD) is given, only works published on that day or later count.
        """
        counts = {i: n for i, work in self.fetch(ids).items() if (n := citation_count(work))}
        dated = f",from_publication_date:{since}" if since else ""
        few = [i for i in counts if counts[i] <= most or since]
        lists = [
            ({"filter": f"cites:{'|'.join(group)}{dated}"}, group)
            for group in _batches(few, self.batch)
        ]
        for one in (i for i in counts if i not in few):
            lists.append(({"filter": f"cites:{one}", "sort": "cited_by_count:desc"}, [one]))
        for params, group in lists:
            for work in self._all(params, len(group) * most):
                yield from ((work.id, i) for i in work.citations if i in group)

    def _all(self, params: dict[str, str], most: int) -> Iterator[Paper]:
        """Yield at most `most` works of all pages of a list."""
        cursor, listed = "*", 0
        while cursor and listed < most:
            answer = self._request({**params, "cursor": cursor})
            page = answer["results"][: most - listed]
            yield from self._keep(page)
            listed += len(page)
            cursor = answer["meta"]["next_cursor"] if page else ""

    def _page(self, params: dict[str, str]) -> list[Paper]:
        return self._keep(self._request(params)["results"])

    def _request(self, params: dict[str, str]) -> Json:
        is_search = "search" in params or params["filter"].startswith("title.search:")
        self.dollars += self.search_dollars if is_search else self.list_dollars
        shape = {"select": self.select, "per_page": str(self.batch)}
        return self.client.fetch("/works", {**shape, **params})

    def _keep(self, page: Sequence[Json]) -> list[Paper]:
        """Return the works of a page, and remember them."""
        read = JSON_FORMATS["openalex"].read
        works = [work for raw in page if (work := _work(raw, read))]
        return [self._works.setdefault(work.id, work) for work in works]


class SemanticScholar(_Works):
    """The works and citations of Semantic Scholar."""

    batch = 250  # 500 are allowed, 10 MB of response, too
    most_listed = 9999  # citations of one paper
    light = (
        "paperId,externalIds,url,title,abstract,venue,year,publicationTypes,journal,authors,"
        "citationCount,referenceCount"
    )

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self._without_references: set[str] = set()  # works that have references, but came without
        self._counts: dict[str, int] = {}  # how often a paper is cited, where a list states it

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that the service knows."""
        prefixes, names = {"doi": "DOI:", "arxiv": "ARXIV:", "id": ""}, dict[str, str]()
        for one in ids:
            kind, _, value = one.partition(":")
            names[f"{prefixes[kind]}{value}"] = one
        return {names[name]: work.id for name, work in self.fetch(list(names)).items()}

    def find_title(self, title: str) -> list[Paper]:
        """Return the work whose title matches best; empty if none is close."""
        params = {"query": title[:500], "fields": self.light}
        answer = self.client.fetch("/graph/v1/paper/search/match", params, optional=True) or {}
        works = (_work(raw, _s2_paper) for raw in answer.get("data") or [])
        return [work for work in works if work]

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that have all words of a query, the most cited first."""
        params = {"query": text, "fields": "paperId", "sort": "citationCount:desc"}
        answer = self.client.fetch("/graph/v1/paper/search/bulk", params)
        return [raw["paperId"] for raw in answer["data"]][:most]

    def _requested(self, ids: Sequence[str]) -> dict[str, Paper]:
        """Request works; the batch is halved if the service refuses it, whose answers have a limit of bytes."""
        fields = f"{self.light},references.paperId,references.citationCount"
        try:
            answer = self.client.fetch("/graph/v1/paper/batch", {"fields": fields}, ids)
        except RefusedError:
            if len(ids) == 1:
                self.client.log(f"Semantic Scholar does not accept {ids[0]!r}; it is left out")
                return {}
            half = len(ids) // 2
            return self._requested(ids[:half]) | self._requested(ids[half:])
        found: dict[str, Paper] = {}
        for given, raw in zip(ids, answer, strict=True):
            if work := _work(raw or {}, _s2_paper):
                found[given] = found[work.id] = work
                self._counts[work.id] = citation_count(work)
                for reference in raw.get("references") or []:
                    self._counts[reference.get("paperId") or ""] = (
                        reference.get("citationCount") or 0
                    )
                if not work.citations and raw.get("referenceCount"):
                    self._without_references.add(work.id)
        return found

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited, as the lists that contain it state it."""
        return {i: self._counts.get(i, 0) for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works that were fetched; of one that came without them, from their own list."""
        for one in self._without_references.intersection(ids):
            listed = (raw["paperId"] for raw in self._listed(one, "references", "citedPaper"))
            citations = tuple(dict.fromkeys(listed))
            self._works[one] = replace(self._works[one], citations=citations)
        self._without_references.difference_update(ids)
        return super().references(ids)

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[tuple[str, str]]:
        """Yield at most `most` citations of each work, the latest first, by works published `since` a day."""
        for one in ids:
            if one in self._works and not citation_count(self._works[one]):
                continue
            found = 0
            for raw in self._listed(one, "citations", "citingPaper"):
                # one with a year only counts if it was published in that year or later
                date, year = raw.get("publicationDate"), raw.get("year") or 0
                if found < most and (date >= since if date else year >= int(since[:4] or 0)):
                    found += 1
                    yield raw["paperId"], one
                if found == most:
                    break

    def _listed(self, paper_id: str, what: str, key: str) -> Iterator[Json]:
        """Yield the papers of all pages of a list that the service serves, with an id; their citations are counted."""
        offset: int | None = 0
        while offset is not None and offset < self.most_listed:
            path = f"/graph/v1/paper/{quote(paper_id, safe='')}/{what}"
            fields = "paperId,citationCount,year,publicationDate"
            limit = min(1000, self.most_listed - offset)
            params = {"fields": fields, "limit": str(limit), "offset": str(offset)}
            answer = self.client.fetch(path, params, optional=True) or {}
            for link in answer.get("data") or []:
                if (raw := link.get(key) or {}).get("paperId"):
                    self._counts[raw["paperId"]] = raw.get("citationCount") or 0
                    yield raw
            offset = answer.get("next")


def _s2_paper(fields: Fields) -> Paper:
    references = (reference.short("paperId") for reference in fields.objects("references"))
    return fields.paper(
        {
            "id": "paperId",
            "type": "publicationTypes",
            "volume": "journal.volume",
            "pages": "journal.pages",
            "times_cited": "citationCount",
        },
        title=plain_text(fields.title()),
        abstract=plain_text(fields.text("abstract")),
        venue=fields.short("venue") or fields.short("journal.name"),
        citations=tuple(dict.fromkeys(filter(None, references))),
        doi=fields.doi("externalIds.DOI"),
    )


Source = OpenAlex | SemanticScholar
