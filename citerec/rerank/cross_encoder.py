"""A cross-encoder at work: queries and candidates in, scores out, fast."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from citerec.cache import sha256_of_files
from citerec.encode.backend import open_fastest
from citerec.encode.config import EncodeConfig
from citerec.encode.hub import Log
from citerec.encode.model import tokenizer_files, weights_files
from citerec.encode.source import find_model
from citerec.errors import ModelError
from citerec.folder import IndexFolder
from citerec.index.tokens import FreshTokens, Tokens, TokenStore, open_tokens, write_tokens
from citerec.rerank.depth import default_depth
from citerec.rerank.model import RerankerParts, load_reranker, reranker_net
from citerec.rerank.pair import pair
from citerec.rerank.spec import RerankerSpec
from citerec.text import pair_text
from citerec.types import Progress, Query

if TYPE_CHECKING:
    from citerec.types import Rows, Scores

AT_ONCE = 16384  # pairs that are in memory, and sorted by length, together
SHARE = 10  # all papers are cut and kept once a tenth of them was asked for,
ENOUGH = 20_000  # or so many,
FEW = 5000  # or at once, where there are so few


class CrossEncoder:
    """Scores pairs of a query and a candidate; several threads may use it, one at a time gets its turn.

    A score is the model's logit. The pairs around it change it by at most 1e-4 in float32, and in bfloat16 by about
    0.04 of the standard deviation of the scores (MiniLM); the same pairs in the same order get the same scores, bit
    by bit, on the same machine.
    """

    def __init__(
        self,
        parts: RerankerParts,
        source: Path,
        config: EncodeConfig | None = None,
        *,
        name: str = "",
        log: Log | None = None,
    ) -> None:
        """Make a cross-encoder of a model that is open; it may be moved to another device and precision.

        Args:
            parts: The model.
            source: The folder that it was opened from.
            config: How to run it.
            name: As the user named it; the folder by default.
            log: Receives what its user should know, a line each.

        Raises:
            ConfigError: If there is no such device.
            MissingExtraError: If OpenVINO is wanted, and not installed.
        """
        self.parts = parts
        self.name = name or str(source)
        self.source = source
        self.fingerprint = sha256_of_files(weights_files(source))  # of the weights
        self._tokenizer = sha256_of_files(tokenizer_files(source))
        self._log = log
        net = reranker_net(parts)
        self._runner, self.config = open_fastest(net, config or EncodeConfig(), log)
        self._turn = Lock()
        self._kept: tuple[IndexFolder, TokenStore | FreshTokens] | None = (
            None  # of the index that was asked last
        )
        self._cut = 0  # papers, since it was last tried to keep all of them
        self._queries: dict[str, list[int]] = {}  # the tokens of those that were asked last

    @property
    def spec(self) -> RerankerSpec:
        """How it reads a pair, and what its score means."""
        return self.parts.spec

    @property
    def precision(self) -> str:
        """What it calculates with: float32, bfloat16 or float16."""
        return self._runner.precision

    @property
    def backend(self) -> str:
        """What multiplies the matrices: torch or openvino."""
        return str(self.config.backend)

    @property
    def place(self) -> str:
        """Where: cpu, cuda, mps."""
        return self._runner.place

    @property
    def default_depth(self) -> int:
        """How many candidates it scores while a user waits; see `depth`."""
        return default_depth(self.parts, self.place, self.config.thread_count)

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: "Sequence[Rows]",
        progress: Progress | None = None,
    ) -> "list[Scores]":
        """Return the score of each candidate of each query, in the order of `rows`.

        Args:
            index: Whose papers the candidates are.
            queries: One query is a batch of one; pairs of all of them are read together.
            rows: The candidates of each query.
            progress: Receives how many pairs are scored.

        Raises:
            ModelError: If a score is no finite number.
        """
        asked = np.repeat(np.arange(len(queries)), [len(mine) for mine in rows])
        given = np.concatenate([np.zeros(0, np.int32), *rows])
        scores = np.empty(len(given), np.float32)
        with self._turn:
            tokens = self._tokens(index, given, progress)
            texts = self._cut_queries([pair_text(query) for query in queries])
            for first in range(0, len(given), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                mine = [texts[i] for i in asked[part].tolist()]
                self._read(mine, given[part], tokens, scores[part])
                if progress:
                    progress("reranking", min(part.stop, len(given)), len(given))
        return np.split(scores, np.cumsum([len(mine) for mine in rows])[:-1]) if rows else []

    def probability(self, scores: "Scores") -> "Scores":
        """Return how likely it is that each query cites the candidate, from 0 to 1, as calibrated in training."""
        z = self.spec.scale * scores.astype(np.float64) + self.spec.offset
        return (0.5 * (1 + np.tanh(z / 2))).astype(np.float32)

    def _read(
        self, queries: Sequence[list[int]], rows: "Rows", tokens: Tokens, scores: "Scores"
    ) -> None:
        """Score pairs into `scores`."""
        numbers = rows.tolist()
        papers = tokens.of(numbers)
        pairs = [
            pair(query, papers[row], self.parts.specials, self.spec)
            for query, row in zip(queries, numbers, strict=True)
        ]
        firsts = [first for _, first in pairs] if self.parts.typed else None
        for places, found in self._runner.run([ids for ids, _ in pairs], firsts):
            scores[places] = found[:, 0]
        if not np.isfinite(scores).all():
            raise ModelError(
                f"{self.name} gives scores that are no numbers, in {self.precision}; try --dtype float32, or another "
                "model"
            )

    def _cut_queries(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut queries into tokens; who asks about one part by part has it cut once."""
        known = {text: self._queries[text] for text in texts if text in self._queries}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        self._queries = known | dict(zip(new, self.parts.cut(new), strict=True))
        return [self._queries[text] for text in texts]

    def _tokens(self, index: IndexFolder, rows: "Rows", progress: Progress | None) -> Tokens:
        """Return the tokens of an index's papers: kept ones, else such as are cut as they come.

        Where they could not be kept, it is tried again when as many more have been cut: another process may have been
        first, or there may be room by then.
        """
        if self._kept is None or self._kept[0] is not index:
            self._kept, self._cut = (index, FreshTokens(index.papers, self.parts.cut)), 0
        tokens = self._kept[1]
        if isinstance(tokens, TokenStore):
            return tokens
        store = open_tokens(index, self._tokenizer, vocabulary=len(self.parts.tokenizer))
        if store is None:
            new = tokens.unknown(rows.tolist())
            self._cut += new
            if new and self._cut >= _worth_keeping(len(index.papers)):
                self._cut = 0
                store = self._keep(index, progress)
        if store is not None:
            self._kept = index, store
        return self._kept[1]

    def _keep(self, index: IndexFolder, progress: Progress | None) -> TokenStore | None:
        tokens = write_tokens(
            index,
            self._tokenizer,
            self.parts.cut,
            vocabulary=len(self.parts.tokenizer),
            progress=progress,
            log=self._log,
        )
        if isinstance(tokens, TokenStore):
            return tokens
        self._log = None  # that is told once
        return None


