"""The Hugging Face hub: finds models in its local cache and fetches them; the only module for huggingface_hub."""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from citerec.errors import ModelError
from citerec.types import Log

SECONDS = 5  # of waiting for the hub's first response
SMALL = ("*.json", "*.txt", "*.model")  # configuration and vocabulary
SAFE, PLAIN = "model*.safetensors", "pytorch_model*.bin"
ADAPTER = ("adapter_config.json", "adapter.safetensors", "pytorch_adapter.bin")


class HubError(ModelError):
    """A model that is not in the cache and cannot be fetched from the hub; `why` is the reason alone."""

    def __init__(self, repo: str, why: str) -> None:
        super().__init__(
            f"{repo} is not in the local cache and cannot be fetched: {why}; fetch it on a machine that can and "
            "name its folder, or choose --encoder minilm, or none"
        )
        self.why = why


def cached(repo: str, is_complete: Callable[[Path], bool], revision: str = "") -> Path | None:
    """Return the folder of a model in the local cache; the network is not used.

    Args:
        repo: The hub id.
        is_complete: Whether a folder holds all required files: a cache may hold some of them.
        revision: The commit; by default the newest that was fetched.
    """
    hub = _hub()
    try:
        folder = Path(
            hub.snapshot_download(
                repo,
                revision=revision or None,
                local_files_only=True,
                allow_patterns=["config.json"],
            )
        )
    except hub.errors.LocalEntryNotFoundError:
        return None
    except hub.errors.HFValidationError as error:
        raise ModelError(
            f"{repo!r} is not a hub id, and there is no folder of that name"
        ) from error
    return folder if is_complete(folder) else None


def fetch(
    repo: str, choose: Callable[[Sequence[str]], list[str]], log: Log, revision: str = ""
) -> Path:
    """Fetch a model from the hub into the local cache; log its files and size first.

    Args:
        repo: The hub id.
        choose: Selects the required files from the names of all files.
        log: Receives what is fetched, before the download starts.
        revision: The commit; by default the newest.

    Raises:
        HubError: If the hub cannot be reached, does not have the model, or the download fails.
    """
    hub = _hub()
    if hub.constants.HF_HUB_OFFLINE:
        raise HubError(repo, "this is offline (HF_HUB_OFFLINE is set)")
    try:
        info = hub.HfApi().model_info(
            repo, revision=revision or None, files_metadata=True, timeout=SECONDS
        )
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        files = choose(list(sizes))
        if files:
            size = sum(sizes[name] for name in files)
            log(f"fetching {repo} from {hub.constants.ENDPOINT}: {len(files)} files, {_mb(size)}")
            return Path(
                hub.snapshot_download(repo, revision=revision or None, allow_patterns=files)
            )
    except Exception as error:  # of four libraries, depending on the version of huggingface_hub
        raise HubError(repo, _reason(hub, error)) from error
    raise HubError(repo, "the hub's copy holds no weights in a known format")


def model_files(names: Sequence[str]) -> list[str]:
    """Select the required files of a model: weights as safetensors if there are any, else PyTorch's."""
    top = [name for name in names if "/" not in name]
    weights = _matching(top, SAFE) or _matching(top, PLAIN)
    pooling = [name for name in names if name.count("/") == 1 and name.endswith("/config.json")]
    small = [name for pattern in SMALL for name in _matching(top, pattern)]
    return sorted({*weights, *pooling, *small}) if weights else []


def adapter_files(names: Sequence[str]) -> list[str]:
    """Select the required files of an adapter; none if it is incomplete."""
    present = [name for name in ADAPTER if name in names]
    return present[:2] if len(present) > 1 else []


def _matching(names: Sequence[str], pattern: str) -> list[str]:
    return [name for name in names if Path(name).match(pattern)]


def _reason(hub: Any, error: Exception) -> str:
    response = getattr(error, "response", None)
    if isinstance(error, hub.errors.GatedRepoError):
        return "the hub requires that you request access to it and log in"
    if isinstance(error, hub.errors.RepositoryNotFoundError):
        return "the hub has no such model, or it is private"
    if isinstance(error, hub.errors.RevisionNotFoundError):
        return "the hub no longer has that revision"
    if response is not None:
        return f"the hub answered {response.status_code}"
    message = " ".join(str(error).split())[:120] or type(error).__name__
    return f"this is offline, or the hub cannot be reached ({message})"


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"


def _hub() -> Any:
    import huggingface_hub

    importlib.import_module("huggingface_hub.errors")
    return huggingface_hub
