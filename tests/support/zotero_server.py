"""A local server that answers as a running Zotero does: its local API, and the endpoint at which programs save papers.

Rules and shapes are those of server_localAPI.js and server_connector.js of github.com/zotero/zotero (9.0.6): without
`limit` all items come; trashed ones do not; versions are those of the last synchronisation, so that an edit changes
`dateModified` at once, but no version before `sync`; there is no `/deleted`.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.http_server import Handler, running

HOSTS = {"127.0.0.1", "localhost"}
NO_ENDPOINT = b"No endpoint found\n"


@dataclass
class Item:
    """An item of the library."""

    data: dict[str, Any]
    version: int = 0
    is_synced: bool = False
    is_trashed: bool = False
    file: str = ""  # URL of the stored file of an attachment


@dataclass
class Library:
    """The library of the user of a Zotero, as its window would change it."""

    items: dict[str, Item] = field(default_factory=dict[str, Item])
    version: int = 0
    clock: datetime | None = None  # the time of edits; now if it is None

    def add(self, key: str, *, file: str = "", **data: Any) -> None:
        """Add an item, a journal article unless it states another type."""
        data = {"key": key, "itemType": "journalArticle", **data}
        self.items[key] = Item(data | {"dateModified": self._now()}, file=file)

    def edit(self, key: str, **data: Any) -> None:
        item = self.items[key]
        item.data |= data | {"dateModified": self._now()}
        item.is_synced = False

    def trash(self, key: str, *, back: bool = False) -> None:
        """Move an item to the trash, or back."""
        self.items[key].is_trashed = not back

    def erase(self, key: str) -> None:
        del self.items[key]

    def sync(self) -> None:
        """Give what was edited a version, as a synchronisation does."""
        self.version += 1
        for item in self.items.values():
            if not item.is_synced:
                item.version = self.version
                item.is_synced = True

    def _now(self) -> str:
        return f"{self.clock or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


class ZoteroServer(ThreadingHTTPServer):
    """A Zotero with one library; it misbehaves on demand."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.library = Library()
        self.is_allowed = True  # the check box in Zotero's settings
        self.is_editable = True  # the selected library
        self.ends_after: int | None = None  # answers, until it breaks off
        self.always: tuple[int, bytes] | None = None  # its answer to every request
        self.asked: list[dict[str, str]] = []
        self.sessions: set[str] = set()


