"""What an index folder says of itself: format, corpus, counts, settings, checksums of its files.

The manifest is sealed with a checksum of its own, so that a flipped byte in it is found, too.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.errors import IndexDamagedError, IndexFormatError, IndexNotFoundError

FORMAT = 1
NAME = "manifest.json"
MODELS = "models"  # trained on an index after it was built: each has checksums of its own
TOKENS = "tokens"  # of the papers, for cross-encoders: a cache that has checksums of its own, too
MODEL_SUMS = "checksums.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of one index."""

    name: str
    created: str  # ISO 8601, UTC
    citerec: str  # version that built it
    corpus: Mapping[str, Any]  # path, format, sha256, files
    counts: Mapping[str, int]
    settings: Mapping[str, Any]  # per part: bm25, splits, encoder
    checksums: Mapping[str, str]  # sha256 of each other file, by path within the folder
    format: int = FORMAT

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written: sealed, the same bytes for the same content."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _dump(content | {"seal": _seal(content)})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder.

    Raises:
        IndexNotFoundError: If there is no index folder, or one that this user may not read.
        IndexDamagedError: If the manifest is not what was written.
        IndexFormatError: If it was written in another format version.
    """
    try:
        raw = (folder / NAME).read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexNotFoundError(
            f"{folder} is no index (it holds no {NAME}); build one: "
            "citerec index CORPUS --index FOLDER, where FOLDER is new or empty"
        ) from error
    except OSError as error:
        raise IndexNotFoundError(f"{folder / NAME} cannot be read: {error.strerror}") from error
    try:
        content: Any = orjson.loads(raw)
        version = content["format"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise IndexDamagedError(folder, [f"{NAME} cannot be read"]) from error
    if version != FORMAT:
        raise IndexFormatError(folder, found=version, expected=FORMAT)
    content.pop("seal", None)  # `to_bytes` makes it again
    if content.keys() == Manifest.__dataclass_fields__.keys():
        manifest = Manifest(**content)
        if manifest.to_bytes() == raw:
            return manifest
    raise IndexDamagedError(folder, [f"{NAME} is not what was written"])


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, whole or not at all."""
    beside = folder / f".{NAME}.new"
    beside.write_bytes(manifest.to_bytes())
    beside.replace(folder / NAME)


def checksums(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of an index but its manifest, models and tokens, by path within it."""
    return {path: sha256_of(folder / path) for path in sorted(_files(folder))}


def faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare every file of an index with its manifest; return what is wrong, a line each.

    The models that were trained on it are held against the checksums that their trainers wrote, and so are the
    tokens that it keeps.
    """
    wrong = _compared(folder, set(_files(folder)), manifest.checksums)
    for part in (*models_of(folder), *_inside(folder / TOKENS)):
        wrong += [f"{part.relative_to(folder).as_posix()}/{fault}" for fault in model_faults(part)]
    return wrong


def models_of(folder: Path) -> list[Path]:
    """Return the folders of the models that were trained on an index."""
    return _inside(folder / MODELS)


def _inside(folder: Path) -> list[Path]:
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [path for path in there if not path.name.startswith(".")]  # those are on their way


def seal_model(folder: Path) -> None:
    """Write the checksums of a model's files into its folder, so that `verify` can check them."""
    sums = {name: sha256_of(folder / name) for name in sorted(_everything(folder))}
    (folder / MODEL_SUMS).write_bytes(_dump({"files": sums, "seal": _seal(sums)}))


def model_faults(model: Path) -> list[str]:
    """Compare the files of a model with the checksums in its folder; return what is wrong, a line each."""
    try:
        content: Any = orjson.loads((model / MODEL_SUMS).read_bytes())
        sums, seal = content["files"], content["seal"]
        if seal != _seal(sums):
            return [f"{MODEL_SUMS} is not what was written"]
    except FileNotFoundError:
        return [f"{MODEL_SUMS} is missing"]
    except (OSError, ValueError, KeyError, TypeError):
        return [f"{MODEL_SUMS} cannot be read"]
    return _compared(model, set(_everything(model)) - {MODEL_SUMS}, sums)


def _compared(folder: Path, there: set[str], sums: Mapping[str, str]) -> list[str]:
    wrong = [f"{path} is missing" for path in sums if path not in there]
    wrong += [f"{path} does not belong to it" for path in sorted(there - {*sums})]
    for path, expected in sums.items():
        if path in there and (fault := _fault(folder / path, expected)):
            wrong.append(f"{path} {fault}")
    return wrong


def _fault(file: Path, expected: str) -> str | None:
    try:
        return None if sha256_of(file) == expected else "is not what was written"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _files(folder: Path) -> Iterator[str]:
    for path in _everything(folder):
        if path != NAME and not path.startswith((f"{MODELS}/", f"{TOKENS}/")):
            yield path


def _everything(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dump(content)).hexdigest()


def _dump(content: Mapping[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
