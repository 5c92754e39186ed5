"""Doc2Vec: infers a vector for each text, as DBOW of gensim."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.errors import extra
from citerec.lab.words.model import Stated, Tensors, Vectors, directions
from citerec.lab.words.tokens import number_of, words_of
from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper, Query


def stable_hash(text: str) -> int:
    """Hash a text; the result is the same in every process, unlike that of Python's `hash`."""
    return crc32(text.encode())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doc2VecWords:
    """Infers the vector of a text against fixed output vectors of words (Le and Mikolov, ICML 2014).

    The random seed is made from the text, so its vector does not depend on other texts, order or batch.
    """

    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]  # of each word in training, shape (words,)
    outputs: Vectors  # the output layer of negative sampling, shape (words, dim)
    negative: int = 5  # words drawn against each
    sample: float = 0.0  # frequency above which words are subsampled; 0 for none
    learning_rate: float = 0.025  # falls linearly
    least_rate: float = 0.0001  # the final rate
    epochs: int = 50
    _gensim: Any = field(init=False, repr=False)
    _turn: Lock = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_gensim", self._rebuilt())
        object.__setattr__(self, "_turn", Lock())

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.outputs.shape[1]

    @property
    def similarity(self) -> Similarity:
        """Cosine, as in gensim."""
        return Similarity.COSINE

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Infer the vector of each paper, shape (len(papers), dim); random if no word is known."""
        inferred = np.zeros((len(papers), self.dim), np.float32)
        with self._turn:
            for row, paper in enumerate(papers):
                inferred[row] = self._inferred(encoder_text(paper, EncoderForm.TITLE_ABSTRACT, " "))
        return directions(inferred, papers)

    def _inferred(self, text: str) -> Vectors:
        """Infer one vector; gensim's own method starts from a hash that differs between processes."""
        from gensim.models.doc2vec import train_document_dbow

        words = [word for word in words_of(text) if word in self._gensim.wv.key_to_index]
        if not words:
            return np.zeros(self.dim, np.float32)
        chance = np.random.RandomState(number_of(*words) % 2**32)
        self._gensim.random = chance  # draws the negatives
        vector = ((chance.random_sample((1, self.dim)) - 0.5) / self.dim).astype(np.float32)
        work, lock = np.zeros(self.dim, np.float32), np.ones(1, np.float32)
        for rate in np.linspace(self.learning_rate, self.least_rate, self.epochs).tolist():
            train_document_dbow(
                self._gensim,
                words,
                [0],
                rate,
                work,
                learn_words=False,
                learn_hidden=False,
                doctag_vectors=vector,
                doctags_lockf=lock,
            )
        return vector[0]

    def _rebuilt(self) -> Any:
        """Build a gensim model that infers like the trained one."""
        with extra("words"):
            from gensim.models.doc2vec import Doc2Vec
        model: Any = Doc2Vec(
            vector_size=self.dim,
            dm=0,
            dbow_words=0,
            min_count=1,
            negative=self.negative,
            sample=self.sample,
            workers=1,
            hashfxn=stable_hash,
        )
        counts = dict(zip(self.words, self.counts.tolist(), strict=True))
        model.build_vocab_from_freq(counts, corpus_count=1)
        places = [model.wv.key_to_index[word] for word in self.words]
        model.syn1neg[places] = self.outputs
        return model

    def parts(self) -> tuple[Stated, Tensors]:
        """Return words and settings as JSON values, and the arrays."""
        stated = {
            "words": list(self.words),
            "negative": self.negative,
            "sample": self.sample,
            "learning_rate": self.learning_rate,
            "least_rate": self.least_rate,
            "epochs": self.epochs,
        }
        return stated, {"counts": self.counts, "outputs": self.outputs}

    @classmethod
    def of_parts(cls, stated: Stated, tensors: Tensors) -> Self:
        """Read the output of `parts`.

        Raises:
            MissingExtraError: If gensim is not installed.
        """
        return cls(
            words=tuple(stated["words"]),
            counts=tensors["counts"],
            outputs=tensors["outputs"],
            negative=int(stated["negative"]),
            sample=float(stated["sample"]),
            learning_rate=float(stated["learning_rate"]),
            least_rate=float(stated["least_rate"]),
            epochs=int(stated["epochs"]),
        )
