"""Semantic Scholar: https://api.semanticscholar.org/api-docs/graph."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from citerec.collect.client import Client, RefusedError
from citerec.collect.service import Service
from citerec.collect.work import (
    Link,
    Work,
    chunks,
    dict_of,
    dicts_of,
    make_work,
    text_of,
)
from citerec.types import Log

URL = "https://api.semanticscholar.org"
KEY_PAGE = "https://www.semanticscholar.org/product/api#api-key-form"
RATE, RATE_WITHOUT_KEY = (
    1.0,
    1 / 3,
)  # requests per second; without a key all users share one allowance
BATCH = 250  # papers of one request; 500 are allowed, 10 MB of response, too
PAGE = 1000  # citations or references of one page
LAST = 9999  # citations of one paper that can be listed
LIGHT = (
    "paperId,externalIds,url,title,abstract,venue,year,publicationTypes,journal,authors,"
    "citationCount,referenceCount"
)
FULL = f"{LIGHT},references.paperId,references.citationCount"
_ID = re.compile(r"[0-9a-f]{40}|corpusid:[0-9]{1,12}", re.IGNORECASE)


def service() -> Service:
    """Return Semantic Scholar with the key of `S2_API_KEY`, if any; `S2_URL` names a mirror."""
    return Service(
        title="Semantic Scholar",
        url=os.environ.get("S2_URL", "") or URL,
        key=os.environ.get("S2_API_KEY", "").strip(),
        variable="S2_API_KEY",
        header="x-api-key",
    )


def is_paper_id(text: str) -> bool:
    """Whether a text is an id of Semantic Scholar."""
    return _ID.fullmatch(text.strip()) is not None


class SemanticScholar:
    """A `Source`."""

    title = "Semantic Scholar"

    def __init__(self, client: Client, log: Log) -> None:
        self._client, self._log = client, log
        self._works: dict[str, Work] = {}
        self._without_references: set[str] = set()  # works that have references, but came without
        self._counts: dict[str, int] = {}  # how often a paper is cited, where a list states it

    def find_ids(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the work of each of `ids` that Semantic Scholar knows; see `Source`."""
        prefixes = {"doi": "DOI:", "arxiv": "ARXIV:", "id": ""}
        names = {
            f"{prefixes[kind]}{value}": f"{kind}:{value}"
            for kind, _, value in (i.partition(":") for i in ids)
        }
        found = self._batches(list(names))
        return {names[name]: work.id for name, work in found.items()}

    def find_title(self, title: str) -> list[Work]:
        """Return the work whose title matches best; empty if none is close."""
        params = {"query": title[:500], "fields": LIGHT}
        answer = dict_of(self._client.get("/graph/v1/paper/search/match", params, optional=True))
        works = (_read(raw) for raw in dicts_of(answer.get("data")))
        return [work for work in works if work]

    def search(self, text: str, most: int) -> list[str]:
        """Return the ids of at most `most` works that have all words of a query, the most cited first."""
        params = {"query": text, "fields": "paperId", "sort": "citationCount:desc"}
        answer = dict_of(self._client.get("/graph/v1/paper/search/bulk", params))
        return [i for raw in dicts_of(answer.get("data")) if (i := text_of(raw.get("paperId")))][
            :most
        ]

    def fetch(self, ids: Sequence[str]) -> Mapping[str, Work]:
        """Return the works with these ids; see `Source`."""
        missing = [i for i in dict.fromkeys(ids) if i not in self._works]
        for name, work in self._batches(missing).items():
            self._works[name] = work
        return {i: self._works[i] for i in ids if i in self._works}

    def times_cited(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return how often each of these works is cited, as the lists that contain it state it."""
        return {i: self._counts.get(i, 0) for i in ids}

    def references(self, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the references of works that were fetched; of one that came without them, from their own list."""
        for one in ids:
            if one in self._without_references:
                self._without_references.remove(one)
                papers = list(self._listed(one, "references", "citedPaper"))
                for paper in papers:
                    self._count(paper)
                listed = tuple(dict.fromkeys(text_of(paper.get("paperId")) for paper in papers))
                work = self._works[one]
                self._works[one] = replace(work, paper=replace(work.paper, citations=listed))
        return {i: self._works[i].paper.citations for i in ids if i in self._works}

    def citing(self, ids: Sequence[str], most: int, since: str = "") -> Iterator[Link]:
        """Yield citations of these works, the latest first."""
        for one in ids:
            if one in self._works and not self._works[one].times_cited:
                continue
            count = 0
            for paper in self._listed(one, "citations", "citingPaper"):
                if count == most:
                    break
                if since and not _is_since(paper, since):
                    continue
                count += 1
                self._count(paper)
                yield Link(text_of(paper.get("paperId")), one)

    def _listed(self, paper_id: str, what: str, key: str) -> Iterator[dict[str, Any]]:
        """Yield the papers of all pages of a list that the service serves, with an id."""
        offset = 0
        while offset < LAST:
            path = f"/graph/v1/paper/{quote(paper_id, safe='')}/{what}"
            fields = "paperId,citationCount,year,publicationDate"
            limit = min(PAGE, LAST - offset)
            params = {"fields": fields, "limit": str(limit), "offset": str(offset)}
            answer = dict_of(self._client.get(path, params, optional=True))
            papers = (dict_of(link.get(key)) for link in dicts_of(answer.get("data")))
            yield from (paper for paper in papers if text_of(paper.get("paperId")))
            following = answer.get("next")
            if not isinstance(following, int) or following <= offset:
                return
            offset = following

    def _batches(self, names: Sequence[str]) -> dict[str, Work]:
        return {name: work for part in chunks(names, BATCH) for name, work in self._batch(part)}

    def _batch(self, names: Sequence[str]) -> list[tuple[str, Work]]:
        """Request a batch; it is halved if the service refuses it, whose answers have a limit of bytes."""
        try:
            answer = self._client.post("/graph/v1/paper/batch", {"fields": FULL}, names)
        except RefusedError:
            if len(names) == 1:
                self._log(f"Semantic Scholar does not accept {names[0]!r}; it is left out")
                return []
            half = len(names) // 2
            return [*self._batch(names[:half]), *self._batch(names[half:])]
        rows = answer if isinstance(answer, list) else []
        if len(rows) != len(names):
            self._log(
                f"Semantic Scholar returned {len(rows)} papers for {len(names)} ids; they are left out"
            )
            return []
        pairs = (
            (name, self._complete(dict_of(raw))) for name, raw in zip(names, rows, strict=True)
        )
        return [(name, work) for name, work in pairs if work]

    def _complete(self, raw: dict[str, Any]) -> Work | None:
        references = dicts_of(raw.get("references"))
        for reference in references:
            self._count(reference)
        work = _read(raw, [i for r in references if (i := text_of(r.get("paperId")))])
        if work:
            self._works[work.id] = work
            stated = raw.get("referenceCount")
            if not work.paper.citations and isinstance(stated, int) and stated > 0:
                self._without_references.add(work.id)
            self._counts[work.id] = work.times_cited
        return work

    def _count(self, raw: dict[str, Any]) -> None:
        count = raw.get("citationCount")
        self._counts[text_of(raw.get("paperId"))] = count if isinstance(count, int) else 0


def _read(raw: dict[str, Any], references: Sequence[str] = ()) -> Work | None:
    journal, ids = dict_of(raw.get("journal")), dict_of(raw.get("externalIds"))
    types = raw.get("publicationTypes")
    return make_work(
        raw.get("citationCount"),
        id=text_of(raw.get("paperId")),
        title=raw.get("title"),
        abstract=raw.get("abstract"),
        year=raw.get("year"),
        authors=[name for a in dicts_of(raw.get("authors")) if (name := text_of(a.get("name")))],
        venue=text_of(raw.get("venue")) or text_of(journal.get("name")),
        citations=list(dict.fromkeys(references)),
        doi=text_of(ids.get("DOI")),
        url=text_of(raw.get("url")),
        type=text_of(types[0]) if isinstance(types, list) and types else "",
        volume=text_of(journal.get("volume")),
        pages=text_of(journal.get("pages")),
    )


def _is_since(raw: dict[str, Any], since: str) -> bool:
    """Whether a paper was published on a day or later; one with a year only, in that year or later."""
    date, year = text_of(raw.get("publicationDate")), raw.get("year")
    return date >= since if date else isinstance(year, int) and year >= int(since[:4])
