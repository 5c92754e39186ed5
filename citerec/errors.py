"""Everything that citerec raises on purpose; the command line prints it as one line and exits with 2.

CiterecError
├── ConfigError             an option or a setting that cannot be
├── InvalidValueError       a paper or a query that cannot be, such as one without a title
├── BadInputError           a file that cannot be read as what it should be
│   └── BadRecordError      one record of a corpus, with its file and line
├── IndexNotFoundError      no index folder there, or more than one to choose from
├── IndexExistsError        a build would replace an index, and nobody said so
├── IndexFormatError        an index folder of another format version
├── IndexDamagedError       a file of an index is missing or is not what was written
├── IndexReplacedError      a build put another index in its place while it was opened
├── ModelError              a model that is not there, or is not what it should be
│   ├── ModelDamagedError       a file of a model is missing or is not what was written
│   ├── EncoderMismatchError    an index was embedded by another encoder
│   └── ModelExistsError        a training would replace a model, and nobody said so
├── MissingExtraError       an optional part of citerec that is not installed
├── DatasetError            a dataset that cannot be fetched, or is not what it was (citerec.lab.datasets)
├── OutputError             a folder or file that cannot be written, or a full disk
└── JavaError               no Java that can run Lucene
"""

import reprlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_REPR = reprlib.Repr()  # bounded in depth and length: JSON may nest lists 1,000 deep
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80


def shown(value: object) -> str:
    """Return a value as a message can show it: one short line."""
    text = _REPR.repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class CiterecError(Exception):
    """What the user can mend: the message says what was found, what was expected, what to do."""


class ConfigError(CiterecError):
    """An option or a setting that cannot be."""


class InvalidValueError(CiterecError):
    """A paper or a query that cannot be, such as a query without a title."""

    def __init__(self, subject: str, fault: str) -> None:
        super().__init__(f"{subject}: {fault}")
        self.subject, self.fault = subject, fault


class BadInputError(CiterecError):
    """A file that cannot be read as what it should be."""

    def __init__(self, path: Path | str, message: str, *, line: int | None = None) -> None:
        where = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {message}")
        self.path, self.line, self.message = path, line, message


class BadRecordError(BadInputError):
    """One record of a corpus that cannot be taken; `kind` is the name it is counted under."""

    def __init__(self, path: Path | str, line: int, message: str, *, kind: str) -> None:
        super().__init__(path, message, line=line)
        self.kind = kind


class IndexNotFoundError(CiterecError):
    """No index folder there, or more than one to choose from."""


class IndexExistsError(CiterecError):
    """A build would replace an index, and nobody said so."""

    def __init__(self, index: Path) -> None:
        super().__init__(
            f"{index} is there already; replace it with --force, or name another folder with --index"
        )
        self.index = index


class IndexFormatError(CiterecError):
    """An index folder of another format version."""

    def __init__(self, index: Path, *, found: object, expected: int) -> None:
        super().__init__(
            f"{index} has index format {found!r}, this citerec reads format {expected}; "
            f"rebuild it: citerec index CORPUS --index {index} --force"
        )
        self.index, self.found, self.expected = index, found, expected


class IndexDamagedError(CiterecError):
    """A file of an index is missing or is not what was written."""

    def __init__(self, index: Path, faults: list[str]) -> None:
        advice = f"rebuild it: citerec index CORPUS --index {index} --force"
        if all(fault.startswith("models/") for fault in faults):  # a rebuild takes them along
            advice = f"train the model again, or remove it from {index / 'models'}"
        elif all(fault.startswith("tokens/") for fault in faults):
            advice = f"remove {index / 'tokens'}: it is made again when it is needed"
        super().__init__(f"{index} is damaged: {_some(faults)}; {advice}")
        self.index, self.faults = index, faults


class IndexReplacedError(CiterecError):
    """A build put another index in its place while it was opened."""

    def __init__(self, index: Path) -> None:
        super().__init__(f"{index} was replaced while it was opened; run this again")
        self.index = index


class ModelError(CiterecError):
    """A model that is not there, or is not what it should be."""


class ModelDamagedError(ModelError):
    """A file of a model is missing or is not what was written."""

    def __init__(self, model: Path, faults: list[str]) -> None:
        super().__init__(
            f"{model} is damaged: {_some(faults)}; copy or download it again, or train it again"
        )
        self.model, self.faults = model, faults


class EncoderMismatchError(ModelError):
    """An index was embedded by another encoder than the one in use."""

    def __init__(self, index: Path, *, found: str, expected: str) -> None:
        super().__init__(
            f"{index} was embedded by {expected}, not by {found}; leave --encoder out, or embed it anew: "
            f"citerec encode --index {index} --encoder {found}"
        )
        self.index, self.found, self.expected = index, found, expected


class ModelExistsError(ModelError):
    """A training would replace a model, and nobody said so."""

    def __init__(self, model: Path) -> None:
        super().__init__(
            f"{model} is there already; replace it with --force, or name another folder with --output"
        )
        self.model = model


class MissingExtraError(CiterecError):
    """An optional part of citerec that is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(f"{module} is not installed; run: pip install 'citerec[{extra}]'")
        self.module, self.extra = module, extra


class OutputError(CiterecError):
    """A folder or file that cannot be written, or a full disk."""


class JavaError(CiterecError):
    """No Java that can run Lucene."""


def _some(faults: list[str]) -> str:
    return "; ".join(faults[:3]) + (f"; and {len(faults) - 3} more" if len(faults) > 3 else "")


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
    except OSError as error:
        what = error.strerror or str(error)
        raise OutputError(f"cannot write {error.filename or path}: {what}") from error
