"""From the examples of a step to what the model reads: every paper of a step is encoded once."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from citerec.encode.batching import batches, padded
from citerec.encode.model import Parts, tokens_of
from citerec.text import encoder_text
from citerec.train.encoder.config import Loss
from citerec.train.encoder.examples import Examples
from citerec.train.encoder.memory import Memory
from citerec.train.lists import Flags, Rows

CPU_TOKENS, GPU_TOKENS = 2048, 32768  # read at once, of papers of about the same length
KEPT = 500_000  # papers whose tokens are kept, so that each is cut once


class Collator:
    """Makes the inputs of a step."""

    def __init__(self, parts: Parts, examples: Examples, *, on_cpu: bool) -> None:
        import torch

        self._torch: Any = torch
        config = examples.config
        tokens = min(config.train_tokens or parts.spec.max_tokens, parts.spec.max_tokens)
        self._parts = Parts(parts.model, parts.tokenizer, replace(parts.spec, max_tokens=tokens))
        self._examples = examples
        self._budget = CPU_TOKENS if on_cpu else GPU_TOKENS
        self._known: dict[int, list[int]] = {}
        self._memory = None
        if config.loss is Loss.MEMORY:
            self._memory = Memory(examples.data, examples.positives, examples.learners, config)

    def __call__(self, drawn: Sequence[Rows]) -> dict[str, Any]:
        """Return what the model's forward takes.

        Args:
            drawn: Examples: query, positive, negatives.
        """
        rows, places = np.unique(np.stack(drawn), return_inverse=True)
        places = places.reshape(len(drawn), -1)
        chunks, at = self._read(rows)
        inputs: dict[str, Any] = {"chunks": chunks}
        if self._memory:
            return inputs | self._compared(self._memory, rows, at)
        if self._examples.config.loss is Loss.TRIPLET:
            return inputs | {"triples": self._torch.from_numpy(at[places])}
        papers, columns = np.unique(places[:, 1:], return_inverse=True)
        columns = columns.reshape(len(drawn), -1)
        allowed = self._allowed(rows[places[:, 0]], rows[papers], columns[:, 0])
        return inputs | {
            "queries": self._torch.from_numpy(at[places[:, 0]]),
            "papers": self._torch.from_numpy(at[papers]),
            "targets": self._torch.from_numpy(columns[:, 0]),
            "allowed": self._torch.from_numpy(allowed),
        }

    def _compared(self, memory: Memory, rows: Rows, at: Any) -> dict[str, Any]:
        order = np.argsort(at)  # the vectors come in the order of reading
        compared = memory.comparison(rows)
        arrays = {field.name: getattr(compared, field.name) for field in fields(compared)}
        arrays["live"] = memory.places(rows[order])
        return {name: self._torch.from_numpy(array) for name, array in arrays.items()}

    def _allowed(self, queries: Rows, papers: Rows, targets: Any) -> Flags:
        """Return which papers stand against each query, shape (queries, papers): its target, and honest negatives.

        Out are its other positives, whatever else it cites, the query itself, and papers of a later year.
        """
        asked, given = queries[:, None], papers[None, :]
        allowed = ~self._examples.forbidden.holds(asked, given)
        allowed &= self._examples.data.eligible(asked, given)
        allowed[np.arange(len(queries)), targets] = True
        return allowed

    def _read(self, rows: Rows) -> tuple[list[dict[str, Any]], Any]:
        """Return the papers in chunks of about the same length, and at which place each is read."""
        tokens = self._tokens(rows.tolist())
        groups = batches([len(ids) for ids in tokens], self._budget)
        at = np.empty(len(rows), np.int64)
        at[np.concatenate([np.array(group) for group in groups])] = np.arange(len(rows))
        parts = self._parts
        chunks: list[dict[str, Any]] = []
        for group in groups:
            ids, mask = padded(
                [tokens[i] for i in group], parts.tokenizer.pad_token_id, parts.spec.max_tokens
            )
            chunks.append(
                {
                    "input_ids": self._torch.from_numpy(ids),
                    "attention_mask": self._torch.from_numpy(mask),
                }
            )
        return chunks, at

    def _tokens(self, rows: list[int]) -> list[list[int]]:
        unknown = [row for row in rows if row not in self._known]
        if len(self._known) > KEPT:
            self._known, unknown = {}, rows
        papers = self._examples.data.index.papers.at(unknown)
        parts = self._parts
        texts = [encoder_text(papers[r], parts.spec.form, parts.separator) for r in unknown]
        self._known.update(zip(unknown, tokens_of(parts, texts), strict=True))
        return [self._known[row] for row in rows]
