"""Runs a cross-encoder: queries and candidates in, scores out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from citerec.encode.config import Backend, EncodeConfig
from citerec.encode.files import weights_files
from citerec.encode.shared import OpenModels
from citerec.encode.source import find_model
from citerec.errors import ModelError
from citerec.folder import IndexFolder
from citerec.index.tokens import Tokens
from citerec.io import sha256_of_files
from citerec.rerank.light import NUMPY, LightRerankerParts, NumpyScorer, light_reranker
from citerec.rerank.spec import RerankerSpec, default_depth, pair
from citerec.retrieve.fuse import sigmoid
from citerec.text import pair_text
from citerec.types import Log, Progress, Query

if TYPE_CHECKING:
    from citerec.encode.backend import Runner
    from citerec.rerank.model import RerankerParts
    from citerec.types import Rows, Scores

AT_ONCE = 16384  # pairs that are sorted by length and held in memory together
INDEXES = 4  # indexes whose tokens are held at once


class _Limits(TypedDict):
    """The tokens of both sides, with special ones; 0 for the model's setting."""

    query_tokens: int
    candidate_tokens: int


class CrossEncoder:
    """Scores pairs of a query and a candidate; several threads may use it, which take turns.

    A score is the model's logit. Other pairs of a batch change it by at most 1e-4 in float32, and in bfloat16 by about
    0.04 of the standard deviation of the scores (MiniLM). The same pairs in the same order get the same scores, bit by
    bit, on the same machine.
    """

    def __init__(
        self,
        parts: "RerankerParts | LightRerankerParts",
        source: Path,
        config: EncodeConfig | None = None,
        *,
        name: str = "",
        log: Log | None = None,
    ) -> None:
        """Make a cross-encoder of an open model; the model may be moved to another device and precision.

        Args:
            parts: The model; NumPy runs one that was opened without torch.
            source: The folder that it was opened from.
            config: How to run it.
            name: As the user gave it; by default the folder.
            log: Receives messages for the user, one line each.

        Raises:
            ConfigError: If there is no such device.
            MissingExtraError: If OpenVINO is requested but not installed.
        """
        self.parts = parts
        self.name = name or str(source)
        self.source = source
        self.fingerprint = sha256_of_files(weights_files(source))  # of the weights
        self._runner, self.config = _runner(parts, config or EncodeConfig(), log)
        self._turn = Lock()
        # of the indexes that were used last, the most recent one at the end
        self._of_indexes: list[Tokens] = []
        # the tokens of the queries of the last call, by text
        self._queries: dict[str, list[int]] = {}

    @property
    def spec(self) -> RerankerSpec:
        """How it reads a pair, and how its score becomes a probability."""
        return self.parts.spec

    @property
    def precision(self) -> str:
        """The number format of its computation: float32, bfloat16 or float16."""
        return self._runner.precision

    @property
    def backend(self) -> str:
        """The library that runs it: numpy, torch or openvino."""
        return NUMPY if isinstance(self.parts, LightRerankerParts) else str(self.config.backend)

    @property
    def device(self) -> str:
        """The device that it runs on: cpu, cuda, mps."""
        return self._runner.device

    @property
    def default_depth(self) -> int:
        """How many candidates it scores within the time that a user waits; see `depth`."""
        return default_depth(self.parts, self.device, self.config.thread_count)

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: "Sequence[Rows]",
        progress: Progress | None = None,
    ) -> "list[Scores]":
        """Return the score of each candidate of each query, in the order of `rows`.

        Args:
            index: The index of the candidates.
            queries: The queries; pairs of all of them are scored together.
            rows: The candidates of each query.
            progress: Receives how many pairs are scored.

        Raises:
            ModelError: If a score is not finite.
        """
        owners = np.repeat(np.arange(len(queries)), [len(query_ids) for query_ids in rows])
        candidate_rows = np.concatenate([np.zeros(0, np.int32), *rows])
        scores = np.empty(len(candidate_rows), np.float32)
        with self._turn:
            tokens = self._tokens(index)
            texts = self._cut_queries([pair_text(query) for query in queries])
            for first in range(0, len(candidate_rows), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                query_ids = [texts[i] for i in owners[part].tolist()]
                self._score_pairs(query_ids, candidate_rows[part], tokens, scores[part])
                if progress:
                    progress("reranking", min(part.stop, len(candidate_rows)), len(candidate_rows))
        return (
            np.split(scores, np.cumsum([len(query_ids) for query_ids in rows])[:-1]) if rows else []
        )

    def to_unit_interval(self, scores: "Scores") -> "Scores":
        """Return the probability that each query cites the candidate, in [0, 1], as calibrated in training."""
        z = self.spec.scale * scores.astype(np.float64) + self.spec.offset
        return sigmoid(z).astype(np.float32)

    def _score_pairs(
        self, queries: Sequence[list[int]], rows: "Rows", tokens: Tokens, scores: "Scores"
    ) -> None:
        """Score pairs into `scores`, shape (pairs,)."""
        numbers = rows.tolist()
        papers = tokens.of(numbers)
        pairs = [
            pair(query, papers[row], self.parts.specials, self.spec)
            for query, row in zip(queries, numbers, strict=True)
        ]
        firsts = [first for _, first in pairs] if self.parts.typed else None
        for places, outputs in self._runner.run([ids for ids, _ in pairs], firsts):
            scores[places] = outputs[:, 0]
        if not np.isfinite(scores).all():
            raise ModelError(
                f"{self.name} gives scores that are not finite, in {self.precision}; try --dtype float32, or another "
                "model"
            )

    def _cut_queries(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize queries; tokens of the last call are reused, for callers that pass a query's candidates in parts."""
        cached = {text: self._queries[text] for text in texts if text in self._queries}
        new = [text for text in dict.fromkeys(texts) if text not in cached]
        self._queries = cached | dict(zip(new, self.parts.cut(new), strict=True))
        return [self._queries[text] for text in texts]

    def _tokens(self, index: IndexFolder) -> Tokens:
        """Return the tokens of an index; those of the index that was not used for the longest time are dropped."""
        found = next((one for one in self._of_indexes if one.papers is index.papers), None)
        found = found or Tokens(index.papers, self.parts.cut)
        others = [one for one in self._of_indexes if one is not found]
        self._of_indexes = [*others[-INDEXES + 1 :], found]
        return found


def _runner(
    parts: "RerankerParts | LightRerankerParts", config: EncodeConfig, log: Log | None
) -> "tuple[Runner, EncodeConfig]":
    """Return what runs a model, and the configuration with the backend resolved."""
    if isinstance(parts, LightRerankerParts):
        return NumpyScorer(parts, config.thread_count), config
    if config.few_texts and config.backend is Backend.AUTO:
        config = replace(config, backend=Backend.TORCH)  # OpenVINO takes seconds to prepare
    from citerec.encode.backend import open_fastest
    from citerec.rerank.model import reranker_net

    return open_fastest(reranker_net(parts), config, log)


def _with_torch(folder: Path, limits: _Limits) -> "RerankerParts":
    from citerec.rerank.model import load_reranker

    return load_reranker(folder, **limits)


_OPEN = OpenModels[CrossEncoder]()


def open_cross_encoder(
    name: str,
    index: IndexFolder | None,
    config: EncodeConfig | None = None,
    *,
    query_tokens: int = 0,
    candidate_tokens: int = 0,
    pairs: int = 0,
    log: Log | None = None,
) -> CrossEncoder:
    """Open a cross-encoder by its name, hub id or folder.

    Args:
        name: A folder, a hub id, or a name that `encode.source` knows.
        index: A relative folder is also searched in it.
        config: How to run it.
        query_tokens: The limit of the query, with special tokens; 0 for the model's setting.
        candidate_tokens: The same for the candidate.
        pairs: The candidates of a query; 0 for the model's setting. Of few queries, NumPy scores few pairs.
        log: Receives what is fetched from the hub, before the download starts, and other messages for the user.

    Raises:
        ModelError: If it does not exist, or is not a trained cross-encoder.
        ConfigError: If a limit or the device is not possible.
        MissingExtraError: If it needs an extra of citerec that is not installed.
    """
    folder = find_model(name, base=index.path if index else None, log=log).folder
    config = config or EncodeConfig()
    limits = _Limits(query_tokens=query_tokens, candidate_tokens=candidate_tokens)
    light = light_reranker(folder, config, pairs, **limits)

    def open_model() -> CrossEncoder:
        parts = (light and light.opened()) or _with_torch(folder, limits)
        return CrossEncoder(parts, folder, config, name=name, log=log)

    settings = (name, config, *limits.values(), light is not None, log)
    return _OPEN.get(settings, [folder], open_model)