def _worth_keeping(papers: int) -> int:
    """Return how many papers must be asked for before all of an index's are cut and kept."""
    return 0 if papers <= FEW else min(papers // SHARE, ENOUGH)


def open_reranker(
    name: str,
    index: IndexFolder | None,
    config: EncodeConfig | None = None,
    *,
    query_tokens: int = 0,
    candidate_tokens: int = 0,
    log: Log | None = None,
) -> CrossEncoder:
    """Open a cross-encoder by its name, hub id or folder.

    Args:
        name: A folder, a hub id, or a name that `encode.source` knows.
        index: A relative folder is looked up in it, too.
        config: How to run it.
        query_tokens: How many tokens the query may have, special tokens within; 0 for what the model says.
        candidate_tokens: The same for the candidate.
        log: Receives what is fetched from the hub, before, and what else its user should know.

    Raises:
        ModelError: If it is not there, or is no cross-encoder that was trained.
        ConfigError: If a limit or the device cannot be.
        MissingExtraError: If it needs a part of citerec that is not installed.
    """
    folder = find_model(name, base=index.path if index else None, log=log).folder
    parts = load_reranker(folder, query_tokens=query_tokens, candidate_tokens=candidate_tokens)
    return CrossEncoder(parts, folder, config, name=name, log=log)
