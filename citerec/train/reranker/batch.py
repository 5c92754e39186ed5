"""From the examples of an update to what the model reads: each text is cut once, pairs of a length stand together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import Papers
from citerec.encode.batching import batches, padded, token_types
from citerec.index.tokens import TokenStore
from citerec.rerank.model import RerankerParts
from citerec.rerank.pair import pair
from citerec.text import pair_text
from citerec.train.reranker.examples import MISSING, Places
from citerec.train.reranker.found import Labelled

CPU_TOKENS, GPU_TOKENS = 2048, 65536  # read at once, of pairs of about the same length
CPU_PAIRS, GPU_PAIRS = 32, 256  # whose gradients are taken at once
AT_ONCE = 2048  # texts cut at once

Tokens = npt.NDArray[np.int32]
Chunk = dict[str, Any]  # what the model's forward takes


class Texts:
    """The tokens of papers, each cut once, or as the index keeps them."""

    def __init__(
        self, parts: RerankerParts, papers: Papers, kept: TokenStore | None = None
    ) -> None:
        """Make it.

        Args:
            parts: Whose tokenizer cuts.
            papers: What is cut.
            kept: The tokens of all papers, if the index has those of this tokenizer.
        """
        self._parts, self._papers, self._kept = parts, papers, kept
        self._most = max(parts.specials.room(parts.spec))
        self._known: dict[int, Tokens] = {}

    def __getitem__(self, row: int) -> Tokens:
        if self._kept:
            return self._kept.paper(row)[: self._most].astype(np.int32)
        if row not in self._known:
            self.read([row])
        return self._known[row]

    def read(self, rows: Sequence[int]) -> None:
        """Cut the papers at some rows."""
        if self._kept:
            return
        unknown = sorted(set(rows) - self._known.keys())
        for start in range(0, len(unknown), AT_ONCE):
            mine = unknown[start : start + AT_ONCE]
            papers = self._papers.at(mine)
            cut = self._parts.cut([pair_text(papers[row]) for row in mine])
            self._known.update(
                (row, np.array(ids[: self._most], np.int32))
                for row, ids in zip(mine, cut, strict=True)
            )


class Reader:
    """Makes pairs of papers into what the model reads."""

    def __init__(self, parts: RerankerParts, texts: Texts, *, on_cpu: bool) -> None:
        import torch

        self._torch: Any = torch
        self.parts, self._texts = parts, texts
        self._budget = CPU_TOKENS if on_cpu else GPU_TOKENS
        self.pairs_at_once = CPU_PAIRS if on_cpu else GPU_PAIRS

    def lengths(self, queries: Sequence[int], papers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return how many tokens pairs of rows have."""
        self._texts.read([*queries, *papers])
        query, candidate = self.parts.specials.room(self.parts.spec)
        return np.array(
            [
                min(len(self._texts[q]), query) + min(len(self._texts[p]), candidate)
                for q, p in zip(queries, papers, strict=True)
            ],
            np.int64,
        )

    def read(
        self, queries: Sequence[int], papers: Sequence[int]
    ) -> tuple[list[Chunk], npt.NDArray[np.int64]]:
        """Return pairs of rows in chunks of about the same length, and at which place each pair is read."""
        self._texts.read([*queries, *papers])
        pairs = [
            pair(
                self._texts[q].tolist(),
                self._texts[p].tolist(),
                self.parts.specials,
                self.parts.spec,
            )
            for q, p in zip(queries, papers, strict=True)
        ]
        groups = batches([len(ids) for ids, _ in pairs], self._budget)
        at = np.empty(len(pairs), np.int64)
        at[np.concatenate([np.array(group) for group in groups])] = np.arange(len(pairs))
        return [self._chunk([pairs[i] for i in group]) for group in groups], at

    def _chunk(self, pairs: Sequence[tuple[list[int], int]]) -> Chunk:
        tokens = [ids for ids, _ in pairs]
        padding = self.parts.tokenizer.pad_token_id
        ids, mask = padded(tokens, padding, self.parts.spec.tokens)
        arrays = {"input_ids": ids, "attention_mask": mask}
        if self.parts.typed:
            firsts = [first for _, first in pairs]
            arrays["token_type_ids"] = token_types(tokens, firsts, ids.shape[1])
        return {name: self._torch.from_numpy(array) for name, array in arrays.items()}


class Steps:
    """Cuts the examples of an update into steps: lists of which a device reads all pairs at once."""

    def __init__(self, reader: Reader, known: Labelled, micro: int) -> None:
        self._reader, self._known = reader, known
        self._torch: Any = reader._torch  # pyright: ignore[reportPrivateUsage]
        self._asked, self._given = known.query_rows, known.found.lists.indices
        self.micro = micro or reader.pairs_at_once

    def lengths(self, places: Places) -> npt.NDArray[np.int64]:
        """Return how many tokens the pairs at some places have; 0 where one is missing."""
        there = places != MISSING
        mine = places[there]
        lengths = np.zeros(len(places), np.int64)
        lengths[there] = self._reader.lengths(
            self._asked[mine].tolist(), self._given[mine].tolist()
        )
        return lengths

    def __call__(self, drawn: Places) -> list[Mapping[str, Any]]:
        """Return what the net takes, step by step; each holds at most `micro` pairs, but at least one list.

        Args:
            drawn: Examples, shape (examples, pairs): places of the candidates.
        """
        longest = self.lengths(drawn.ravel()).reshape(drawn.shape).max(1)
        drawn = drawn[np.argsort(-longest, kind="stable")]
        count = max(self.micro // drawn.shape[1], 1)
        return [self._step(drawn[i : i + count]) for i in range(0, len(drawn), count)]

    def _step(self, drawn: Places) -> Mapping[str, Any]:
        there = drawn != MISSING
        mine = drawn[there]
        chunks, places = self._reader.read(self._asked[mine].tolist(), self._given[mine].tolist())
        at = np.zeros(drawn.shape, np.int64)
        at[there] = places
        arrays = {
            "at": at,
            "there": there,
            "cited": (self._known.cited[drawn] & there).astype(np.float32),
            "teacher": self._known.teacher[drawn],
            "raw": self._known.raw[drawn],
        }
        return {"chunks": chunks} | {n: self._torch.from_numpy(a) for n, a in arrays.items()}