class Answers(Handler):
    server: ZoteroServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        params = parse_qs(address.query)
        if self._is_refused():
            return
        if address.path not in ("/api/users/0/items", "/api/users/0/items/top"):
            self.answer(404, NO_ENDPOINT, {"Content-Type": "text/plain"})
        elif not self.server.is_allowed:
            self._text(403, "Local API is not enabled")
        else:
            self._items(params, top=address.path.endswith("/top"))

    def do_POST(self) -> None:
        address = urlsplit(self.path)
        body = self.body()
        if self._is_refused():
            return
        session = parse_qs(address.query).get("session", ["null"])[0]
        if address.path != "/connector/import":
            self.answer(404, NO_ENDPOINT, {"Content-Type": "text/plain"})
        elif not self.server.is_editable:
            self.answer(500, b'{"libraryEditable":false}')
        elif session in self.server.sessions:
            self.answer(409, b'{"error":"SESSION_EXISTS"}')
        else:
            self.server.sessions.add(session)
            self._import(body)

    def _is_refused(self) -> bool:
        """Refuse what Zotero refuses: other hosts, and browsers; break off if it ends."""
        host = self.headers.get("Host", "").partition(":")[0]
        is_browser = "Origin" in self.headers or self.headers.get(
            "User-Agent", ""
        ).startswith("Mozilla/")
        if host not in HOSTS or (
            is_browser and "X-Zotero-Connector-API-Version" not in self.headers
        ):
            self._text(400, "Invalid Host header")
            return True
        if self.server.always:
            self.answer(*self.server.always)
            return True
        if self.server.ends_after is not None:
            self.server.ends_after -= 1
            if self.server.ends_after < 0:
                self.close_connection = True
                return True
        return False

    def _items(self, params: Mapping[str, list[str]], *, top: bool) -> None:
        one = {name: values[-1] for name, values in params.items()}
        self.server.asked.append(one)
        library = self.server.library
        found = [item for item in library.items.values() if self._is_shown(item, top)]
        for kinds in params.get("itemType", ()):
            wanted = {kind.strip() for kind in kinds.removeprefix("-").split("||")}
            # of several kinds that are left out, each leaves in the others
            found = [
                item
                for item in found
                if (
                    wanted != {item.data["itemType"]}
                    if kinds.startswith("-")
                    else item.data["itemType"] in wanted
                )
            ]
        if keys := one.get("itemKey"):
            found = [item for item in found if item.data["key"] in keys.split(",")]
        if words := one.get("q", "").lower().split():
            found = [
                item
                for item in found
                if all(word in item.data.get("title", "").lower() for word in words)
            ]
        if since := int(one.get("since", 0)):
            found = [item for item in found if item.version > since]
        sort = one.get("sort", "dateModified")
        falling = one.get("direction", "desc" if sort.startswith("date") else "asc")
        found.sort(key=lambda item: item.data.get(sort, ""), reverse=falling == "desc")
        total = len(found)
        start = int(one.get("start", 0))
        limit = int(one.get("limit", 0)) or total
        headers = {
            "Total-Results": str(total),
            "Last-Modified-Version": str(library.version),
            "Zotero-API-Version": "3",
        }
        known = int(self.headers.get("If-Modified-Since-Version") or 0)
        if known and library.version <= known:
            self.answer(304, b"", headers)
            return
        page = found[start : start + limit]
        if one.get("format") == "versions":
            value: Any = {item.data["key"]: item.version for item in page}
        else:
            value = [self._json(item) for item in page]
        self.answer(200, json.dumps(value, indent=4).encode(), headers)

    def _is_shown(self, item: Item, top: bool) -> bool:
        parent = self.server.library.items.get(item.data.get("parentItem", ""))
        is_trashed = item.is_trashed or (parent is not None and parent.is_trashed)
        return not is_trashed and not (top and parent)

    def _json(self, item: Item) -> dict[str, Any]:
        key = item.data["key"]
        base = f"http://localhost:23119/api/users/0/items/{key}"
        links: dict[str, Any] = {"self": {"href": base, "type": "application/json"}}
        if item.file:
            links["enclosure"] = {"href": item.file, "type": "application/pdf"}
        return {
            "key": key,
            "version": item.version,
            "library": {"type": "user", "id": 0, "name": "Ada", "links": {}},
            "links": links,
            "meta": {"numChildren": 0},
            "data": {"version": item.version} | item.data,
        }

    def _import(self, body: bytes) -> None:
        """Import CSL-JSON, as Zotero's translator of that name does."""
        kinds = {
            "article-journal": "journalArticle",
            "paper-conference": "conferencePaper",
        }
        try:
            records: list[dict[str, Any]] = json.loads(body)
        except ValueError:
            self.answer(400)
            return
        for record in records:
            people = [
                {
                    "creatorType": "author",
                    "firstName": name.get("given", ""),
                    "lastName": name.get("family", name.get("literal", "")),
                }
                for name in record.get("author", ())
            ]
            self.server.library.add(
                f"NEW{len(self.server.library.items):05}",
                itemType=kinds.get(record["type"], "document"),
                title=record["title"],
                creators=people,
                abstractNote=record.get("abstract", ""),
                DOI=record.get("DOI", ""),
                date=str(record.get("issued", {}).get("date-parts", [[""]])[0][0]),
                extra=record.get("note", ""),
            )
        self.answer(201, json.dumps(records).encode())

    def _text(self, status: int, text: str) -> None:
        self.answer(status, text.encode(), {"Content-Type": "text/plain"})


@contextmanager
def zotero() -> Generator[tuple[ZoteroServer, str]]:
    """Run a Zotero until the block ends; yield it with its address."""
    server = ZoteroServer()
    with running(server) as address:
        yield server, address
