"""`citerec serve --desk FOLDER`: the drafts of the page as files of the server's user.

    FOLDER/key                          what opens the desk: it is in the address that `citerec serve` prints
    FOLDER/late-interaction-m3k2x9.json one draft: its text, and for each corpus the shelf with notes and other marks
    FOLDER/removed/                     drafts that were removed on the page

A browser keeps its drafts, too, and works while the server does not run. It sends a draft with the tag of the file that
it knows; a file that another browser changed since is not overwritten: the browser joins both, and sends it again.
"""

import hashlib
import hmac
import os
import re
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request
from fastapi import Path as InPath
from pydantic import BaseModel

from citerec.bibliography.keys import title_key
from citerec.errors import ConfigError, writing
from citerec.files.atomic import replacing
from citerec.serve.guard import ProblemError
from citerec.types import Json

KEY = "key"
REMOVED = "removed"
MOST_NAME = 50  # characters of a title in the name of a file
Id = Annotated[str, InPath(pattern="^[a-z0-9]{1,40}$")]


class DeskDraft(BaseModel):
    """A draft as the page has it, and the tag of the file that it knows."""

    draft: Json
    tag: str = ""


class Desk:
    """A folder of drafts, one JSON file each, and the routes of the page to it."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, or make one that its user alone may read.

        ConfigError if something else is there: drafts in the folder of an index would be lost with its next change.
        """
        if folder.exists() and not (folder / KEY).exists():
            if not folder.is_dir():
                raise ConfigError(f"{folder} is a file; --desk needs a folder")
            # a killed start may leave a hidden one
            if any(not path.name.startswith(".") for path in folder.iterdir()):
                raise ConfigError(
                    f"{folder} has other files and no desk; --desk needs a new or an empty folder"
                )
        has_key = [Depends(self._check_key)]
        self.router = APIRouter(
            prefix="/desk", include_in_schema=False, dependencies=has_key
        )
        self.router.get("")(self.tags)
        self.router.get("/{name}")(self.read)
        self.router.put("/{name}")(self.put)
        self.router.delete("/{name}")(self.remove)
        self.folder = folder
        self._lock = Lock()
        with writing(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            key = folder / KEY
            if not key.exists():
                self._write(key, token_hex(16).encode())
            (folder / REMOVED).mkdir(mode=0o700, exist_ok=True)
            self.key = key.read_text(encoding="ascii").strip()

    def _check_key(self, request: Request) -> None:
        """Let those in who have the key of the desk: other users of the machine reach the port, too."""
        key = request.headers.get("citerec-desk", "").encode()
        if not hmac.compare_digest(key, self.key.encode()):
            detail = "the desk opens by the address that citerec serve prints"
            raise ProblemError("unauthorized", detail, status=403)

    def tags(self) -> Json:
        """Return where the desk is, and the tag of each draft by its id."""
        files = self._files().items()
        tags = {name: _tag(path.read_bytes()) for name, path in files}
        return {"folder": str(self.folder), "tags": tags}

    def read(self, name: Id) -> DeskDraft:
        """Return a draft with its tag."""
        path = self._files().get(name)
        if path is None:
            raise ProblemError("not-found", "this draft is not on the desk")
        data = path.read_bytes()
        return DeskDraft(draft=orjson.loads(data), tag=_tag(data))

    def put(self, name: Id, sent: DeskDraft) -> dict[str, str]:
        """Write a draft and return its tag; 409 if another browser changed it since: its file is left as it is."""
        with self._lock, writing(self.folder):
            old = self._files().get(name)
            if old and _tag(old.read_bytes()) != sent.tag:
                raise ProblemError("replaced", "another browser changed this draft")
            words = "-".join(
                re.findall(r"\w+", title_key(str(sent.draft.get("title"))))
            )
            path = self.folder / f"{words[:MOST_NAME]}-{name}.json"
            data = orjson.dumps(sent.draft, option=orjson.OPT_INDENT_2)
            self._write(path, data)
            if old and old != path:
                old.unlink()
            return {"tag": _tag(data)}

    def remove(self, name: Id) -> Json:
        """Put the file of a draft among the removed ones."""
        with self._lock, writing(self.folder):
            if path := self._files().get(name):
                path.replace(self.folder / REMOVED / path.name)
        return {}

    def _files(self) -> dict[str, Path]:
        """Return the file of each draft; of two that a killed server left, the later one."""
        found = self.folder.glob("*-*.json")
        by_age = sorted(found, key=lambda path: path.stat().st_mtime_ns)
        return {path.stem.rpartition("-")[2]: path for path in by_age}

    def _write(self, path: Path, data: bytes) -> None:
        with replacing(path) as temporary:
            temporary.touch(0o600)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
