"""Reads the library of a running Zotero by its local API, and saves papers to it; nothing leaves this machine.

Up to Zotero 9, versions are those of the last synchronisation: an edit that is not synchronised changes no version, so
that `since` and `If-Modified-Since-Version` would miss it; and the local API has no `/deleted`. Therefore the keys of
all items are asked for with their versions, the items that were edited since the last visit, and those whose version
differs.

Source: server_localAPI.js and server_connector.js of github.com/zotero/zotero (9.0.6).
"""

import gzip
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from citerec.bibliography.keys import title_key
from citerec.bibliography.write import csl
from citerec.collect.client import TIMEOUT, CollectError
from citerec.errors import ConfigError, writing
from citerec.files.arrays import batched
from citerec.files.atomic import locked, replacing
from citerec.types import Json, Paper, Progress

if TYPE_CHECKING:
    from httpx import Client, Response

VARIABLE = "CITEREC_ZOTERO"  # the address of a Zotero with another port
URL = "http://127.0.0.1:23119"
ITEMS = "items.json.gz"
PAGE = 100  # items of an answer, of which Zotero looks at each attached file
KEYS = 50  # of one request
_REFUSALS = {
    403: "Zotero does not let other programs read its library: in its settings, under Advanced, tick 'Allow other "
    "applications on this computer to communicate with Zotero'",
    404: "this Zotero has no local API, which came with version 7: update Zotero, then try again",
}


def fetch_library(folder: Path, progress: Progress) -> None:
    """Write the items of the user's library into a folder as they are now, as Zotero's API sends them.

    Only new and changed ones are asked for; trashed ones, notes and annotations are left out. The file is replaced
    after the last answer, if an item changed.

    Raises:
        ConfigError: If the address in `VARIABLE` is not of this machine.
        CollectError: If Zotero does not run, does not allow it, ends meanwhile, or answers something else.
        OutputError: If the folder cannot be written.
    """
    file = folder / ITEMS
    known: dict[str, Json] = {}
    since = ""
    with locked(folder), _zotero() as client:
        if file.exists():
            before = orjson.loads(gzip.decompress(file.read_bytes()))
            known = _by_key(before["items"])
            since = before["fetched"]
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        found = known | _by_key(_edited(client, since, progress))
        versions: Mapping[str, int] = _get(client, format="versions").json()
        others = [
            key
            for key, version in versions.items()
            if key not in found or found[key]["version"] != version
        ]
        for keys in batched(others, KEYS):
            found |= _by_key(_get(client, itemKey=",".join(keys)).json())
        items = {key: found[key] for key in sorted(found.keys() & versions)}
        if items == known and since:
            return
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(file) as temporary:
                data = orjson.dumps({"items": list(items.values()), "fetched": now})
                temporary.write_bytes(gzip.compress(data, 1))


def _by_key(items: Iterable[Json]) -> dict[str, Json]:
    return {item["key"]: item for item in items}


def _edited(client: "Client", since: str, progress: Progress) -> Iterator[Json]:
    """Yield the items that were edited at a time or later, or all if it is empty, the last edit first."""
    start = 0
    total = 1
    while start < total:
        page = _get(client, sort="dateModified", limit=str(PAGE), start=str(start))
        items: list[Json] = page.json()
        yield from items
        start += PAGE
        total = int(page.headers["Total-Results"])
        progress("fetching", min(start, total), total)
        if items and items[-1]["data"]["dateModified"] < since:
            return


def save_papers(papers: Sequence[Paper], notes: Mapping[str, str]) -> int:
    """Save papers into what is selected in Zotero, but those whose title it has; return how many are new.

    `notes` are by id. Errors are those of `fetch_library`.
    """
    with _zotero() as client:
        new = [paper for paper in papers if not _has(client, paper)]
        if not new:
            return 0
        answer = client.post(
            "/connector/import",
            params={"session": uuid4().hex},
            content=csl(new, notes),
            headers={"Content-Type": "text/plain"},
        )
        if answer.status_code != 201:
            raise CollectError(
                f"Zotero saved no paper (HTTP {answer.status_code}); select a library there that you may change"
            )
    return len(new)


def _has(client: "Client", paper: Paper) -> bool:
    """Whether an item of Zotero has the title of a paper."""
    title = title_key(paper.title)
    words = re.findall(r"\w+", paper.title)  # each of which an item has
    items: list[Json] = _get(client, q=" ".join(words)).json()
    return any(title_key(item["data"].get("title", "")) == title for item in items)


@contextmanager
def _zotero() -> "Generator[Client]":
    """Yield a client of the Zotero of this machine; what fails becomes a `CollectError`."""
    import httpx

    url = os.environ.get(VARIABLE) or URL
    if urlsplit(url).hostname not in {"127.0.0.1", "localhost", "::1"}:
        raise ConfigError(
            f"{VARIABLE} is {url}, which is not on this machine; expected one such as {URL}"
        )
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT, trust_env=False) as client:
            yield client
    except httpx.HTTPError as error:
        raise CollectError(
            f"Zotero does not answer at {url}, nothing was changed: start Zotero, then try again"
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CollectError(
            f"what answers at {url} is not Zotero: end that program, start Zotero, then try again"
        ) from error


def _get(client: "Client", **params: str) -> "Response":
    """Ask for items that are no notes and no annotations; CollectError if Zotero refuses."""
    kinds = [("itemType", "-note"), ("itemType", "-annotation")]
    answer = client.get("/api/users/0/items", params=[*kinds, *params.items()])
    if (status := answer.status_code) != 200:
        other = f"Zotero answers with an error (HTTP {status}): start Zotero anew, then try again"
        raise CollectError(_REFUSALS.get(status, other))
    return answer
