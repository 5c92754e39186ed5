"""The manifest of an index folder (format, corpus, counts, settings, checksums) and the checksums of a model's files.

Both records have a checksum of their own, a seal, so that a changed byte in them is found, too. Checksums find damage,
not attacks: who publishes an index can also write its checksums. So names and types are validated as well.
"""

import hashlib
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import orjson

from citerec.atomic import building, replacing
from citerec.entries import (
    checksums_of,
    entries,
    file_faults,
    name_faults,
    read_record,
    sha256_of,
    sizes_of,
    unexpected,
)
from citerec.errors import (
    IndexDamagedError,
    IndexFormatError,
    IndexNotFoundError,
    ModelDamagedError,
)

__all__ = ["sha256_of"]

FORMAT = 2
NAME = "manifest.json"
# models that were trained on the index after it was built: each has its own checksums
MODELS = "models"
MODEL_SUMS = "checksums.json"
TRAINING = "training.json"  # the record of a training: every model that citerec trained has one, and checksums
CARD = "README.md"  # the model card, which users may edit
_IN_PROGRESS = re.compile(r"\..+\.(training|building-.+)")  # next to a model that is being trained


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
    sizes: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)  # bytes of each
    format: int = FORMAT

    @property
    def lineage(self) -> str:
        """The sha256 of the corpus that the index was built from first; changes of the index keep it."""
        return str(self.corpus.get("base_sha256", self.corpus["sha256"]))

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written, with its seal; the same content gives the same bytes."""
        return sealed({name: getattr(self, name) for name in self.__dataclass_fields__})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder.

    Raises:
        IndexNotFoundError: If there is no index folder, or no permission to read it.
        IndexDamagedError: If the manifest was changed.
        IndexFormatError: If it is of another format version.
    """
    try:
        raw = read_record(folder / NAME)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise IndexNotFoundError(
            f"{folder} is not an index (it has no {NAME}); build one: "
            "citerec index CORPUS --index FOLDER, where FOLDER is new or empty"
        ) from error
    except OSError as error:
        raise IndexNotFoundError(f"{folder / NAME} cannot be read: {error.strerror}") from error
    try:
        content: Any = orjson.loads(raw)
        version = content["format"]
        if version != FORMAT:
            raise IndexFormatError(folder, found=version, expected=FORMAT)
        content.pop("seal", None)  # `to_bytes` computes it again
        manifest = Manifest(**content)
        if manifest.to_bytes() != raw or not _has_types(manifest):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"]) from error
    if wrong := name_faults(manifest.checksums):
        raise IndexDamagedError(folder, [f"{NAME}: {fault}" for fault in wrong])
    return manifest


def _has_types(manifest: Manifest) -> bool:
    """Whether the entries of a manifest have the types that the others rely on."""
    texts = [manifest.name, manifest.created, manifest.citerec, manifest.corpus["sha256"]]
    texts += manifest.checksums.values()
    numbers = [*manifest.counts.values(), *manifest.sizes.values()]
    return (
        all(type(text) is str for text in texts)
        and all(type(number) is int for number in numbers)
        and all(type(value) in {str, int} for value in manifest.corpus.values())
        and isinstance(manifest.settings, dict)
        and manifest.name not in {"", ".", ".."}
        and "/" not in manifest.name
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the size of each file, completely or not at all."""
    manifest = replace(manifest, sizes=sizes_of(folder, manifest.checksums))
    with replacing(folder / NAME) as temporary:
        temporary.write_bytes(manifest.to_bytes())


def checksums(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of an index except its manifest and models, by path in the folder."""
    names = [name for name, kind in entries(folder) if kind == "file" and name != NAME]
    return checksums_of(folder, [name for name in names if not name.startswith(f"{MODELS}/")])


def faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare every file of an index with its manifest; return the faults, one line each.

    Entries that do not belong to the index are faults, too: an additional file, a link, a pipe. Models that were
    trained on it are compared with their own checksums.
    """
    wrong = file_faults(folder, manifest.checksums, manifest.sizes, whole=True)
    wrong += unexpected(folder, {NAME, *manifest.checksums}, but=MODELS)
    for path in sorted((folder / MODELS).glob("*")):
        if path.is_dir() and not path.name.startswith("."):
            wrong += [f"{MODELS}/{path.name}/{fault}" for fault in model_faults(path)]
        elif not _IN_PROGRESS.fullmatch(path.name):
            wrong.append(f"{MODELS}/{path.name} does not belong to it")
    return wrong


def opening_faults(folder: Path, manifest: Manifest) -> list[str]:
    """Return what is missing of an index, has another size or is a link, one line each; no file is read."""
    wrong = file_faults(folder, manifest.checksums, manifest.sizes, whole=False)
    return wrong + ([f"{MODELS} is a link"] if (folder / MODELS).is_symlink() else [])


def models_of(folder: Path) -> list[Path]:
    """Return the folders of the models that were trained on an index."""
    return [path for path in sorted((folder / MODELS).glob("*")) if path.is_dir()]


def seal_model(folder: Path) -> None:
    """Write the checksums of a model's files into its folder, so that `verify` can check them."""
    names = [name for name, kind in entries(folder) if kind == "file" and name != MODEL_SUMS]
    content = {"files": checksums_of(folder, names), "sizes": sizes_of(folder, names)}
    (folder / MODEL_SUMS).write_bytes(sealed(content))


@contextmanager
def editing_model(folder: Path) -> Generator[Path]:
    """Yield a copy of a model's folder, which replaces the folder, with new checksums, when the block ends.

    Raises:
        OutputError: If the folder cannot be written.
    """
    with building(folder) as copy:
        copytree(folder, copy, dirs_exist_ok=True)
        yield copy
        seal_model(copy)


def model_faults(model: Path, *, whole: bool = True) -> list[str]:
    """Compare the files of a model with the checksums in its folder; return the faults, one line each.

    Args:
        model: The folder of the model.
        whole: If true, every file is read, and additional files are faults; otherwise only sizes are compared.
    """
    try:
        content: Any = orjson.loads(raw := read_record(model / MODEL_SUMS))
        content.pop("seal")
        sums, sizes = dict(content["files"]), content["sizes"]
        if raw != sealed(content):
            return [f"{MODEL_SUMS} is not what was written"]
    except (FileNotFoundError, NotADirectoryError):
        return [f"{MODEL_SUMS} is missing"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [f"{MODEL_SUMS} cannot be read"]
    if wrong := name_faults(sums):
        return wrong
    if whole:
        return file_faults(model, sums, sizes, whole=True) + unexpected(model, {MODEL_SUMS, *sums})
    sums.pop(CARD, None)
    return file_faults(model, sums, sizes, whole=False, links=True)


def check_model(model: Path) -> None:
    """Check a model when it is opened, if it has checksums; a folder of other software has none.

    Raises:
        ModelDamagedError: If a file is missing or has another size.
    """
    has_sums = any((model / name).exists() for name in (MODEL_SUMS, TRAINING))
    if wrong := model_faults(model, whole=False) if has_sums else []:
        raise ModelDamagedError(model, wrong)


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON with its seal, the sha256 of the rest; the same content gives the same bytes."""
    seal = hashlib.sha256(_serialised(content)).hexdigest()
    return _serialised({**content, "seal": seal})


def _serialised(content: Mapping[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"
