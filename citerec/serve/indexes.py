"""The open indexes of a server by name."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from citerec.compiled import preload
from citerec.serve.options import ModelSettings
from citerec.serve.problems import ProblemError
from citerec.serve.version import OpenVersion


class Indexes:
    """Open indexes; the first one is the default."""

    def __init__(self, paths: Mapping[str, Path], models: ModelSettings) -> None:
        """Open the indexes.

        Raises:
            CiterecError: If one cannot be opened.
        """
        self._paths, self._models = dict(paths), models
        self._lock = Lock()
        self._open = {name: OpenVersion(name, path, models) for name, path in paths.items()}

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

    def warm_up(self) -> None:
        """Answer one query by each index, with compiled loops."""
        preload()
        for version in [*self._open.values()]:
            version.warm_up()

    def acquire(self, name: str | None = None) -> OpenVersion:
        """Return an index, which stays open until its `release` is called.

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
        """Yield an index, which stays open until the block ends."""
        version = self.acquire(name)
        try:
            yield version
        finally:
            version.release()

    def close(self) -> None:
        """Close all indexes when their requests have ended."""
        for version in self._open.values():
            version.retire()
