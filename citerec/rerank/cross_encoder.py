"""Cross-encoders: opened from a folder, they score queries and candidates together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson

from citerec.encode.machine import may_have_gpu
from citerec.encode.models import find_model, weights_files
from citerec.encode.onnx import OnnxBackend, Runner, export, export_key, exported
from citerec.encode.spec import EncodeConfig, Precision, requested_precision
from citerec.encode.torch_backend import (
    Net,
    TorchBackend,
    check_positions,
    cut,
    open_folder,
    positions_of,
    refuse_missing,
    shared,
)
from citerec.errors import ModelError
from citerec.files.arrays import Rows, Scores, concatenated
from citerec.files.cache import sha256_of_files
from citerec.index.folder import IndexFolder
from citerec.index.papers import Papers
from citerec.rerank.pair import (
    RerankerSpec,
    Specials,
    affordable_depth,
    default_depth,
    pair,
    read_reranker_spec,
)
from citerec.retrieve.fuse import sigmoid
from citerec.text import pair_text
from citerec.types import Log, Progress, Query, no_log, no_progress

KIND = "AutoModelForSequenceClassification"
POOLER = "pooler."  # below the model's own prefix, and part of the head
AT_ONCE = 16384  # pairs that are sorted by length and held in memory together

LONGEST = 447  # tokens of one text: no side of a pair has room for more


@dataclass(frozen=True, slots=True)
class RerankerParts:
    """An open cross-encoder: `model` is one of transformers, or None for an exported one."""

    model: Any
    tokenizer: Any
    spec: RerankerSpec
    specials: Specials
    sizes: Any  # the configuration of the model
    typed: bool  # whether the model distinguishes the two segments by token types

    def cut(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenize texts into ids, without special tokens, at most as many as one side can have."""
        return cut(self.tokenizer, texts, LONGEST, special=False)


def load_reranker(folder: Path, spec: RerankerSpec) -> RerankerParts:
    """Open the cross-encoder in a folder, in float32; nothing is fetched, and no code of the folder is run.

    It reads pairs by `spec`. ModelError if it is not a cross-encoder, its head was not trained, or it has too few
    positions.
    """
    parts, missing = load_body(folder, spec)
    if missing:
        raise ModelError(
            f"{folder} was not trained to rerank: its weights have no head ({missing[0]}); train it: "
            f"citerec train-reranker --model {folder}"
        )
    if parts.sizes.num_labels not in {1, 2}:
        raise ModelError(
            f"{folder} has {parts.sizes.num_labels} labels; a cross-encoder has 1 or 2"
        )
    check_positions(folder, parts.model, spec.tokens)
    return parts


def load_body(folder: Path, spec: RerankerSpec) -> tuple[RerankerParts, list[str]]:
    """Open a BERT-like model as a cross-encoder; return it and the names of the tensors of its head that it lacks."""
    model, tokenizer, missing = open_folder(folder, KIND)
    inside = f"{model.base_model_prefix}."
    refuse_missing(
        folder, [n for n in missing if n.startswith(inside) and POOLER not in n]
    )
    reads_types = "token_type_ids" in tokenizer.model_input_names
    typed = reads_types and getattr(model.config, "type_vocab_size", 0) > 1
    specials = Specials.of(tokenizer)
    return RerankerParts(model, tokenizer, spec, specials, model.config, typed), missing


def reranker_net(parts: RerankerParts) -> Net:
    """Return a cross-encoder as a net: one score per pair, shape (pairs, 1).

    The score is the logit of its only label, or the logit of the second label minus that of the first.
    """
    import torch

    class ScoringModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = parts.model

        def forward(
            self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None
        ) -> Any:
            types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            output = self.model(
                input_ids=input_ids, attention_mask=attention_mask, **types
            )
            logits = output.logits.float()
            return logits if logits.shape[1] == 1 else logits[:, 1:] - logits[:, :1]

    return Net(
        module=ScoringModel(),
        padding=parts.tokenizer.pad_token_id,
        max_tokens=parts.spec.tokens,
        typed=parts.typed,
    )


