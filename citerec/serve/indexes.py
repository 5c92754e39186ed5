"""The indexes of a server by name; a new version of one is opened next to the old one, and takes its place."""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread

from citerec.compiled import preload
from citerec.errors import CiterecError
from citerec.java import leave_thread
from citerec.serve.options import ModelSettings
from citerec.serve.problems import ProblemError
from citerec.serve.version import Identity, OpenVersion, identity_of

LOG = logging.getLogger("citerec.serve")


class Indexes:
    """Open indexes; the first one is the default."""

    def __init__(self, paths: Mapping[str, Path], models: ModelSettings) -> None:
        """Open the indexes.

        Raises:
            CiterecError: If one cannot be opened.
        """
        self._paths, self._models = dict(paths), models
        self._lock, self._stop = Lock(), Event()
        self._failed: dict[str, Identity] = {}  # versions that could not be opened
        self.swaps = dict.fromkeys(paths, 0)  # how often each index was replaced
        self._open = {name: OpenVersion(name, path, models) for name, path in paths.items()}
        self._watcher: Thread | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names, the default first."""
        return tuple(self._paths)

    @property
    def hidden(self) -> dict[str, str]:
        """The paths of the indexes, which clients need not know, with the names in their place."""
        places = [
            (str(place), name)
            for name, path in self._paths.items()
            for place in (path.resolve(), path)
        ]
        return dict(sorted(places, key=lambda pair: -len(pair[0])))

    @property
    def failed(self) -> tuple[str, ...]:
        """The indexes whose new version could not be opened; the old one answers."""
        return tuple(self._failed)

    def warm_up(self) -> None:
        """Answer one query by each index, with compiled loops."""
        preload()
        for version in [*self._open.values()]:
            version.warm_up()

    def acquire(self, name: str | None = None) -> OpenVersion:
        """Return the newest version of an index, which stays open until its `release` is called.

        Raises:
            ProblemError: If there is no such index.
        """
        key = self.names[0] if name is None else name
        with self._lock:
            if key not in self._open:
                raise ProblemError(
                    "not-found", f"no index {key[:60]!r}; there are: {', '.join(self.names)}"
                )
            version = self._open[key]
            version.acquire()
            return version

    @contextmanager
    def use(self, name: str | None = None) -> Generator[OpenVersion]:
        """Yield the newest version of an index, which stays open until the block ends."""
        version = self.acquire(name)
        try:
            yield version
        finally:
            version.release()

    def watch(self, seconds: float) -> None:
        """Start to look for new versions every so many seconds; 0 for never."""
        if seconds and self._watcher is None:
            self._watcher = Thread(
                target=self._watch, args=(seconds,), name="citerec-watch", daemon=True
            )
            self._watcher.start()

    def refresh(self) -> None:
        """Put new versions in the place of the old ones; one that cannot be opened is logged and left out."""
        for name, path in self._paths.items():
            identity = identity_of(path)
            if not identity or identity in (self._open[name].identity, self._failed.get(name)):
                continue
            try:
                version = OpenVersion(name, path, self._models)
                version.warm_up()
            except Exception as error:
                if identity_of(path) == identity:  # else it was replaced meanwhile: the next look
                    self._failed[name] = identity
                    LOG.error("index %s: the new version is not used: %s", name, error)
                    if not isinstance(error, CiterecError):
                        LOG.exception("index %s", name)
                continue
            self._failed.pop(name, None)
            with self._lock:
                old, self._open[name] = self._open[name], version
                self.swaps[name] += 1
            old.retire()
            LOG.info("index %s: now at version %s", name, version.version)

    def close(self) -> None:
        """Close all indexes when their requests have ended."""
        self._stop.set()
        if self._watcher:
            self._watcher.join()
        for version in self._open.values():
            version.retire()

    def _watch(self, seconds: float) -> None:
        while not self._stop.wait(seconds):
            try:
                self.refresh()
            except Exception:
                LOG.exception("looking for new versions failed")
        with suppress(Exception):
            leave_thread()
