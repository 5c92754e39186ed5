"""All errors that citerec raises on purpose; the command line prints them as one line and exits with 2."""

import re
import reprlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_NOT_WRITTEN = re.compile(  # of Rust, of torch
    r"os error \d+|inline_container\.cc|iostream error|unable to mmap"
)
_REPR = reprlib.Repr()  # limits depth and length: JSON may nest lists 1,000 deep
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


def shown(value: object) -> str:
    """Return a value for a message: one short line."""
    text = _REPR.repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class CiterecError(Exception):
    """An error that the user can fix: the message states what was found, what was expected and what to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it as it is: the initialisers of subclasses take something else than the message."""
        return Exception.__new__, (type(self), *self.args), self.__dict__


class ConfigError(CiterecError):
    """An invalid option or setting."""


class InvalidValueError(CiterecError):
    """An invalid paper or query, such as a query without a title."""

    def __init__(self, subject: str, fault: str) -> None:
        super().__init__(f"{subject}: {fault}")
        self.fault = fault


class PaperNotFoundError(CiterecError):
    """A paper that the corpus does not have."""


class BadInputError(CiterecError):
    """A file that cannot be read in the expected format."""

    def __init__(
        self, path: Path | str, message: str, *, line: int | None = None
    ) -> None:
        where = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {message}")
        self.path = path
        self.line = line
        self.message = message


class BadRecordError(BadInputError):
    """An invalid record of a corpus; faults are counted by `kind`."""

    def __init__(self, path: Path | str, line: int, message: str, *, kind: str) -> None:
        super().__init__(path, message, line=line)
        self.kind = kind


class IndexNotFoundError(CiterecError):
    """No index folder, or more than one to choose from."""


class IndexExistsError(CiterecError):
    """A build would replace an index without --force."""


class IndexFormatError(CiterecError):
    """An index folder of another format version."""


class IndexDamagedError(CiterecError):
    """A file of an index is missing or was changed."""

    def __init__(self, index: Path, faults: list[str]) -> None:
        advice = f"rebuild it: citerec index CORPUS --index {index} --force"
        # a rebuild would keep them
        if all(fault.startswith("models/") for fault in faults):
            advice = f"train the model again, or remove it from {index / 'models'}"
        super().__init__(f"{index} is damaged: {_some(faults)}; {advice}")
        self.faults = faults


class IndexReplacedError(CiterecError):
    """A build replaced an index while it was being read."""


class FileChangedError(CiterecError):
    """Another program saves a file that is being extended."""


class LockedError(CiterecError):
    """Another process is changing an index, a corpus, a model or a bibliography."""


class ModelError(CiterecError):
    """A model that does not exist or cannot be used."""


class ModelDamagedError(ModelError):
    """A file of a model is missing or was changed."""

    def __init__(self, model: Path, faults: list[str]) -> None:
        super().__init__(
            f"{model} is damaged: {_some(faults)}; copy or download it again, or train it again"
        )


class EncoderMismatchError(ModelError):
    """An index was embedded by another encoder than the one in use."""

    def __init__(self, index: Path, *, found: str, expected: str) -> None:
        super().__init__(
            f"{index} was embedded by {expected}, not by {found}; leave --encoder out, or embed it anew: "
            f"citerec encode --index {index} --encoder {found}"
        )


class ModelExistsError(ModelError):
    """A training would replace a model without --force."""


class MissingExtraError(CiterecError):
    """An optional part of citerec that is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"{module} is not installed; run: pip install 'citerec[{extra}]'"
        )


class OutputError(CiterecError):
    """A folder or file that cannot be written, or a full disk."""


class ClusterError(CiterecError):
    """A Ray cluster that cannot be reached, or whose workers fail."""


class JavaError(CiterecError):
    """No Java that can run Lucene was found."""


def _some(faults: list[str]) -> str:
    return "; ".join(faults[:3]) + (
        f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    )


@contextmanager
def extra(name: str) -> Generator[None]:
    """Turn a missing optional package into an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or str(error), name) from error


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Turn a failed write under `path` (no permission, no space, no folder) into an `OutputError`."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not _NOT_WRITTEN.search(str(error)):
            raise
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        name = getattr(error, "filename", None) or path
        raise OutputError(f"cannot write {name}: {reason}") from error