class CrossEncoder:
    """Scores pairs of a query and a candidate; several threads may use it, which take turns.

    A score is the model's logit. Other pairs of a batch change it by at most 1e-4 in float32, and in bfloat16 by about
    0.04 of the standard deviation of the scores (MiniLM). The same pairs in the same order get the same scores, bit by
    bit, on the same machine.
    """

    def __init__(
        self,
        parts: RerankerParts,
        source: Path,
        config: EncodeConfig,
        *,
        name: str = "",
        runner: Runner | None = None,
    ) -> None:
        """Make a cross-encoder of an open model, which may be moved to another device and precision.

        `source` is the folder that it was opened from, `name` as the user gave it; without `runner`, torch runs it.
        ConfigError if there is no such device.
        """
        self.parts = parts
        self.source = source
        self.name = name or str(source)
        self.spec = parts.spec
        self.fingerprint = sha256_of_files(weights_files(source))  # of the weights
        self.config = config
        self.backend = "onnx" if runner else "torch"
        self._runner = runner or TorchBackend(reranker_net(parts), self.config)
        self.device = self._runner.device
        self.precision = self._runner.precision
        # `progress` may score other pairs: a server lets small requests in
        self._turn = RLock()

    @property
    def default_depth(self) -> int:
        """How many candidates it scores within the time that a user waits."""
        return default_depth(
            self.spec, self.parts.sizes, self.device, self.config.thread_count
        )

    def score(
        self,
        index: IndexFolder,
        queries: Sequence[Query],
        rows: Sequence[Rows],
        progress: Progress = no_progress,
    ) -> list[Scores]:
        """Return the score of each candidate of each query, in the order of `rows`; all pairs are scored together."""
        lengths = [*map(len, rows)]
        owners = np.repeat(np.arange(len(queries)), lengths)
        candidates = concatenated(rows, np.int32)
        scores = np.empty(len(candidates), np.float32)
        with self._turn:
            query_ids = self.parts.cut([pair_text(query) for query in queries])
            done = 0
            for first in range(0, len(candidates), AT_ONCE):
                part = slice(first, first + AT_ONCE)
                of_pairs = [query_ids[i] for i in owners[part].tolist()]
                for places, outputs in self._outputs(
                    of_pairs, candidates[part], index.papers
                ):
                    scores[part][places] = outputs[:, 0]
                    done += len(places)
                    progress("reranking", done, len(candidates))
        if not np.isfinite(scores).all():
            raise ModelError(
                f"{self.name} gives scores that are not finite, in {self.precision}; set CITEREC_DTYPE=float32, or try "
                "another model"
            )
        return np.split(scores, np.cumsum(lengths)[:-1]) if rows else []

    def to_unit_interval(self, scores: Scores) -> Scores:
        """Return the probability that each query cites the candidate, in [0, 1], as calibrated in training."""
        z = self.spec.scale * scores.astype(np.float64) + self.spec.offset
        return sigmoid(z).astype(np.float32)

    def _outputs(
        self, queries: Sequence[list[int]], rows: Rows, papers: Papers
    ) -> Iterator[tuple[list[int], Scores]]:
        """Yield the places of pairs batch by batch, and their scores, shape (pairs, 1)."""
        read = papers.at(rows.tolist())
        texts = self.parts.cut([pair_text(paper) for paper in read.values()])
        candidates = dict(zip(read, texts, strict=True))
        pairs = [
            pair(query, candidates[row], self.parts.specials, self.spec)
            for query, row in zip(queries, rows.tolist(), strict=True)
        ]
        firsts = [first for _, first in pairs] if self.parts.typed else None
        return self._runner.run([ids for ids, _ in pairs], firsts)


def open_cross_encoder(
    name: str,
    index: IndexFolder | None,
    config: EncodeConfig | None = None,
    *,
    query_tokens: int = 0,
    candidate_tokens: int = 0,
    pairs: int = 0,
    log: Log = no_log,
) -> CrossEncoder:
    """Open a cross-encoder by its name, hub id or folder.

    ONNX Runtime runs it for few queries (`EncodeConfig.few_texts`) on a machine without a GPU, if no other device or
    precision is requested, and the pairs of a query are at most as many as `affordable_depth`; else torch. This depends
    on settings and machine alone, so that each process gives a request the same scores.

    A relative folder is also searched in the index. Limits of tokens, and `pairs`, the candidates of a query, are the
    model's own where they are 0. `log` receives what is fetched from the hub, before the download starts.
    ModelError if it does not exist, or is not a trained cross-encoder; ConfigError if a limit or the device is not
    possible; MissingExtraError if it needs an extra of citerec that is not installed.
    """
    folder = find_model(name, base=index.path if index else None, log=log).folder
    config = config or EncodeConfig()
    weights = sha256_of_files(weights_files(folder))
    spec = read_reranker_spec(folder, query_tokens, candidate_tokens)
    precision = requested_precision(config.precision)

    def opened() -> CrossEncoder:
        found = _exported(folder, config, spec, pairs)
        parts, runner = found or (load_reranker(folder, spec), None)
        return CrossEncoder(parts, folder, config, name=name, runner=runner)

    key = (name, folder, weights, spec, config, precision, pairs)
    return shared(key, opened)


def _exported(
    folder: Path, config: EncodeConfig, spec: RerankerSpec, pairs: int
) -> tuple[RerankerParts, Runner | None] | None:
    """Return a cross-encoder that ONNX Runtime may run and what runs it; its parts alone if it cannot be exported."""
    free = (Precision.AUTO, Precision.FLOAT32)
    on_cpu = config.device == "cpu" or (config.device == "auto" and not may_have_gpu())
    if not (
        config.few_texts and on_cpu and requested_precision(config.precision) in free
    ):
        return None
    try:
        # as transformers names the sizes of a model
        sizes = SimpleNamespace(**orjson.loads((folder / "config.json").read_bytes()))
        positions = positions_of(sizes)
        cores = config.thread_count
        depth = pairs or default_depth(spec, sizes, "cpu", cores)
        if spec.tokens > positions or depth > affordable_depth(
            spec, sizes, "cpu", cores
        ):
            return None
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # torch's side raises the error
    key = export_key(folder, None, spec)
    if (found := exported(key)) is None:
        parts = load_reranker(folder, spec)
        specials = parts.specials
        facts = {"specials": [specials.before, specials.between, specials.after]}
        found = export(key, reranker_net(parts), parts.tokenizer, facts)
        if found is None:
            return parts, None
    specials = Specials(*(tuple(ids) for ids in found.facts["specials"]))
    typed = bool(found.facts["typed"])
    parts = RerankerParts(None, found.tokenizer(LONGEST), spec, specials, sizes, typed)
    return parts, OnnxBackend(found, config.thread_count)
