"""OpenAlex: https://developers.openalex.org."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from citerec.bibliography.keys import doi_of, title_key
from citerec.bibliography.markup import restored
from citerec.collect.client import Client
from citerec.collect.service import Service
from citerec.collect.work import (
    Link,
    Work,
    chunks,
    dict_of,
    dicts_of,
    make_work,
    text_of,
    texts_of,
)
from citerec.errors import ConfigError
from citerec.types import Log

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
_ID = re.compile(r"(?:https?://openalex\.org/(?:works/)?)?(W[0-9]{1,15})", re.IGNORECASE)


def service() -> Service:
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
    )


def work_id(text: str) -> str:
    """Return the short id, such as W2741809807, of an id or address of OpenAlex; empty if it is neither."""
    match = _ID.fullmatch(text.strip())
    return match[1].upper() if match else ""


class OpenAlex:
    """A `Source`; works that lists contain are kept, so that `fetch` does not request them again."""

    title = "OpenAlex"

    def __init__(self, client: Client, log: Log) -> None:
        self._client, self._log = client, log
        self._works: dict[str, Work] = {}

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` that OpenAlex knows; see `Source`."""
        found = {i: own for i in ids if (own := work_id(i.removeprefix("id:")))}
        dois = {_doi(i): i for i in ids if _doi(i)}
        listable = [doi for doi in dois if not set(doi) & set("|,\"' ")]
        for batch in _within_length(listable):
            for raw in self._page({"filter": f"doi:{'|'.join(batch)}"}):
                if (work := self._keep(raw)) and (doi := work.paper.doi.lower()) in dois:
                    found.setdefault(dois[doi], work.id)
        for doi in (
            doi for doi in dois if doi not in listable
        ):  # a separator of filters is part of the DOI
            path = f"/works/doi:{quote(doi, safe='')}"
            raw = self._client.get(path, {"select": SELECT}, optional=True)
            if work := self._keep(dict_of(raw)):
                found[dois[doi]] = work.id
        return found

    def find_title(self, title: str) -> list[Work]:
        """Return works whose title has the words of `title`, most relevant first."""
        words = title_key(title)  # in lower case: AND, OR and NOT are operators
        params = {"filter": f"title.search:{words[:500]}", "per_page": "10"}
        works = (self._keep(raw) for raw in self._page(params, SEARCH_DOLLARS))
        return [work for work in works if work]

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that match a query, most relevant first."""
        params = {"search": text}
        works = (self._keep(raw) for raw in self._all(params, most, SEARCH_DOLLARS))
        return [work.id for work in works if work][:most]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Work]:
        """Return the works with these ids; see `Source`."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works and work_id(i)]
        for batch in chunks(missing, PAGE):
            for raw in self._page({"filter": f"openalex:{'|'.join(batch)}"}):
                self._keep(raw)
        return {i: self._works[i] for i in ids if i in self._works}

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited; OpenAlex states it with the works only."""
        works = self.fetch(ids)
        return {i: works[i].times_cited if i in works else 0 for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works that were fetched."""
        return {i: work.paper.citations for i, work in self.fetch(ids).items()}

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[Link]:
        """Yield citations of these works; of a work with more than `most`, those by the most cited works."""
        works = self.fetch(ids)
        counts = {i: works[i].times_cited for i in ids if i in works and works[i].times_cited}
        dated = f",from_publication_date:{since}" if since else ""
        few = [i for i in counts if counts[i] <= most or since]
        for group in _groups(few, counts):
            filters = f"cites:{'|'.join(group)}{dated}"
            yield from self._links({"filter": filters}, len(group) * most, group)
        for one in (i for i in counts if i not in few):
            params = {"filter": f"cites:{one}{dated}", "sort": "cited_by_count:desc"}
            yield from self._links(params, most, [one])

    def _links(self, params: dict[str, str], most: int, cited: Sequence[str]) -> Iterator[Link]:
        wanted = set(cited)
        for raw in self._all(params, most, LIST_DOLLARS):
            if work := self._keep(raw):
                hits = [i for i in work.paper.citations if i in wanted]
                yield from (Link(work.id, i) for i in hits)

    def _all(self, params: dict[str, str], most: int, dollars: float) -> Iterator[dict[str, Any]]:
        """Yield at most `most` results of all pages; stops at a cursor that leads nowhere."""
        cursor, seen, count = "*", {"*"}, 0
        ids: set[str] = set()
        while cursor and count < most:
            answer = self._request({**params, "cursor": cursor}, dollars)
            page = dicts_of(answer.get("results"))
            new = [raw for raw in page if text_of(raw.get("id")) not in ids]
            ids.update(text_of(raw.get("id")) for raw in new)
            yield from new[: most - count]
            count += len(new)
            cursor = text_of(dict_of(answer.get("meta")).get("next_cursor"))
            if page and (not new or cursor in seen):
                self._log("OpenAlex repeats a page of a list; the rest of the list is left out")
                return
            if not page:
                return
            seen.add(cursor)

    def _page(self, params: dict[str, str], dollars: float = LIST_DOLLARS) -> list[dict[str, Any]]:
        return dicts_of(self._request(params, dollars).get("results"))

    def _request(self, params: dict[str, str], dollars: float) -> dict[str, Any]:
        shape = {"select": SELECT, "per_page": str(PAGE)}
        return dict_of(self._client.get("/works", {**shape, **params}, dollars))

    def _keep(self, raw: dict[str, Any]) -> Work | None:
        """Read a work and remember it; None if it has no id or no title."""
        own = work_id(text_of(raw.get("id")))
        if own not in self._works and (work := _read(own, raw)):
            self._works[own] = work
        return self._works.get(own)


