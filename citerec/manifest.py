"""What an index folder says of itself: format, corpus, counts, settings, checksums of its files.

The manifest is sealed with a checksum of its own, so that a flipped byte in it is found, too. Checksums find damage,
not malice: who offers an index for download writes them, too. So names and types are checked as well.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import orjson

from citerec.atomic import replacing
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
MODELS = "models"  # trained on an index after it was built: each has checksums of its own
TOKENS = "tokens"  # of the papers, for cross-encoders: a cache that has checksums of its own, too
MODEL_SUMS = "checksums.json"
TRAINED = "training.json"  # is in every model that citerec trained, and so are checksums
CARD = "README.md"  # of a model
SNAPSHOTS = "snapshots"  # holds the models of a repository in the cache of a hub
_IN_PROGRESS = re.compile(r"\..+\.(training|building-.+)")  # beside the model that will be


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

    def to_bytes(self) -> bytes:
        """Return the manifest as it is written: sealed, the same bytes for the same content."""
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        if not self.sizes:  # of an index that was built before they were written
            del content["sizes"]
        return serialised(content | {"seal": seal_of(content)})


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index folder.

    Raises:
        IndexNotFoundError: If there is no index folder, or one that this user may not read.
        IndexDamagedError: If the manifest is not what was written.
        IndexFormatError: If it was written in another format version.
    """
    try:
        raw = read_record(folder / NAME)
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
    if content.keys() | {"sizes"} != Manifest.__dataclass_fields__.keys():
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"])
    if wrong := _type_faults(content) or name_faults(content["checksums"]):
        raise IndexDamagedError(folder, [f"{NAME}: {fault}" for fault in wrong])
    manifest = Manifest(**content)
    if not _is_serialised(manifest, raw):
        raise IndexDamagedError(folder, [f"{NAME} is not what was written"])
    return manifest


def _type_faults(content: dict[str, Any]) -> list[str]:
    """Return which parts of a manifest are not of the kind that they should be, a line each."""

    def is_table(name: str, *kinds: type) -> bool:
        table = content.get(name, {})
        values: list[object] = [*table.values()] if isinstance(table, dict) else [None]
        return (not kinds and isinstance(table, dict)) or all(type(one) in kinds for one in values)

    texts = {name: isinstance(content[name], str) for name in ("name", "created", "citerec")}
    good = {
        **texts,
        "corpus": is_table("corpus", str, int) and isinstance(content["corpus"].get("sha256"), str),
        "counts": is_table("counts", int),
        "settings": is_table("settings"),
        "checksums": is_table("checksums", str),
        "sizes": is_table("sizes", int),
    }
    wrong = [f"its {name} cannot be made out" for name, is_good in good.items() if not is_good]
    name = content["name"]
    if not wrong and (PurePath(name).name != name or name in {"", ".."}):
        return [f"its name, {shown(name)}, is not that of a folder"]
    return wrong


def _is_serialised(manifest: Manifest, raw: bytes) -> bool:
    try:
        return manifest.to_bytes() == raw
    except TypeError:  # nested deeper than orjson writes
        return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the size of each file, whole or not at all."""
    manifest = replace(manifest, sizes=sizes_of(folder, manifest.checksums))
    with replacing(folder / NAME) as temporary:
        temporary.write_bytes(manifest.to_bytes())


def checksums(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file of an index but its manifest, models and tokens, by path within it."""
    apart = (f"{MODELS}/", f"{TOKENS}/")
    return checksums_of(
        folder, {n for n in files_in(folder) if n != NAME and not n.startswith(apart)}
    )


def faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare every file of an index with its manifest; return what is wrong, a line each.

    The models that were trained on it are held against the checksums that their trainers wrote, and so are the
    tokens that it keeps. What does not belong to the index is wrong, too: a further file, a link, a pipe.
    """
    wrong = content_faults(folder, manifest.checksums, manifest.sizes, whole=True)
    wrong += unexpected(folder, {NAME, *manifest.checksums}, but=(MODELS, TOKENS))
    for name in (MODELS, TOKENS):
        wrong += [f"{name}/{fault}" for fault in _part_faults(folder / name)]
    return wrong + _linked_parts(folder)


def opening_faults(folder: Path, manifest: Manifest) -> list[str]:
    """Compare an index with its manifest as far as that is done at every opening; return what is wrong, a line each.

    Small files are read, large ones have to have their size.
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


def model_faults(model: Path, *, whole: bool = True) -> list[str]:
    """Compare the files of a model with the checksums in its folder; return what is wrong, a line each.

    Args:
        model: Its folder.
        whole: Whether every file is read, and further files are wrong, too; otherwise small files are read, and
            large ones have to have their size.
    """
    try:
        content: Any = orjson.loads(raw := read_record(model / MODEL_SUMS))
        sums, sizes = content["files"], content.get("sizes", {})
        seal = content.pop("seal")
        if seal != seal_of(content if sizes else sums) or raw != serialised(
            {**content, "seal": seal}
        ):
            return [f"{MODEL_SUMS} is not what was written"]
        sums.pop(MODEL_SUMS, None)  # some were sealed twice
        if not whole:
            sums.pop(CARD, None)  # people write into it
        wrong = name_faults(sums)
    except (FileNotFoundError, NotADirectoryError):
        return [f"{MODEL_SUMS} is missing"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [f"{MODEL_SUMS} cannot be read"]
    cache = model.parent.parent if model.parent.name == SNAPSHOTS else None  # whose files are links
    wrong = wrong or content_faults(model, sums, sizes, whole=whole, links_into=cache)
    return wrong + (unexpected(model, {MODEL_SUMS, *sums}) if whole else [])


def check_model(model: Path) -> None:
    """Check a model as it is opened, if it has checksums: small files by content, large ones by size.

    A folder that was made by other software has no checksums, and need not have any.

    Raises:
        ModelDamagedError: If a file is missing or is not what was written.
    """
    has_sums = any((model / name).exists() for name in (MODEL_SUMS, TRAINED))
    wrong = model_faults(model, whole=False) if has_sums else []
    wrong += [f"{name} is a pipe or a device" for name in _special(model)]
    if wrong:
        raise ModelDamagedError(model, wrong)


def _special(folder: Path) -> list[str]:
    return [p.name for p in _listed(folder) if not (p.is_dir() or is_regular(p))]


def _part_faults(part: Path) -> list[str]:
    """Return what is wrong in a folder of models or of tokens, a line each."""
    wrong: list[str] = []
    for path in [] if part.is_symlink() else _listed(part):
        if path.is_dir() and not path.name.startswith("."):
            wrong += [f"{path.name}/{fault}" for fault in model_faults(path)]
        elif not (path.is_dir() and _IN_PROGRESS.fullmatch(path.name)):
            wrong.append(f"{path.name} does not belong to it")
    return wrong


def _linked_parts(folder: Path) -> list[str]:
    """Return which folders, that models and tokens are written to, are links; a line each."""
    links = [name for name in (MODELS, TOKENS) if (folder / name).is_symlink()]
    return [f"{name} is a link, expected a folder" for name in links]


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []
