"""Converts weights that PyTorch saved to safetensors once, so that the next command opens them without torch.

SPECTER and SciBERT are published as `pytorch_model.bin`. A converted file is stored in the user's cache folder. Its
name contains the sha256 of the original weights, so that an old conversion is not used for changed weights, and its own
sha256, so that a damaged file is not used. If there is no converted file, torch opens the original.
"""

import hashlib
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from citerec.cache import cache_folder, is_private, private_folder, sha256_of_files
from citerec.encode.difference.folder import is_difference
from citerec.encode.files import weights_files
from citerec.encode.light import UnsupportedError
from citerec.encode.light.bert import read_config, tensor_shapes
from citerec.encode.light.tensors import ALONE
from citerec.encode.light.wordpiece import WordPiece
from citerec.errors import ModelError

FOLDER = "weights"
KEPT = 3  # converted files, 440 MB each for a BERT of the usual size; older ones are removed
FREE_BYTES = 2**30  # bytes of the disk that must stay free

State = Mapping[str, Any]  # the tensors of a torch model, by name


def weights_file(folder: Path) -> Path | None:
    """Return the one safetensors file with the weights of a model folder, its own or the converted one, or None."""
    if _plain(folder):
        return folder / ALONE
    for file in _converted(folder):
        if is_private(file) and file.stem.endswith(f"-{sha256_of_files([file])}"):
            return file
    return None


def convert_weights(folder: Path, state: State) -> None:
    """Convert the weights of a model that torch opened to safetensors, if NumPy can run it but not open it.

    Nothing is written, and nothing is raised, if NumPy cannot run the model, the cache folder cannot be written, or the
    disk is almost full.

    Args:
        folder: The model folder.
        state: Its tensors, in float32.
    """
    cache = cache_folder()
    if cache is None or _plain(folder) or is_difference(folder):
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
    """Return the sha256 of the original weights and of the index files that assign tensors to several files."""
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
    """Write a converted file completely or not at all; its name holds the sha256 of its content."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in tensors.items()}
    if shutil.disk_usage(folder).free < sum(array.nbytes for array in arrays.values()) + FREE_BYTES:
        return
    temporary = folder / f".{key}.{uuid4().hex[:8]}.tmp"
    try:
        temporary.touch(mode=0o600)
        save_file(arrays, temporary)
        temporary.chmod(0o600)
        file = folder / f"{key}-{sha256_of_files([temporary])}.safetensors"
        temporary.replace(file)
    except SafetensorError:  # raised when the disk is full
        return
    finally:
        temporary.unlink(missing_ok=True)
    _remove_old(file)


def _remove_old(newest: Path) -> None:
    """Remove all files except the newest few, and temporary files of killed processes."""
    others = [file for file in newest.parent.iterdir() if file != newest]
    for file in sorted(others, key=lambda file: -file.stat().st_mtime)[KEPT - 1 :]:
        file.unlink(missing_ok=True)
