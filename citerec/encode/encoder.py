"""Runs an encoder: papers in, vectors out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from citerec.encode.config import EncodeConfig
from citerec.encode.light import LightParts, NumpyBackend
from citerec.encode.spec import EncoderSpec, Fingerprint, Reads, Similarity
from citerec.text import encoder_text
from citerec.types import Log, Paper, Progress, Query

if TYPE_CHECKING:
    from citerec.encode.backend import Runner
    from citerec.encode.model import Parts

Vectors = npt.NDArray[np.float32]
_Run = Callable[[list[list[int]]], Iterator[tuple[list[int], Vectors]]]  # see `Runner.run`


class Encoder(Protocol):
    """Turns papers and drafts into vectors; several threads may use it."""

    @property
    def fingerprint(self) -> Fingerprint:
        """What an index records of the encoder."""
        ...

    @property
    def config(self) -> EncodeConfig:
        """How it is run."""
        ...

    @property
    def spec(self) -> EncoderSpec:
        """How it reads and pools text."""
        ...

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        ...

    @property
    def precision(self) -> str:
        """The number format of its computation: float32, bfloat16 or float16."""
        ...

    def encode(self, papers: Sequence[Paper | Query], progress: Progress | None = None) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine.

        Args:
            papers: Papers, or drafts.
            progress: Receives how many papers are done.
        """
        ...


class TransformerEncoder:
    """An encoder that is a transformer."""

    def __init__(
        self,
        parts: "Parts | LightParts",
        fingerprint: Fingerprint,
        config: EncodeConfig | None = None,
        log: Log | None = None,
    ) -> None:
        """Make an encoder of an open model; the model may be moved to another device and precision.

        Args:
            parts: The model; NumPy runs one that was opened without torch.
            fingerprint: What an index records of it.
            config: How to run it.
            log: Receives a message if the device has too little memory for a batch.

        Raises:
            ConfigError: If there is no such device.
            MissingExtraError: If OpenVINO is requested but not installed.
        """
        self.parts = parts
        self.fingerprint = fingerprint
        self.config = config or EncodeConfig()
        self._by_sentence = parts.spec.reads is Reads.SENTENCES
        # The vectors of sentences are summed as the model gives them; the sum is scaled to unit length.
        plain = replace(parts.spec, similarity=Similarity.L2) if self._by_sentence else parts.spec
        self._backend = _runner(replace(parts, spec=plain), self.config, log)
        # NumPy's computations share nothing, so they need not take turns.
        self._turn: AbstractContextManager[Any] = nullcontext() if self.overlaps else Lock()

    @property
    def spec(self) -> EncoderSpec:
        """How it reads and pools text."""
        return self.parts.spec

    @property
    def dim(self) -> int:
        """The dimension of a vector."""
        return self.parts.dim

    @property
    def precision(self) -> str:
        """The number format of its computation: float32, bfloat16 or float16."""
        return self._backend.precision

    def encode(self, papers: Sequence[Paper | Query], progress: Progress | None = None) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); of unit length if compared by cosine.

        The same papers in the same order give the same vectors, bit by bit, on the same machine. In another batch a
        paper's vector may differ in the last bits of `precision`.

        Args:
            papers: Papers, or drafts.
            progress: Receives how many papers are done.
        """
        if self._by_sentence:
            from citerec.encode.sentences import pieces_of, summed

            pieces, owners = pieces_of(papers, self.spec.form)
            return summed(self._encode(pieces, progress), owners, len(papers))
        return self._encode(self._texts(papers), progress)

    def encode_together(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return what `encode` returns, but for rounding; for short texts that always come together NumPy is faster."""
        if self._by_sentence or not papers or not isinstance(self._backend, NumpyBackend):
            return self.encode(papers)
        return self._encode(self._texts(papers), None, self._backend.run_together)

    @property
    def overlaps(self) -> bool:
        """Whether two threads that encode at the same time do not wait for each other, as with NumPy."""
        return isinstance(self._backend, NumpyBackend)

    def _texts(self, papers: Sequence[Paper | Query]) -> list[str]:
        return [encoder_text(p, self.spec.form, self.parts.separator) for p in papers]

    def _encode(
        self, texts: Sequence[str], progress: Progress | None, run: _Run | None = None
    ) -> Vectors:
        vectors = np.empty((len(texts), self.dim), np.float32)
        done = 0
        with self._turn:
            for rows, found in (run or self._backend.run)(self.parts.tokens(texts)):
                vectors[rows] = found
                done += len(rows)
                if progress:
                    progress("encoding", done, len(texts))
        return vectors


def _runner(parts: "Parts | LightParts", config: EncodeConfig, log: Log | None) -> "Runner":
    if isinstance(parts, LightParts):
        return NumpyBackend(parts, config.thread_count)
    from citerec.encode.backend import open_backend
    from citerec.encode.model import encoder_net

    return open_backend(encoder_net(parts), config, log)
