"""Semantic Scholar: https://api.semanticscholar.org/api-docs/graph."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from citerec.bibliography.keys import doi_of
from citerec.bibliography.markup import plain_text
from citerec.collect.client import Client, RefusedError
from citerec.collect.source import (
    Service,
    Work,
    batches,
    number_of,
    objects,
    read_work,
    text_of,
)
from citerec.corpus.readers.fields import Fields
from citerec.types import Log, Paper

URL = "https://api.semanticscholar.org"
# requests per second; without a key all users share one allowance
RATE, RATE_WITHOUT_KEY = 1.0, 1 / 3
BATCH = 250  # papers of one request; 500 are allowed, 10 MB of response, too
PAGE = 1000  # citations or references of one page
LAST = 9999  # citations of one paper that can be listed
LIGHT = (
    "paperId,externalIds,url,title,abstract,venue,year,publicationTypes,journal,authors,"
    "citationCount,referenceCount"
)
FULL = f"{LIGHT},references.paperId,references.citationCount"
_KEYS = {
    "id": "paperId",
    "type": "publicationTypes",
    "volume": "journal.volume",
    "pages": "journal.pages",
}
_ID = re.compile(r"[0-9a-f]{40}|corpusid:[0-9]{1,12}", re.IGNORECASE)


def service(rate: float | None) -> Service:
    """Return Semantic Scholar with the key of `S2_API_KEY`, if any; `S2_URL` names a mirror."""
    key = os.environ.get("S2_API_KEY", "").strip()
    default = RATE if key else RATE_WITHOUT_KEY
    return Service(
        title="Semantic Scholar",
        url=os.environ.get("S2_URL", "") or URL,
        key=key,
        variable="S2_API_KEY",
        header="x-api-key",
        rate=default if rate is None else rate,
    )


def is_paper_id(text: str) -> bool:
    """Whether a text is an id of Semantic Scholar."""
    return _ID.fullmatch(text.strip()) is not None


class SemanticScholar:
    """The works and citations of Semantic Scholar."""

    def __init__(self, client: Client, log: Log) -> None:
        self._client, self.service, self._log = client, client.service, log
        self._works: dict[str, Work] = {}
        self._without_references: set[str] = set()  # works that have references, but came without
        self._counts: dict[str, int] = {}  # how often a paper is cited, where a list states it

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` (`doi:…`, `arxiv:…`, `id:…`) that Semantic Scholar knows."""
        prefixes = {"doi": "DOI:", "arxiv": "ARXIV:", "id": ""}
        names = {
            f"{prefixes[kind]}{value}": f"{kind}:{value}"
            for kind, _, value in (i.partition(":") for i in ids)
        }
        return {names[name]: work.id for name, work in self._batches(list(names)).items()}

    def find_title(self, title: str) -> list[Work]:
        """Return the work whose title matches best; empty if none is close."""
        params = {"query": title[:500], "fields": LIGHT}
        answer = self._client.fetch("/graph/v1/paper/search/match", params, optional=True)
        works = (read_work(raw, "citationCount", _read) for raw in objects(answer, "data"))
        return [work for work in works if work]

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that have all words of a query, the most cited first."""
        params = {"query": text, "fields": "paperId", "sort": "citationCount:desc"}
        answer = self._client.fetch("/graph/v1/paper/search/bulk", params)
        return [i for raw in objects(answer, "data") if (i := text_of(raw, "paperId"))][:most]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Work]:
        """Return the works with these ids; unknown ones, and works without a title, are left out."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works]
        self._works |= self._batches(missing)
        return {i: self._works[i] for i in ids if i in self._works}

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited, as the lists that contain it state it."""
        return {i: self._counts.get(i, 0) for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works that were fetched; of one that came without them, from their own list."""
        for one in self._without_references.intersection(ids):
            listed = (
                text_of(raw, "paperId") for raw in self._listed(one, "references", "citedPaper")
            )
            paper = replace(self._works[one].paper, citations=tuple(dict.fromkeys(listed)))
            self._works[one] = replace(self._works[one], paper=paper)
        self._without_references.difference_update(ids)
        return {i: self._works[i].paper.citations for i in ids if i in self._works}

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[tuple[str, str]]:
        """Yield at most `most` citations of each work, the latest first, by works published `since` a day."""
        for one in ids:
            if one in self._works and not self._works[one].times_cited:
                continue
            found = 0
            for raw in self._listed(one, "citations", "citingPaper"):
                if found == most:
                    break
                if not since or _is_since(raw, since):
                    found += 1
                    yield text_of(raw, "paperId"), one

    def _listed(self, paper_id: str, what: str, key: str) -> Iterator[dict[str, Any]]:
        """Yield the papers of all pages of a list that the service serves, with an id; their citations are counted."""
        offset: int | None = 0
        while offset is not None and offset < LAST:
            path = f"/graph/v1/paper/{quote(paper_id, safe='')}/{what}"
            fields = "paperId,citationCount,year,publicationDate"
            limit = min(PAGE, LAST - offset)
            params = {"fields": fields, "limit": str(limit), "offset": str(offset)}
            answer = self._client.fetch(path, params, optional=True) or {}
            for link in objects(answer, "data"):
                raw: dict[str, Any] = link.get(key) or {}
                if paper := text_of(raw, "paperId"):
                    self._counts[paper] = number_of(raw, "citationCount")
                    yield raw
            offset = answer.get("next")

    def _batches(self, names: Sequence[str]) -> dict[str, Work]:
        return {n: work for part in batches(names, BATCH) for n, work in self._batch(part)}

    def _batch(self, names: Sequence[str]) -> list[tuple[str, Work]]:
        """Request a batch; it is halved if the service refuses it, whose answers have a limit of bytes."""
        try:
            answer = self._client.fetch("/graph/v1/paper/batch", {"fields": FULL}, names)
        except RefusedError:
            if len(names) == 1:
                self._log(f"Semantic Scholar does not accept {names[0]!r}; it is left out")
                return []
            half = len(names) // 2
            return [*self._batch(names[:half]), *self._batch(names[half:])]
        pairs = ((name, self._complete(raw or {})) for name, raw in zip(names, answer, strict=True))
        return [(name, work) for name, work in pairs if work]

    def _complete(self, raw: dict[str, Any]) -> Work | None:
        for reference in objects(raw, "references"):
            self._counts[text_of(reference, "paperId")] = number_of(reference, "citationCount")
        if work := read_work(raw, "citationCount", _read):
            self._works[work.id] = work
            self._counts[work.id] = work.times_cited
            if not work.paper.citations and number_of(raw, "referenceCount"):
                self._without_references.add(work.id)
        return work


def _read(fields: Fields) -> Paper:
    references = (reference.short("paperId") for reference in fields.objects("references"))
    return fields.paper(
        _KEYS,
        title=plain_text(fields.title()),
        abstract=plain_text(fields.text("abstract")),
        venue=fields.short("venue") or fields.short("journal.name"),
        citations=tuple(dict.fromkeys(filter(None, references))),
        doi=doi_of(fields.short("externalIds.DOI")),
    )


def _is_since(raw: dict[str, Any], since: str) -> bool:
    """Whether a paper was published on a day or later; one with a year only, in that year or later."""
    date, year = text_of(raw, "publicationDate"), number_of(raw, "year")
    return date >= since if date else year >= int(since[:4])
