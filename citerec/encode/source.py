"""Finds models by name, folder or hub id; fetches are logged before they start."""

import re
from dataclasses import dataclass
from pathlib import Path

from citerec.encode.difference import base_folder, is_difference
from citerec.encode.files import check_named_files, tokenizer_files, weights_files
from citerec.encode.minilm import MINILM, minilm_folder
from citerec.errors import MissingExtraError, ModelError, shown
from citerec.io import check_model, name_fault
from citerec.types import Log

SPECTER, SENT_BERT = "specter", "sent-bert"
DEFAULT_RERANKER = "citerec-reranker"
NAMES = {  # hub ids by name
    SPECTER: "allenai/specter",
    "specter2": "allenai/specter2_base",
    "scincl": "malteos/scincl",
    "scibert": "allenai/scibert_scivocab_uncased",
    SENT_BERT: "sentence-transformers/bert-base-wikipedia-sections-mean-tokens",
}
# SPECTER2 consists of a base model and the proximity adapter
ADAPTERS = {"specter2": "allenai/specter2"}
ADAPTER_FOLDER = "adapter"  # in a model folder
# folders of the models in the package, by name; a folder may be missing
SHIPPED = {DEFAULT_RERANKER: Path(__file__).parent.parent / "rerank" / "default"}
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
INSIDE = "./"  # prefix of the location of a folder inside an index


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model folder, and how to find it again."""

    name: str  # as the user gave it
    location: str  # how it is found again: a name, a hub id, an absolute path, or ./ and a path inside the index
    folder: Path
    adapter: Path | None = None  # the folder of its adapter
    revision: str = ""  # the commit of a hub model; with an adapter followed by + and the adapter's


def find_model(
    name: str, *, base: Path | None = None, revision: str = "", log: Log | None = None
) -> ModelSource:
    """Find a model by a known name, a folder, or a hub id, which is fetched if it is not in the cache.

    An existing folder takes precedence over a hub id. If it holds an adapter of SPECTER2's kind under `adapter/`, the
    adapter is used.

    Args:
        name: One of `NAMES` or `SHIPPED`, `minilm`, a folder, or a hub id.
        base: The folder of an index: a relative folder is also searched there.
        revision: The commit of a hub model; by default the cached one, else the newest.
        log: Receives what is fetched, before the download starts.

    Raises:
        ModelError: If it does not exist and cannot be fetched.
        MissingExtraError: If it is `minilm` or a difference to it, and its package is not installed.
    """
    if name == MINILM:
        return ModelSource(name, name, minilm_folder())
    if name in SHIPPED:
        if not is_shipped(name):
            raise ModelError(f"{name} is not part of this installation of citerec")
        return ModelSource(name, name, SHIPPED[name], _adapter_in(SHIPPED[name]))
    if name in NAMES:
        return _from_hub(name, revision, log)
    for folder in filter(None, (_expanded(name), base and base / name)):
        if folder.is_dir():
            return ModelSource(name, _location(folder, base), folder, _adapter_in(folder))
    if HUB_ID.fullmatch(name):
        return _from_hub(name, revision, log)
    found = "is a file" if Path(name).is_file() else "is not a folder here"
    raise ModelError(
        f"the model {name!r} {found}; name a folder that holds config.json and weights, a hub id (owner/name), or "
        f"one of {', '.join([*NAMES, MINILM, *filter(is_shipped, SHIPPED)])}"
    )


def is_shipped(name: str) -> bool:
    """Return whether a model of `SHIPPED` is part of this installation."""
    return SHIPPED[name].is_dir()


def is_name(name: str) -> bool:
    """Return whether a model is known by this name, so that it is no folder."""
    return name == MINILM or name in NAMES or name in SHIPPED


def recorded_folder(location: str, *, base: Path) -> Path | None:
    """Return the folder of the model that an index was embedded by; None if it is recorded by a name."""
    if location.startswith(INSIDE):
        return base / location
    folder = Path(location)
    return folder if folder.is_absolute() else None


def find_again(
    location: str, *, base: Path, revision: str = "", log: Log | None = None
) -> ModelSource:
    """Find the model that an index was embedded by.

    Args:
        location: `ModelSource.location`.
        base: The index folder.
        revision: `ModelSource.revision`.
        log: Receives what is fetched, before the download starts.

    Raises:
        ModelError: If it does not exist any more.
    """
    if location.startswith(INSIDE) and (fault := name_fault(location.removeprefix(INSIDE))):
        raise ModelError(f"{base} was embedded by the model {shown(location)}, which {fault}")
    folder = recorded_folder(location, base=base)
    if folder is None:
        return find_model(location, revision=revision, log=log)
    if not folder.is_dir():
        raise ModelError(
            f"the model that {base} was embedded by is missing: {folder} is not a folder; restore it, or embed the "
            f"index anew: citerec encode --index {base} --encoder MODEL"
        )
    return ModelSource(location, location, folder, _adapter_in(folder))


def auto_encoder(log: Log | None = None) -> tuple[str | None, str | None]:
    """Resolve `--encoder auto`: SPECTER, else MiniLM, else none.

    Args:
        log: Receives what is fetched, before the download starts.

    Returns:
        The name, or None for BM25 alone; and a warning unless the name is SPECTER's.
    """
    from citerec.encode.hub import HubError

    try:
        return find_model(SPECTER, log=log).name, None
    except HubError as error:
        why = f"{NAMES[SPECTER]} is not in the local cache and cannot be fetched: {error.why}"
    try:
        name = find_model(MINILM).name
    except (MissingExtraError, ModelError) as error:
        return None, f"{why}; and no MiniLM: {error}; until then BM25 alone, no dense retrieval"
    general = "a general model that was not trained on citations"
    return name, f"{why}; all-MiniLM-L6-v2 is used instead, {general}"


def _from_hub(name: str, revision: str, log: Log | None) -> ModelSource:
    repo = NAMES.get(name, name)
    base, _, added = revision.partition("+")
    folder = _repository(repo, base, log)
    _adapter_in(folder)
    if name not in ADAPTERS:
        return ModelSource(name, name, folder, None, folder.name)
    adapter = _repository(ADAPTERS[name], added, log, adapter=True)
    return ModelSource(name, name, folder, adapter, f"{folder.name}+{adapter.name}")


def _repository(repo: str, revision: str, log: Log | None, *, adapter: bool = False) -> Path:
    from citerec.encode import hub

    is_complete = _holds_adapter if adapter else _holds_model
    files = hub.adapter_files if adapter else hub.model_files
    cached = hub.cached(repo, is_complete, revision)
    return cached or hub.fetch(repo, files, log or _silent, revision)


def _holds_model(folder: Path) -> bool:
    try:
        weights = weights_files(folder)
    except ModelError:
        return False
    sharded = re.search(r"-of-0*(\d+)\.", weights[0].name)
    is_complete = not sharded or len(weights) == int(sharded[1])
    return is_complete and (folder / "config.json").is_file() and bool(tokenizer_files(folder))


def _holds_adapter(folder: Path) -> bool:
    from citerec.encode.hub import ADAPTER

    config, *weights = (folder / name for name in ADAPTER)
    return config.is_file() and any(file.is_file() for file in weights)


def _adapter_in(folder: Path) -> Path | None:
    """Check a model folder; return the folder of its adapter, or None if it has none.

    Raises:
        ModelError: If the model is damaged, names a file outside the folder, or is a difference to another base model.
        MissingExtraError: If it is a difference to MiniLM, which is not installed.
    """
    check_model(folder)
    check_named_files(folder)
    if is_difference(folder):
        check_named_files(base_folder(folder))
    adapter = folder / ADAPTER_FOLDER
    return adapter if adapter.is_dir() else None


def _location(folder: Path, base: Path | None) -> str:
    resolved = folder.resolve()
    if base and resolved.is_relative_to(base.resolve()):
        return INSIDE + resolved.relative_to(base.resolve()).as_posix()
    return str(resolved)


def _expanded(name: str) -> Path:
    """Return a folder with "~" expanded; unchanged if there is no such user."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _silent(_: str) -> None:
    """Ignore a message."""
