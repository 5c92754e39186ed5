"""`citerec serve --collect FOLDER`: the page collects a corpus around references, which the server then has.

    FOLDER/corpora/NAME  the collection, as `citerec collect` writes it
    FOLDER/indexes/NAME  its index

A process of its own does the work, one collection at a time. One that was cancelled continues when it is started again.
"""

import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path, PurePath
from signal import SIG_IGN, SIGINT, signal
from threading import Lock
from typing import Any

from fastapi import APIRouter, UploadFile

from citerec.build.index import BuildConfig, build_index
from citerec.collect.run import (
    CollectConfig,
    Plan,
    collect,
    folder_name,
    make_plan,
    read_record,
)
from citerec.display import plural
from citerec.encode.models import AUTO
from citerec.errors import BadInputError, CiterecError, ConfigError
from citerec.serve.guard import ProblemError
from citerec.serve.requests import for_clients
from citerec.serve.service import Service
from citerec.serve.uploads import Upload, read_sent
from citerec.types import Json

MOST_TEXT = 1000  # bytes of what a process shows


class Collector:
    """A folder of collections, the process that makes one, or made the last one, and the routes of the page to it."""

    def __init__(self, folder: Path, service: Service) -> None:
        self.router = APIRouter(prefix="/page/collect", include_in_schema=False)
        self.router.post("")(self.make)
        self.router.get("")(self.status)
        self.router.delete("")(self.cancel)
        self._folder = folder
        self._service = service
        self._process: Any = None
        self._index = Path()
        self._context = get_context("spawn")
        self._shown: Any = self._context.Array("c", MOST_TEXT)
        self._lock = Lock()

    def make(
        self,
        files: list[UploadFile],
        name: str = "",
        start: bool = False,
        semantic: bool = False,
    ) -> Json:
        """Return what a collection around the references of files, or near a draft, takes; with `start`, begin it."""
        plan = self._plan(
            [Upload(file.filename or "", file.file.read()) for file in files],
            name,
            semantic,
        )
        if start:
            self._start(plan)
        return {
            "name": plan.folder.name,
            "references": plural(len(plan.config.entries), "reference"),
            "semantic": plan.config.semantic,
            "service": plan.service.title,
            "estimate": str(plan.estimate),
            "is_update": bool(plan.previous),
        }

    def _plan(self, files: Sequence[Upload], name: str, semantic: bool) -> Plan:
        """Plan a collection around the references of files, or near a draft; of one that is there, what is new."""
        read = read_sent(files)
        entries = [entry for _, listed in read.lists for entry in listed.entries]
        search = ""
        if semantic and read.draft:
            search = f"{read.draft['title']}. {read.draft['abstract']}"
            entries = []
        if not entries and not search:
            none = BadInputError(files[0].name, "no reference was found")
            raise [*read.faults, none][0]
        name = folder_name(name or PurePath(files[0].name).stem)
        folder = self._folder / "corpora" / name
        is_made = bool(read_record(folder))
        if not is_made and (self._folder / "indexes" / name).exists():
            raise ConfigError(f"there is another corpus {name}; choose another name")
        config = CollectConfig(
            entries=tuple(entries),
            search=search,
            semantic=bool(search),
            name=name,
            update=is_made,
        )
        return make_plan(folder, config)

    def _start(self, plan: Plan) -> None:
        """Start a collection, unless one is made."""
        with self._lock:
            if self._process and self._process.is_alive():
                raise ProblemError("replaced", "another collection is being made")
            self._index = self._folder / "indexes" / plan.folder.name
            self._shown.value = b"starting"
            work = (plan, self._index, self._shown)
            self._process = self._context.Process(target=_make, args=work, daemon=True)
            self._process.start()

    def status(self) -> Json:
        """Return the name of the corpus, what its process shows, and its exit code; open the index that it made."""
        with self._lock:
            if self._process is None:
                return {}
            code = self._process.exitcode
            name = self._index.name
            if code == 0 and self._shown.value:
                self._service.add(name, self._index)
                self._shown.value = b""
            return {"name": name, "code": code, "text": self._shown.value.decode()}

    def cancel(self) -> Json:
        """End the process; what it fetched is kept."""
        with self._lock:
            if self._process and self._process.is_alive():
                self._process.terminate()
                self._process.join()
                self._shown.value = b"cancelled; started again, it continues"
        return self.status()


def _make(plan: Plan, index: Path, shown: Any) -> None:
    """Collect a corpus and build its index; show what is done, or what went wrong."""

    def log(message: str) -> None:
        shown.value = message.encode("ascii", "replace")[:MOST_TEXT]

    def progress(task: str, done: int, total: int) -> None:
        log(f"{task}: {done:,} of {total:,}")

    signal(SIGINT, SIG_IGN)  # of Ctrl-C; the server ends this process
    config = BuildConfig(encoder=AUTO, force=True)
    try:
        collect(plan, progress, log)
        build_index(plan.folder, index, config, progress)
    except CiterecError as error:
        log(for_clients(str(error).replace(f"{plan.folder.parents[1]}/", "")))
        sys.exit(2)
