"""Opens the folder of an encoder without torch, and runs the model."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from citerec.encode.difference.folder import is_difference, tokenizer_folder
from citerec.encode.difference.tensors import DifferenceTensors
from citerec.encode.light import UnsupportedError
from citerec.encode.light.bert import Adapter, Bert, Ids
from citerec.encode.light.converted import weights_file
from citerec.encode.light.functions import ACTIVATIONS, States
from citerec.encode.light.one_thread import one_blas_thread
from citerec.encode.light.tensors import Tensors
from citerec.encode.light.wordpiece import WordPiece
from citerec.encode.spec import EncoderSpec, Pooling, Separator, Similarity
from citerec.errors import ModelError

if TYPE_CHECKING:
    from citerec.encode.backend import Outputs, Tokens

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
