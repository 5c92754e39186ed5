"""Opens the parts of an index that retrievers search: faults become errors that state what to do."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from citerec.errors import ConfigError, IndexDamagedError, IndexReplacedError
from citerec.folder import IndexFolder
from citerec.manifest import read_manifest

UNREADABLE = (EOFError, OSError, ValueError)  # what a reader raises for damaged files


@contextmanager
def opening(
    index: IndexFolder, part: str, is_fault: Callable[[Exception], bool]
) -> Generator[None]:
    """Turn the errors of a block that opens a part of an index into errors that state what to do.

    Args:
        index: The index.
        part: The name of the part's folder.
        is_fault: Whether an exception comes from damaged files; other exceptions are raised as they are.

    Raises:
        IndexDamagedError: If the part cannot be read.
        IndexReplacedError: If a build put another index in its place meanwhile.
    """
    try:
        yield
    except Exception as error:
        if not is_fault(error):
            raise
        _check_same(index, error)
        reason = " ".join(str(error).split())[:120]
        raise IndexDamagedError(index.path, [f"{part}/ cannot be read ({reason})"]) from error
    _check_same(index)


def check_embedded(index: IndexFolder, encoder: str = "MODEL") -> None:
    """Check that an index has vectors.

    Args:
        index: The index.
        encoder: The encoder that the message suggests.

    Raises:
        ConfigError: If it has none.
    """
    if not index.is_embedded:
        raise ConfigError(
            f"{index.path} has no vectors; embed its papers: "
            f"citerec encode --index {index.path} --encoder {encoder}"
        )


def _check_same(index: IndexFolder, cause: Exception | None = None) -> None:
    if read_manifest(index.path) != index.manifest:
        raise IndexReplacedError(index.path) from cause
