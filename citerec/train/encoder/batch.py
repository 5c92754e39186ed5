"""Converts the examples of a step to model inputs; each paper of a step is encoded once."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from citerec.encode.model import Parts, tokens_of
from citerec.text import encoder_text
from citerec.train.chunks import Chunk, chunked
from citerec.train.encoder.config import EncoderLoss
from citerec.train.encoder.examples import EncoderExamples
from citerec.train.encoder.memory import Memory
from citerec.train.lists import Flags, Rows

CPU_TOKENS, GPU_TOKENS = 2048, 32768  # per forward pass, of papers of similar length
CACHED = 500_000  # papers whose tokens are cached, so that each is tokenized once


class Collator:
    """Converts examples to the inputs of a step."""

    def __init__(self, parts: Parts, examples: EncoderExamples, *, on_cpu: bool) -> None:
        import torch

        self._torch: Any = torch
        config = examples.config
        tokens = min(config.train_tokens or parts.spec.max_tokens, parts.spec.max_tokens)
        self._parts = Parts(parts.model, parts.tokenizer, replace(parts.spec, max_tokens=tokens))
        self._examples = examples
        self._on_cpu = on_cpu
        self._budget = CPU_TOKENS if on_cpu else GPU_TOKENS
        self._token_cache: dict[int, list[int]] = {}
        self._memory = None
        if config.loss is EncoderLoss.MEMORY:
            self._memory = Memory(
                examples.data, examples.positives, examples.learners, seed=config.seed
            )

    def __call__(self, drawn: Sequence[Rows]) -> dict[str, Any]:
        """Return the inputs of the model's forward.

        Args:
            drawn: Examples, each of shape (2 + negatives,): query, positive, negatives.
        """
        rows, places = np.unique(np.stack(drawn), return_inverse=True)
        places = places.reshape(len(drawn), -1)
        chunks, positions = self._read(rows)
        inputs: dict[str, Any] = {"chunks": chunks}
        if self._memory:
            return inputs | self._memory_inputs(self._memory, rows, positions)
        if self._examples.config.loss is EncoderLoss.TRIPLET:
            return inputs | {"triples": self._torch.from_numpy(positions[places])}
        papers, columns = np.unique(places[:, 1:], return_inverse=True)
        columns = columns.reshape(len(drawn), -1)
        allowed = self._allowed(rows[places[:, 0]], rows[papers], columns[:, 0])
        return inputs | {
            "queries": self._torch.from_numpy(positions[places[:, 0]]),
            "papers": self._torch.from_numpy(positions[papers]),
            "targets": self._torch.from_numpy(columns[:, 0]),
            "allowed": self._torch.from_numpy(allowed),
        }

    def _memory_inputs(self, memory: Memory, rows: Rows, positions: Any) -> dict[str, Any]:
        order = np.argsort(positions)  # the vectors are in the order in which the papers are read
        comparison = memory.comparison(rows)
        arrays = {field.name: getattr(comparison, field.name) for field in fields(comparison)}
        arrays["live"] = memory.slots(rows[order])
        return {name: self._torch.from_numpy(array) for name, array in arrays.items()}

    def _allowed(self, queries: Rows, papers: Rows, targets: Any) -> Flags:
        """Return the allowed papers of each query, shape (queries, papers): its target and true negatives.

        Not allowed are its other positives, its other references, the query itself, and papers of a later year.
        """
        query_rows, paper_rows = queries[:, None], papers[None, :]
        allowed = ~self._examples.forbidden.holds(query_rows, paper_rows)
        allowed &= self._examples.data.eligible(query_rows, paper_rows)
        allowed[np.arange(len(queries)), targets] = True
        return allowed

    def _read(self, rows: Rows) -> tuple[list[Chunk], Any]:
        """Return the papers in chunks of similar length, and the position of each row in the reading order."""
        tokens = self._tokens(rows.tolist())
        parts = self._parts
        padding, most = parts.tokenizer.pad_token_id, parts.spec.max_tokens
        return chunked(tokens, self._budget, padding=padding, most=most, even=self._on_cpu)

    def _tokens(self, rows: list[int]) -> list[list[int]]:
        unknown = [row for row in rows if row not in self._token_cache]
        if len(self._token_cache) > CACHED:
            self._token_cache, unknown = {}, rows
        papers = self._examples.data.index.papers.at(unknown)
        parts = self._parts
        texts = [encoder_text(papers[r], parts.spec.form, parts.separator) for r in unknown]
        self._token_cache.update(zip(unknown, tokens_of(parts, texts), strict=True))
        return [self._token_cache[row] for row in rows]
