"""Weights that PyTorch saved, converted to safetensors once, so that the next command opens them without torch.

SPECTER and SciBERT come as `pytorch_model.bin`. A converted file lies in the user's cache folder. Its name holds the
sha256 of the original weights, so weights that changed are never replaced by an old conversion, and its own sha256, so
a damaged file is not used. Where it is missing, torch opens the original.
"""

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from citerec.cache import cache_folder, is_private, private_folder, sha256_of_files
from citerec.encode.light.bert import read_config, tensor_shapes
from citerec.encode.light.tensors import ALONE
from citerec.encode.light.unsupported import UnsupportedError
from citerec.encode.light.wordpiece import WordPiece
from citerec.encode.model import weights_files
from citerec.errors import ModelError

FOLDER = "weights"
KEPT = 3  # converted files, 440 MB each for a BERT of the usual size; older ones are removed
SPARE = 2**30  # bytes of the disk that are left free

State = Mapping[str, Any]  # the tensors of a model of torch, by name


def weights_file(folder: Path) -> Path | None:
    """Return the one file in safetensors that holds the weights of a model folder: its own, or the converted one."""
    if _plain(folder):
        return folder / ALONE
    for file in _converted(folder):
        if is_private(file) and file.stem.endswith(f"-{sha256_of_files([file])}"):
            return file
    return None


def convert_weights(folder: Path, state: State) -> None:
    """Write the weights of a model that torch opened as safetensors, unless NumPy can open it without them.

    Nothing is written, and nothing is raised, where NumPy does not run the model, or the cache folder cannot be
    written, or the disk is almost full.

    Args:
        folder: The model folder.
        state: Its tensors, in float32.
    """
    cache = cache_folder()
    if cache is None or _plain(folder):
        return
    with suppress(UnsupportedError, ModelError, OSError):
        WordPiece(folder)
        shapes = dict(tensor_shapes(read_config(folder)))
        fits = all(name in state and tuple(state[name].shape) == shapes[name] for name in shapes)
        if fits and weights_file(folder) is None and private_folder(cache / FOLDER):
            _write(cache / FOLDER, _key(folder), {name: state[name] for name in shapes})


def _plain(folder: Path) -> bool:
    return [file.name for file in folder.glob("*.safetensors")] == [ALONE]


def _key(folder: Path) -> str:
    """Return the sha256 of the original weights, and of the index that names the tensors of each of several files."""
    indexes = sorted(folder.glob("*.index.json"))
    parts = sha256_of_files(weights_files(folder)), sha256_of_files(indexes)
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _converted(folder: Path) -> list[Path]:
    cache = cache_folder()
    if cache is None or not (cache / FOLDER).is_dir():
        return []
    with suppress(ModelError, OSError):
        return sorted((cache / FOLDER).glob(f"{_key(folder)}-*.safetensors"))
    return []


def _write(folder: Path, key: str, tensors: State) -> None:
    """Write a converted file whole, or not at all."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in tensors.items()}
    if shutil.disk_usage(folder).free < sum(array.nbytes for array in arrays.values()) + SPARE:
        return
    temporary = folder / f".{key}.{uuid4().hex[:8]}.tmp"
    try:
        temporary.touch(mode=0o600)
        save_file(arrays, temporary)
        temporary.chmod(0o600)
        file = folder / f"{key}-{sha256_of_files([temporary])}.safetensors"
        temporary.replace(file)
    except SafetensorError:  # which it raises when the disk is full
        return
    finally:
        temporary.unlink(missing_ok=True)
    _remove_old(file)


def _remove_old(newest: Path) -> None:
    """Remove all files but the newest few, and what a process that was killed left."""
    others = [file for file in newest.parent.iterdir() if file != newest]
    for file in sorted(others, key=lambda file: -file.stat().st_mtime)[KEPT - 1 :]:
        file.unlink(missing_ok=True)
