"""Opens a model for NumPy: converted weights, the network, and how it runs texts."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import numpy as np

from citerec.encode.difference import DifferenceTensors, is_difference, tokenizer_folder
from citerec.encode.files import weights_files
from citerec.encode.numpy_bert import (
    ACTIVATIONS,
    ALONE,
    Adapter,
    Bert,
    Ids,
    States,
    Tensors,
    UnsupportedError,
    WordPiece,
    one_blas_thread,
    read_config,
    tensor_shapes,
)
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity
from citerec.errors import ModelError
from citerec.io import cache_folder, is_private, private_folder, sha256_of_files

if TYPE_CHECKING:
    from citerec.encode.backend import Outputs, Tokens


# Converts weights that PyTorch saved to safetensors once, so that the next command opens them without torch.
#
# SPECTER and SciBERT are published as `pytorch_model.bin`. A converted file is stored in the user's cache folder. Its
# name contains the sha256 of the original weights, so that an old conversion is not used for changed weights, and its
# own sha256, so that a damaged file is not used. If there is no converted file, torch opens the original.


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


Item = TypeVar("Item")
Result = TypeVar("Result")

SMALLEST_NORM = 1e-12  # as in torch.nn.functional.normalize


@dataclass(frozen=True, slots=True)
class LightParts:
    """An open BERT with its tokenizer; the counterpart of `citerec.encode.model.Parts`."""

    bert: Bert
    tokenizer: WordPiece
    spec: EncoderSpec

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self.bert.config.hidden_size

    @property
    def separator(self) -> str:
        """The text between the parts of a paper."""
        return " " if self.spec.separator is Separator.SPACE else self.tokenizer.separator

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids: with special tokens, at most `spec.max_tokens` each."""
        return self.tokenizer.ids(texts, self.spec.max_tokens)


def open_light(folder: Path, spec: EncoderSpec, adapter: Path | None = None) -> LightParts | None:
    """Open the model in a folder without torch; return None if only torch can run it.

    Args:
        folder: Holds weights, config.json and tokenizer.
        spec: How it reads and pools text.
        adapter: The folder of an adapter to add; None for none.
    """
    try:
        tensors = stored_tensors(folder)
        if tensors is None:
            return None
        bert = Bert(folder, tensors, _adapter(adapter) if adapter else None)
        if bert.config.max_position_embeddings < spec.max_tokens:
            return None  # torch's side raises the error
        return LightParts(bert, WordPiece(tokenizer_folder(folder)), spec)
    except (UnsupportedError, ModelError):
        return None


class NumpyBackend:
    """Runs a BERT, each text on one thread: on a busy machine OpenBLAS's threads cost more than they gain."""

    precision = "float32"
    device = "cpu"

    def __init__(self, parts: LightParts, threads: int = 1) -> None:
        """Prepare.

        Args:
            parts: The model.
            threads: How many texts, or groups of texts, are computed at the same time.
        """
        self._bert, self._spec, self._threads = parts.bert, parts.spec, threads

    def run(
        self, tokens: "Tokens", firsts: Sequence[int] | None = None
    ) -> "Iterator[tuple[list[int], Outputs]]":
        """Yield the position of each text, and its vector, shape (1, dim); see `Runner`. Token types are refused."""
        if firsts is not None:
            raise ValueError("NumPy does not encode texts of two segments")
        texts = [np.array(ids, np.int64) for ids in tokens]
        for row, vector in enumerate(self._in_threads(self._encoded, texts)):
            yield [row], vector[None]

    def run_together(self, tokens: "Tokens") -> "Iterator[tuple[list[int], Outputs]]":
        """Yield what `run` yields, but for rounding, from two computations of half of the texts."""
        texts = [np.array(ids, np.int64) for ids in tokens]
        cut = len(texts) // 2  # for any number of threads, so that it does not change the vectors
        halves = [half for half in (texts[:cut], texts[cut:]) if half]
        parts = self._in_threads(self._encoded_together, halves)
        for row, vector in enumerate(chain.from_iterable(parts)):
            yield [row], vector[None]

    def _encoded(self, ids: Ids) -> "Outputs":
        return self._vector(self._bert.states(ids))

    def _encoded_together(self, texts: Sequence[Ids]) -> "list[Outputs]":
        return [self._vector(states) for states in self._bert.states_together(texts)]

    def _in_threads(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield the result of each item."""
        threads = min(self._threads, len(items))
        with one_blas_thread():
            if threads <= 1:
                yield from map(work, items)
                return
            with ThreadPoolExecutor(threads) as pool:
                try:
                    yield from pool.map(work, items)
                finally:
                    pool.shutdown(cancel_futures=True)

    def _vector(self, states: States) -> "Outputs":
        """Pool the states of one text, shape (tokens, dim), to a vector; see `citerec.encode.model.pool`."""
        if self._spec.pooling is Pooling.CLS:
            vector = states[0]
        elif self._spec.pooling is Pooling.MAX:
            vector = states.max(0)
        else:
            vector = states.mean(0)
        if self._spec.similarity is Similarity.COSINE:
            vector = vector / max(float(np.linalg.norm(vector)), SMALLEST_NORM)
        return vector.astype(np.float32)


def stored_tensors(folder: Path) -> Tensors | DifferenceTensors | None:
    """Map the weights of a model folder into memory; return None if only torch can read them.

    Raises:
        UnsupportedError: If they cannot be read.
        MissingExtraError, ModelError: If the base model of a difference is missing, or another one.
    """
    if is_difference(folder):
        return DifferenceTensors(folder)
    weights = weights_file(folder)
    return Tensors(weights) if weights else None


def _adapter(folder: Path) -> Adapter:
    """Open an adapter of SPECTER2's kind.

    Raises:
        UnsupportedError: If NumPy cannot run it.
        ModelError: If it is of another kind.
    """
    from citerec.encode.adapter import SAFE, by_layer, read_adapter_config

    config = read_adapter_config(folder)
    if config.non_linearity not in ACTIVATIONS:
        raise UnsupportedError(f"{folder}: its activation is {config.non_linearity}")
    tensors = Tensors(folder / SAFE)
    read = {name: tensors.read(name, tensors.shape(name)) for name in tensors.names}
    return Adapter(config=config, layers=by_layer(folder, read))
