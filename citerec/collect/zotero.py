"""Reads the library of a running Zotero by its local API, and saves papers to it; nothing leaves this machine.

Up to Zotero 9, versions are those of the last synchronisation: an edit that is not synchronised changes no version, so
that `since` and `If-Modified-Since-Version` would miss it; and the local API has no `/deleted`. Therefore the keys of
all items are asked for with their versions, the items that were edited since the last visit, and those whose version
differs.

Source: server_localAPI.js and server_connector.js of github.com/zotero/zotero (9.0.6).
"""

import gzip
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import orjson

from citerec.bibliography.keys import title_key
from citerec.bibliography.write import csl_item
from citerec.collect.client import TIMEOUT, CollectError
from citerec.errors import ConfigError, writing
from citerec.files.arrays import batched
from citerec.files.atomic import locked, replacing
from citerec.files.checksums import indented_json
from citerec.types import Json, Paper, Progress

if TYPE_CHECKING:
    from httpx import Client, Response

VARIABLE = "CITEREC_ZOTERO"  # the address of a Zotero with another port
URL = "http://127.0.0.1:23119"
ITEMS = "items.jsonl.gz"
RECORD = "collection.json"  # readers of corpora leave it out
PAGE = 100  # items of an answer, of which Zotero looks at each attached file
KEYS = 50  # of one request


def fetch_library(folder: Path, progress: Progress) -> None:
    """Write the items of the user's library into a folder as they are now, as Zotero's API sends them, one a line.

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
            lines = gzip.decompress(file.read_bytes()).splitlines()
            known = {item["key"]: item for item in map(orjson.loads, lines)}
            since = orjson.loads((folder / RECORD).read_bytes())["fetched"]
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        found = {item["key"]: item for item in _edited(client, since, progress)}
        versions: Mapping[str, int] = _get(client, format="versions").json()
        others = [
            key
            for key, version in versions.items()
            if key not in found and known.get(key, {}).get("version") != version
        ]
        for keys in batched(others, KEYS):
            page = _get(client, itemKey=",".join(keys)).json()
            found |= {item["key"]: item for item in page}
        found = known | found
        items = {key: found[key] for key in sorted(versions) if key in found}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if items != known or not file.exists():
                data = b"".join(orjson.dumps(item) + b"\n" for item in items.values())
                with replacing(file) as temporary:
                    temporary.write_bytes(gzip.compress(data, 1, mtime=0))
            with replacing(folder / RECORD) as temporary:
                temporary.write_bytes(indented_json({"fetched": now}))


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

    `notes` are by id; errors are those of `fetch_library`.
    """
    with _zotero() as client:
        new = [paper for paper in papers if not _has(client, paper)]
        items = [
            csl_item(paper, notes.get(paper.id, "")) | {"abstract": paper.abstract}
            for paper in new
        ]
        if not items:
            return 0
        answer = client.post(
            "/connector/import",
            params={"session": uuid4().hex},
            content=orjson.dumps(items),
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
    items: list[Json] = _get(client, q=paper.title).json()
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
    except httpx.ConnectError:
        raise CollectError(
            f"Zotero does not run (nothing answers at {url}); start it, then run this again, "
            "or name its data folder, such as ~/Zotero"
        ) from None
    except httpx.HTTPError as error:
        raise CollectError(
            f"Zotero stopped answering ({error}); nothing was changed, run this again"
        ) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CollectError(
            f"{url} does not answer as Zotero does ({type(error).__name__}: {error})"
        ) from error


def _get(client: "Client", **params: str) -> "Response":
    """Ask for items that are no notes and no annotations; CollectError if Zotero refuses."""
    kinds = [("itemType", "-note"), ("itemType", "-annotation")]
    answer = client.get("/api/users/0/items", params=[*kinds, *params.items()])
    if answer.status_code == 403:
        raise CollectError(
            "Zotero does not let other programs read its library: in its settings, under Advanced, tick 'Allow other "
            "applications on this computer to communicate with Zotero'"
        )
    if answer.status_code == 404:
        raise CollectError(
            "this Zotero has no local API, which came with version 7; name its data folder, such as ~/Zotero"
        )
    return answer.raise_for_status()
