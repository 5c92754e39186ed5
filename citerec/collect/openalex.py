"""OpenAlex: https://developers.openalex.org."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from citerec.bibliography.keys import title_key
from citerec.collect.client import Client
from citerec.collect.source import Service, Work, batches, objects, read_work
from citerec.corpus.readers.json_formats import JSON_FORMATS
from citerec.errors import ConfigError

URL = "https://api.openalex.org"
KEY_PAGE = "https://openalex.org/settings/api"
RATE = 10.0  # requests per second; OpenAlex allows 100
PAGE = 100  # results per page, and values of one filter, at most
MAX_FILTER = 2_500  # characters of a filter; a URL may have about 4 KB
GROUP = 2_000  # citing works of the works of one request, about
# Documented at https://developers.openalex.org/api-reference/authentication; single works are free.
LIST_DOLLARS, SEARCH_DOLLARS = 0.0001, 0.001
ALLOWANCE = 1.0  # dollars that are free each day
SELECT = (
    "id,doi,title,publication_year,type,authorships,primary_location,biblio,cited_by_count,referenced_works,"
    "abstract_inverted_index"
)
_READ = JSON_FORMATS["openalex"].read
_ID = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?(W[0-9]{1,15})", re.IGNORECASE)


def service(rate: float | None) -> Service:
    """Return OpenAlex with the key of `OPENALEX_API_KEY`; `OPENALEX_URL` names a mirror.

    Raises:
        ConfigError: If there is no key, and no mirror is named.
    """
    url, key = os.environ.get("OPENALEX_URL", ""), os.environ.get("OPENALEX_API_KEY", "").strip()
    if not key and not url:
        raise ConfigError(
            f"OpenAlex needs a key, which is free: get one at {KEY_PAGE}, and set OPENALEX_API_KEY; or use --source s2"
        )
    return Service(
        title="OpenAlex",
        url=url or URL,
        key=key,
        variable="OPENALEX_API_KEY",
        parameter="api_key",
        rate=RATE if rate is None else rate,
    )


def work_id(text: str) -> str:
    """Return the short id, such as W2741809807, of an id or address of OpenAlex; empty if it is neither."""
    match = _ID.fullmatch(text.strip())
    return match[1].upper() if match else ""


class OpenAlex:
    """The works and citations of OpenAlex; works in lists are kept, so that `fetch` does not request them again."""

    def __init__(self, client: Client) -> None:
        self._client, self.service = client, client.service
        self._works: dict[str, Work] = {}

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that OpenAlex knows."""
        found = {i: own for i in ids if (own := work_id(i.removeprefix("id:")))}
        dois = {_doi(i): i for i in ids if _doi(i)}
        listable = {doi: len(quote(doi)) + 3 for doi in dois if not set(doi) & set("|,\"' ")}
        for batch in batches(list(listable), PAGE, listable, MAX_FILTER):
            for work in self._page({"filter": f"doi:{'|'.join(batch)}"}):
                if (doi := work.paper.doi.lower()) in dois:
                    found.setdefault(dois[doi], work.id)
        for doi in (
            doi for doi in dois if doi not in listable
        ):  # a separator of filters is part of the DOI
            path = f"/works/doi:{quote(doi, safe='')}"
            raw = self._client.fetch(path, {"select": SELECT}, optional=True)
            for work in self._keep([raw] if raw else []):
                found[dois[doi]] = work.id
        return found

    def find_title(self, title: str) -> list[Work]:
        """Return works whose title has the words of `title`, most relevant first."""
        words = title_key(title)  # in lower case: AND, OR and NOT are operators
        params = {"filter": f"title.search:{words[:500]}", "per_page": "10"}
        return self._page(params, SEARCH_DOLLARS)

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that match a query, most relevant first."""
        return [work.id for work in self._all({"search": text}, most, SEARCH_DOLLARS)]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Work]:
        """Return the works with these ids; unknown ones, and works without a title, are left out."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works and work_id(i)]
        for batch in batches(missing, PAGE):
            self._page({"filter": f"openalex:{'|'.join(batch)}"})
        return {i: self._works[i] for i in ids if i in self._works}

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited; OpenAlex states it with the works only."""
        works = self.fetch(ids)
        return {i: works[i].times_cited if i in works else 0 for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works that were fetched."""
        return {i: work.paper.citations for i, work in self.fetch(ids).items()}

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[tuple[str, str]]:
        """Yield pairs of a citing work and one of these works; at most `most` of a work, the most cited ones.

        If `since` (YYYY-MM-DD) is given, only works published on that day or later count.
        """
        counts = {i: n for i, work in self.fetch(ids).items() if (n := work.times_cited)}
        dated = f",from_publication_date:{since}" if since else ""
        few = [i for i in counts if counts[i] <= most or since]
        lists = [
            ({"filter": f"cites:{'|'.join(group)}{dated}"}, group)
            for group in batches(few, PAGE, counts, GROUP)
        ]
        for one in (i for i in counts if i not in few):
            lists.append(({"filter": f"cites:{one}", "sort": "cited_by_count:desc"}, [one]))
        for params, group in lists:
            for work in self._all(params, len(group) * most, LIST_DOLLARS):
                yield from ((work.id, i) for i in work.paper.citations if i in group)

    def _all(self, params: dict[str, str], most: int, dollars: float) -> Iterator[Work]:
        """Yield at most `most` works of all pages of a list."""
        cursor, listed = "*", 0
        while cursor and listed < most:
            answer = self._request({**params, "cursor": cursor}, dollars)
            page = objects(answer, "results")[: most - listed]
            yield from self._keep(page)
            listed += len(page)
            cursor = answer["meta"]["next_cursor"] if page else ""

    def _page(self, params: dict[str, str], dollars: float = LIST_DOLLARS) -> list[Work]:
        return self._keep(objects(self._request(params, dollars), "results"))

    def _request(self, params: dict[str, str], dollars: float) -> dict[str, Any]:
        shape = {"select": SELECT, "per_page": str(PAGE)}
        return self._client.fetch("/works", {**shape, **params}, dollars=dollars)

    def _keep(self, page: Sequence[dict[str, Any]]) -> list[Work]:
        """Return the works of a page, and remember them."""
        works = [work for raw in page if (work := read_work(raw, "cited_by_count", _READ))]
        return [self._works.setdefault(work.id, work) for work in works]


def _doi(identifier: str) -> str:
    """Return the DOI of `doi:…` or `arxiv:…`; empty for others."""
    kind, _, value = identifier.partition(":")
    return {"doi": value, "arxiv": f"10.48550/arxiv.{value}"}.get(kind, "").lower()
