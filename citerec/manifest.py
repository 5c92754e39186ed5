"""The manifest of an index folder: format, corpus, counts, settings, checksums of its files.

The manifest has a checksum of its own, so that a changed byte in it is detected, too. Checksums detect damage, not
attacks: who publishes an index can also write its checksums. So names and types are validated as well.
"""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from shutil import copytree
from typing import Any

import orjson

from citerec.atomic import building, replacing
from citerec.entries import is_regular, name_faults, read_record, shown
from citerec.errors import (
    IndexDamagedError,
    IndexFormatError,
    IndexNotFoundError,
    ModelDamagedError,
)
from citerec.sums import (
    checksums_of,
    content_faults,
    files_in,
    seal_of,
    serialised,
    sha256_of,
    sizes_of,
    unexpected,
)

__all__ = ["sha256_of"]

FORMAT = 1
NAME = "manifest.json"
# models that were trained on the index after it was built: each has its own checksums
MODELS = "models"
TOKENS = "tokens"  # token ids of the papers, for cross-encoders: a cache with its own checksums
POSTINGS = "postings"  # of Lucene's index, for searches without Lucene: the same
CACHES = (TOKENS, POSTINGS)
MODEL_SUMS = "checksums.json"
TRAINING = "training.json"  # the record of a training: every model that citerec trained has one, and checksums
CARD = "README.md"  # the model card
SNAPSHOTS = "snapshots"  # holds the models of a repository in the cache of a hub
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
        """The sha256 of the corpus that the index was built from; updates of the index keep it."""
        return str(self.corpus.get("base_sha256", self.corpus["sha256"]))

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written, with its seal; the same content gives the same bytes."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if not self.sizes:  # an index that was built before sizes were written
            del content["sizes"]
        return serialised(content | {"seal": seal_of(content)})


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
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise IndexDamagedError(folder, [f"{NAME} cannot be read"]) from error
    if version != FORMAT:
        raise IndexFormatError(folder, found=version, expected=FORMAT)
    content.pop("seal", None)  # `to_bytes` computes it again
    if content.keys() | {"sizes"} != Manifest.__dataclass_fields__.keys():
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"])
    if wrong := _type_faults(content) or name_faults(content["checksums"]):
        raise IndexDamagedError(folder, [f"{NAME}: {fault}" for fault in wrong])
    manifest = Manifest(**content)
    if not _is_serialised(manifest, raw):
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"])
    return manifest


def _type_faults(content: dict[str, Any]) -> list[str]:
    """Return the entries of a manifest that have a wrong type, one line each."""

    def is_table(name: str, *kinds: type) -> bool:
        table = content.get(name, {})
        values: list[object] = [*table.values()] if isinstance(table, dict) else [None]
        return (not kinds and isinstance(table, dict)) or all(
            type(value) in kinds for value in values
        )

    texts = {name: isinstance(content[name], str) for name in ("name", "created", "citerec")}
    is_valid = {
        **texts,
        "corpus": is_table("corpus", str, int) and isinstance(content["corpus"].get("sha256"), str),
        "counts": is_table("counts", int),
        "settings": is_table("settings"),
        "checksums": is_table("checksums", str),
        "sizes": is_table("sizes", int),
    }
    wrong = [f"its {name} has a wrong type" for name, valid in is_valid.items() if not valid]
    name = content["name"]
    if not wrong and (PurePath(name).name != name or name in {"", ".."}):
        return [f"its name, {shown(name)}, is not that of a folder"]
    return wrong


def _is_serialised(manifest: Manifest, raw: bytes) -> bool:
    try:
        return manifest.to_bytes() == raw
    except TypeError:  # nested deeper than orjson supports
        return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the size of each file, completely or not at all."""
    manifest = replace(manifest, sizes=sizes_of(folder, manifest.checksums))
    with replacing(folder / NAME) as temporary:
        temporary.write_bytes(manifest.to_bytes())


def checksums(folder: Path, *, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the sha256 of every file of an index except its manifest, models and caches, by path in the folder.

    Args:
        folder: The folder of the index.
        known: Checksums of files that need not be read.
    """
    apart = tuple(f"{name}/" for name in (MODELS, *CACHES))
    names = {n for n in files_in(folder) if n != NAME and not n.startswith(apart)}
    known = {name: digest for name, digest in (known or {}).items() if name in names}
    sums = checksums_of(folder, names - known.keys()) | known
    return {name: sums[name] for name in sorted(names)}


def faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare every file of an index with its manifest; return the faults, one line each.

    Models that were trained on it and caches are compared with their own checksums. Entries that do not belong
    to the index are faults, too: an additional file, a link, a pipe.
    """
    wrong = content_faults(folder, manifest.checksums, manifest.sizes, whole=True)
    wrong += unexpected(folder, {NAME, *manifest.checksums}, but=(MODELS, *CACHES))
    for name in (MODELS, *CACHES):
        wrong += [f"{name}/{fault}" for fault in _part_faults(folder / name)]
    return wrong + _linked_parts(folder)


def opening_faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare an index with its manifest by the checks of every opening; return the faults, one line each.

    Small files are read; of large files only the size is compared.
    """
    wrong = content_faults(folder, manifest.checksums, manifest.sizes, whole=False)
    return wrong + _linked_parts(folder)


def models_of(folder: Path) -> list[Path]:
    """Return the folders of the models that were trained on an index."""
    return [path for path in _listed(folder / MODELS) if path.is_dir()]


def seal_model(folder: Path) -> None:
    """Write the checksums of a model's files into its folder, so that `verify` can check them."""
    names = {*files_in(folder)} - {MODEL_SUMS}
    content = {"files": checksums_of(folder, names), "sizes": sizes_of(folder, names)}
    (folder / MODEL_SUMS).write_bytes(serialised(content | {"seal": seal_of(content)}))


@contextmanager
def editing_model(folder: Path) -> Generator[Path]:
    """Yield a copy of a model's folder, which replaces the folder, with new checksums, when the block ends.

    A reader sees the whole old model or the whole new one. If the block fails, the folder stays as it was.

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
        whole: If true, every file is read, and additional files are faults; otherwise small files are read, and of
            large files only the size is compared.
    """
    try:
        content: Any = orjson.loads(raw := read_record(model / MODEL_SUMS))
        sums, sizes = content["files"], content.get("sizes", {})
        seal = content.pop("seal")
        if seal != seal_of(content if sizes else sums) or raw != serialised(
            {**content, "seal": seal}
        ):
            return [f"{MODEL_SUMS} is not what was written"]
        sums.pop(MODEL_SUMS, None)  # some models were sealed twice
        if not whole:
            sums.pop(CARD, None)  # users may edit it
        wrong = name_faults(sums)
    except (FileNotFoundError, NotADirectoryError):
        return [f"{MODEL_SUMS} is missing"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [f"{MODEL_SUMS} cannot be read"]
    # there, files are links
    cache = model.parent.parent if model.parent.name == SNAPSHOTS else None
    wrong = wrong or content_faults(model, sums, sizes, whole=whole, links_into=cache)
    return wrong + (unexpected(model, {MODEL_SUMS, *sums}) if whole else [])


def check_model(model: Path) -> None:
    """Check a model when it is opened, if it has checksums: small files by content, large ones by size.

    A folder of other software has no checksums, and needs none.

    Raises:
        ModelDamagedError: If a file is missing or was changed.
    """
    has_sums = any((model / name).exists() for name in (MODEL_SUMS, TRAINING))
    wrong = model_faults(model, whole=False) if has_sums else []
    wrong += [f"{name} is a pipe or a device" for name in _special(model)]
    if wrong:
        raise ModelDamagedError(model, wrong)


def _special(folder: Path) -> list[str]:
    return [p.name for p in _listed(folder) if not (p.is_dir() or is_regular(p))]


def _part_faults(part: Path) -> list[str]:
    """Return the faults in a folder of models or a cache, one line each."""
    wrong: list[str] = []
    for path in [] if part.is_symlink() else _listed(part):
        if path.is_dir() and not path.name.startswith("."):
            wrong += [f"{path.name}/{fault}" for fault in model_faults(path)]
        elif not (path.is_dir() and _IN_PROGRESS.fullmatch(path.name)):
            wrong.append(f"{path.name} does not belong to it")
    return wrong


def _linked_parts(folder: Path) -> list[str]:
    """Return which of the folders of models and caches are links, one line each."""
    links = [name for name in (MODELS, *CACHES) if (folder / name).is_symlink()]
    return [f"{name} is a link, expected a folder" for name in links]


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
