"""The encoder interface of word-vector models."""

from collections.abc import Sequence

import numpy as np

from citerec.cache import sha256_of_files
from citerec.encode.config import EncodeConfig
from citerec.encode.source import ModelSource
from citerec.encode.spec import EncoderSpec, Fingerprint, Pooling, Separator
from citerec.lab.words.folder import NAME, WEIGHTS, read_words
from citerec.lab.words.model import Vectors, WordModel
from citerec.types import Paper, Progress, Query

BLOCK = 512  # papers between two reports of progress
WHOLE = 2**31 - 1  # tokens: a text is read to its end


class WordEncoder:
    """Encodes papers and drafts by their words; it runs on the CPU with any `config`."""

    def __init__(
        self, model: WordModel, fingerprint: Fingerprint, config: EncodeConfig | None = None
    ) -> None:
        """Create an encoder of an open model; the index records `fingerprint`."""
        self.model = model
        self.fingerprint = fingerprint
        self.config = config or EncodeConfig()

    @property
    def spec(self) -> EncoderSpec:
        """How the model reads and compares."""
        return self.fingerprint.spec

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.model.dim

    @property
    def precision(self) -> str:
        """The data type of the computations."""
        return "float32"

    def encode(self, papers: Sequence[Paper | Query], progress: Progress | None = None) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim), independent of the other papers.

        Args:
            papers: Papers or drafts.
            progress: Receives the number of encoded papers.
        """
        vectors = np.empty((len(papers), self.dim), np.float32)
        for first in range(0, len(papers), BLOCK):
            block = papers[first : first + BLOCK]
            vectors[first : first + len(block)] = self.model.vectors(block)
            if progress:
                progress("encoding", first + len(block), len(papers))
        return vectors


def open_words(source: ModelSource, config: EncodeConfig | None = None) -> WordEncoder:
    """Open the word-vector model in a folder.

    Raises:
        ModelError: If it cannot be read.
        MissingExtraError: If it needs an extra that is not installed.
    """
    model = read_words(source.folder)
    fingerprint = Fingerprint(
        name=source.name,
        source=source.location,
        revision=source.revision,
        weights=sha256_of_files([source.folder / WEIGHTS]),
        tokenizer=sha256_of_files([source.folder / NAME]),
        dim=model.dim,
        spec=spec_of(model),
    )
    return WordEncoder(model, fingerprint, config)


def spec_of(model: WordModel) -> EncoderSpec:
    """Return how a word-vector model reads and compares, as the specification of an encoder."""
    return EncoderSpec(
        pooling=Pooling.MEAN,
        max_tokens=WHOLE,
        separator=Separator.SPACE,
        similarity=model.similarity,
    )