def _read(own: str, raw: dict[str, Any]) -> Work | None:
    location = dict_of(raw.get("primary_location"))
    journal, biblio = dict_of(location.get("source")), dict_of(raw.get("biblio"))
    first, last = text_of(biblio.get("first_page")), text_of(biblio.get("last_page"))
    authors = (
        dict_of(a.get("author")).get("display_name") for a in dicts_of(raw.get("authorships"))
    )
    return make_work(
        raw.get("cited_by_count"),
        id=own,
        title=raw.get("title"),
        abstract=_abstract(raw.get("abstract_inverted_index")),
        year=raw.get("publication_year"),
        authors=[name for a in authors if (name := text_of(a))],
        venue=text_of(journal.get("display_name")),
        citations=[i for text in texts_of(raw.get("referenced_works")) if (i := work_id(text))],
        doi=doi_of(text_of(raw.get("doi"))),
        url=text_of(location.get("landing_page_url")),
        type=text_of(raw.get("type")),
        volume=text_of(biblio.get("volume")),
        issue=text_of(biblio.get("issue")),
        pages="-".join(dict.fromkeys(filter(None, (first, last)))),
        publisher=text_of(journal.get("host_organization_name")),
    )


def _abstract(index: object) -> str:
    """Return the text of an inverted index; none if it is too long to be an abstract."""
    try:
        return restored(index)
    except ValueError:
        return ""


def _doi(identifier: str) -> str:
    """Return the DOI of `doi:…` or `arxiv:…`; empty for others."""
    kind, _, value = identifier.partition(":")
    return {"doi": value, "arxiv": f"10.48550/arxiv.{value}"}.get(kind, "").lower()


def _within_length(dois: Sequence[str]) -> Iterator[list[str]]:
    """Yield the DOIs in groups that fit into one filter."""
    batch: list[str] = []
    for doi in dois:
        if batch and (len(batch) == PAGE or len(quote("|".join([*batch, doi]))) > MAX_FILTER):
            yield batch
            batch = []
        batch.append(doi)
    if batch:
        yield batch


def _groups(ids: Sequence[str], counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield the ids in groups that are cited about `GROUP` times together."""
    group: list[str] = []
    for i in ids:
        full = len(group) == PAGE or sum(counts[j] for j in group) + counts[i] > GROUP
        if group and full:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
