"""Finds index folders by name; nothing of an index is opened, so this is fast to import."""

from pathlib import Path

from citerec.entries import is_regular
from citerec.errors import IndexNotFoundError

INDEXES = Path("indexes")  # where indexes are, unless a folder is named
MANIFEST = "manifest.json"  # the file that makes a folder an index


def find_index(named: Path | None, *, root: Path = INDEXES) -> Path:
    """Return an index folder: the named one, else the only one under `root`.

    A bare name is also searched under `root`.

    Raises:
        IndexNotFoundError: If there is none, or several to choose from.
    """
    if named is not None:
        return next((p for p in (named, root / named) if is_regular(p / MANIFEST)), named)
    folders = sorted(p.parent for p in root.glob(f"*/{MANIFEST}")) if root.is_dir() else []
    # a build in progress
    folders = [folder for folder in folders if not folder.name.startswith(".")]
    if len(folders) == 1:
        return folders[0]
    if not folders:
        raise IndexNotFoundError(
            f"no index under {root}/; build one: citerec index CORPUS, or try: citerec demo"
        )
    listed = ", ".join(str(p) for p in folders)
    raise IndexNotFoundError(f"several indexes: {listed}; choose one with --index")
