"""Models that are open in this process: a model that is opened again by the same settings is the same object.

A server opens each index with the same models, and opens a new version of an index while the old one is in use.
"""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from threading import RLock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Model = TypeVar("Model")


class OpenModels(Generic[Model]):
    """Open models by folder and settings; a model is freed when nothing uses it any more."""

    def __init__(self) -> None:
        self._models: WeakValueDictionary[Hashable, Model] = WeakValueDictionary()
        self._turn = RLock()

    def get(
        self,
        settings: Hashable,
        folders: Sequence[Path | None],
        open_model: Callable[[], Model],
        is_shared: Callable[[Model], bool] = lambda _: True,
    ) -> Model:
        """Return an open model, else what `open_model` returns; two threads do not open one model twice.

        Args:
            settings: What the model depends on besides its files.
            folders: The folders of its files; a folder whose files were written since holds another model.
            open_model: Opens it.
            is_shared: Whether the opened model is returned to the next caller, too.
        """
        with self._turn:
            key = settings, tuple(_files(folder) for folder in folders if folder)
            model = self._models.get(key)
            if model is None:
                model = open_model()
                if is_shared(model):
                    self._models[key] = model
            return model


def _files(folder: Path) -> tuple[tuple[str, int, int, int, int, int], ...]:
    """Return what identifies the files of a folder without reading them."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    found = [(str(path), path.stat()) for path in files]
    return tuple(
        (path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in found
    )
