"""Converts the examples of an update to model inputs: texts are tokenized once, pairs of similar length batched."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.corpus.papers import Papers
from citerec.index.tokens import TokenStore
from citerec.rerank.model import RerankerParts
from citerec.rerank.pair import pair
from citerec.text import pair_text
from citerec.train.chunks import Chunk, chunked
from citerec.train.joined import JoinedPapers
from citerec.train.reranker.candidates import LabelledCandidates
from citerec.train.reranker.examples import MISSING, Places

CPU_TOKENS, GPU_TOKENS = 2048, 65536  # per forward pass, of pairs of similar length
CPU_PAIRS, GPU_PAIRS = 32, 256  # per backward pass
SHORT = 128, 64  # tokens of the two sides of a short pair
AT_ONCE = 2048  # texts tokenized at once

Tokens = npt.NDArray[np.int32]


class Texts:
    """The tokens of papers: tokenized once, or from the token store of the index."""

    def __init__(
        self, parts: RerankerParts, papers: Papers | JoinedPapers, stored: TokenStore | None = None
    ) -> None:
        """Create an empty cache of tokens.

        Args:
            parts: The model with its tokenizer.
            papers: The papers.
            stored: The tokens of all papers, if the index has those of this tokenizer.
        """
        self._parts, self._papers, self._stored = parts, papers, stored
        self._most = max(parts.specials.room(parts.spec))
        self._labelled: dict[int, Tokens] = {}

    def __getitem__(self, row: int) -> Tokens:
        if self._stored:
            return self._stored.paper(row)[: self._most].astype(np.int32)
        if row not in self._labelled:
            self.read([row])
        return self._labelled[row]

    def read(self, rows: Sequence[int]) -> None:
        """Tokenize the papers at some rows, unless they are cached."""
        if self._stored:
            return
        unknown = sorted(set(rows) - self._labelled.keys())
        for start in range(0, len(unknown), AT_ONCE):
            block = unknown[start : start + AT_ONCE]
            papers = self._papers.at(block)
            tokens = self._parts.cut([pair_text(papers[row]) for row in block])
            self._labelled.update(
                (row, np.array(ids[: self._most], np.int32))
                for row, ids in zip(block, tokens, strict=True)
            )


class PairReader:
    """Converts pairs of papers to model inputs."""

    def __init__(self, parts: RerankerParts, texts: Texts, *, on_cpu: bool) -> None:
        self.parts, self._texts = parts, texts
        self._budget = CPU_TOKENS if on_cpu else GPU_TOKENS
        self._on_cpu = on_cpu
        self.pairs_at_once = CPU_PAIRS if on_cpu else GPU_PAIRS
        query, candidate = SHORT
        spec = parts.spec
        self._short = replace(
            spec,
            query_tokens=min(query, spec.query_tokens),
            candidate_tokens=min(candidate, spec.candidate_tokens),
        )

    def lengths(self, queries: Sequence[int], papers: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the number of tokens of each pair of rows, shape (pairs,)."""
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
        self, queries: Sequence[int], papers: Sequence[int], *, short: bool = False
    ) -> tuple[list[Chunk], npt.NDArray[np.int64]]:
        """Return the pairs of rows in chunks of similar length, and the position of each pair in the reading order.

        Args:
            queries: The rows of the queries.
            papers: The rows of the candidates.
            short: Whether to cut the pairs to `SHORT` tokens.
        """
        self._texts.read([*queries, *papers])
        spec = self._short if short else self.parts.spec
        pairs = [
            pair(
                self._texts[q].tolist(),
                self._texts[p].tolist(),
                self.parts.specials,
                spec,
            )
            for q, p in zip(queries, papers, strict=True)
        ]
        return chunked(
            [ids for ids, _ in pairs],
            self._budget,
            padding=self.parts.tokenizer.pad_token_id,
            most=self.parts.spec.tokens,
            firsts=[first for _, first in pairs] if self.parts.typed else None,
            even=self._on_cpu,
        )


class Steps:
    """Splits the examples of an update into steps of pairs that fit a device."""

    def __init__(
        self, reader: PairReader, labelled: LabelledCandidates, micro: int, short_share: float = 0.0
    ) -> None:
        """Read the pairs of some candidates.

        Args:
            reader: Reads them.
            labelled: The candidates.
            micro: Pairs in a step; 0 for what suits the device.
            short_share: Share of the updates that read short pairs.
        """
        import torch

        self._torch: Any = torch
        self._reader, self._labelled = reader, labelled
        self._query_rows, self._paper_rows = labelled.query_rows, labelled.candidates.lists.indices
        self.micro = micro or reader.pairs_at_once
        self._short_share = short_share

    def lengths(self, places: Places) -> npt.NDArray[np.int64]:
        """Return the number of tokens of the pairs at some places; 0 where a pair is missing."""
        present = places != MISSING
        entries = places[present]
        lengths = np.zeros(len(places), np.int64)
        lengths[present] = self._reader.lengths(
            self._query_rows[entries].tolist(), self._paper_rows[entries].tolist()
        )
        return lengths

    def __call__(self, drawn: Places) -> list[Mapping[str, Any]]:
        """Return the inputs of each step; a step has at most `micro` pairs, but at least one list.

        Args:
            drawn: Examples, shape (examples, pairs): places of the candidates.
        """
        longest = self.lengths(drawn.ravel()).reshape(drawn.shape).max(1)
        drawn = drawn[np.argsort(-longest, kind="stable")]
        count = max(self.micro // drawn.shape[1], 1)
        short = bool(np.random.default_rng(np.sort(drawn[:, 0])).random() < self._short_share)
        return [self._step(drawn[i : i + count], short=short) for i in range(0, len(drawn), count)]

    def _step(self, drawn: Places, *, short: bool) -> Mapping[str, Any]:
        present = drawn != MISSING
        entries = drawn[present]
        chunks, places = self._reader.read(
            self._query_rows[entries].tolist(), self._paper_rows[entries].tolist(), short=short
        )
        positions = np.zeros(drawn.shape, np.int64)
        positions[present] = places
        arrays = {
            "at": positions,
            "there": present,
            "cited": (self._labelled.cited[drawn] & present).astype(np.float32),
            "teacher": self._labelled.teacher[drawn],
            "raw": self._labelled.raw[drawn],
            "first_stage": self._labelled.first_stage[drawn],
        }
        return {"chunks": chunks} | {n: self._torch.from_numpy(a) for n, a in arrays.items()}
