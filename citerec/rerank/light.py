"""Cross-encoders run by NumPy, without torch: for the few pairs of a query that a user waits for."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from citerec.encode.config import Backend, EncodeConfig, Precision, requested_precision
from citerec.encode.difference import tokenizer_folder
from citerec.encode.light import stored_tensors
from citerec.encode.numpy_bert import (
    BertConfig,
    ScoringBert,
    UnsupportedError,
    WordPiece,
    one_blas_thread,
    read_config,
)
from citerec.errors import ModelError
from citerec.index.tokens import LONGEST
from citerec.machine import may_have_gpu
from citerec.rerank.spec import (
    RerankerSpec,
    Specials,
    affordable_depth,
    default_depth,
    read_reranker_spec,
    with_limits,
)

if TYPE_CHECKING:
    from citerec.encode.backend import Outputs, Tokens

NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class LightRerankerParts:
    """An open cross-encoder with its tokenizer; the counterpart of `citerec.rerank.model.RerankerParts`."""

    bert: ScoringBert
    tokenizer: WordPiece
    spec: RerankerSpec
    sizes: BertConfig

    @property
    def specials(self) -> Specials:
        """The special tokens around the two texts of a pair."""
        first, last = self.tokenizer.first, self.tokenizer.last
        return Specials((first,), (last,), (last,))

    @property
    def typed(self) -> bool:
        """Whether the model distinguishes the two segments by token types."""
        return self.tokenizer.typed and self.sizes.type_vocab_size > 1

    @property
    def vocabulary(self) -> int:
        """The number of ids of the tokenizer."""
        return len(self.tokenizer)

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids, without special tokens, at most as many as one side can have."""
        return self.tokenizer.ids(texts, LONGEST, special=False) if texts else []


@dataclass(frozen=True, slots=True)
class LightReranker:
    """A cross-encoder in a folder that NumPy may run; its weights are not open."""

    folder: Path
    spec: RerankerSpec
    sizes: BertConfig

    def opened(self) -> LightRerankerParts | None:
        """Open it; return None if only torch can run it."""
        try:
            tensors = stored_tensors(self.folder)
            if tensors is None:
                return None
            bert = ScoringBert(self.folder, tensors)
            tokenizer = WordPiece(tokenizer_folder(self.folder))
        except (UnsupportedError, ModelError):
            return None
        return LightRerankerParts(bert, tokenizer, self.spec, self.sizes)


def light_reranker(
    folder: Path, config: EncodeConfig, pairs: int, *, query_tokens: int, candidate_tokens: int
) -> LightReranker | None:
    """Return the cross-encoder in a folder for NumPy, or None if torch should run it.

    NumPy runs it for few queries (`EncodeConfig.few_texts`) on a machine without a GPU, if no device, precision or
    backend is requested, and the pairs of a query are at most as many as `affordable_depth`. This depends on
    settings and machine alone, so that each process gives a request the same scores.

    Args:
        folder: Holds weights, config.json, tokenizer, and perhaps `citerec_reranker.json`.
        config: How to run it.
        pairs: The pairs of a query; 0 for the depth that the folder states, else the default depth.
        query_tokens: The limit of the query, with special tokens; 0 for the folder's setting.
        candidate_tokens: The same for the candidate.

    Raises:
        ModelError, ConfigError: As `with_limits` and `read_reranker_spec` raise.
    """
    if not config.few_texts or not _is_free(config) or may_have_gpu():
        return None
    try:
        sizes = read_config(folder)
    except UnsupportedError:
        return None
    positions = sizes.max_position_embeddings
    spec = with_limits(read_reranker_spec(folder), positions, query_tokens, candidate_tokens)
    if spec.tokens > positions:
        return None  # torch's side raises the error
    light = LightReranker(folder, spec, sizes)
    cores = config.thread_count
    pairs = pairs or spec.depth or default_depth(light, "cpu", cores)
    return light if pairs <= affordable_depth(light, "cpu", cores) else None


def _is_free(config: EncodeConfig) -> bool:
    """Whether no device, precision or backend is requested that NumPy does not have."""
    return (
        config.device == "auto"
        and config.precision is Precision.AUTO
        and config.backend is Backend.AUTO
        and requested_precision(config.precision) in {Precision.AUTO, Precision.FLOAT32}
    )


class NumpyScorer:
    """Runs a cross-encoder pair by pair, several pairs in parallel on one thread each.

    The other pairs of a call do not change a bit of a score.
    """

    precision = "float32"
    device = "cpu"

    def __init__(self, parts: LightRerankerParts, threads: int) -> None:
        self._bert, self._threads = parts.bert, threads

    def run(
        self, tokens: "Tokens", firsts: Sequence[int] | None = None
    ) -> "Iterator[tuple[list[int], Outputs]]":
        """Yield the position of each pair, and its score, shape (1, 1); see `Runner`."""

        def score(row: int) -> "Outputs":
            ids = np.array(tokens[row], np.int64)
            types = 0 if firsts is None else (np.arange(len(ids)) >= firsts[row]).astype(np.int64)
            return self._bert.score(ids, types)[None]

        with one_blas_thread(), ThreadPoolExecutor(self._threads) as workers:
            done = workers.map(score, range(len(tokens)))
            try:
                for row, outputs in enumerate(done):
                    yield [row], outputs
            finally:
                workers.shutdown(wait=False, cancel_futures=True)
