"""Doc2Vec: a vector is inferred for each text, as gensim's DBOW does it."""

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
    """Hash a text alike in every process, as Python's own does not."""
    return crc32(text.encode())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doc2VecWords:
    """Infers a text's vector against fixed output vectors of words (Le and Mikolov, ICML 2014).

    Chance is drawn from the text itself: its vector depends on no other text, order or batch.
    """

    words: tuple[str, ...]
    counts: npt.NDArray[np.int64]  # of each word in training, shape (words,)
    outputs: Vectors  # the output layer of negative sampling, shape (words, dim)
    negative: int = 5  # words drawn against each
    sample: float = 0.0  # above which share a word is left out at times; 0 for never
    learning_rate: float = 0.025  # falls evenly
    least_rate: float = 0.0001  # to this one
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
        """By cosine, as gensim compares them."""
        return Similarity.COSINE

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Infer the vector of each paper, shape (len(papers), dim): by chance where no word is known."""
        inferred = np.zeros((len(papers), self.dim), np.float32)
        with self._turn:
            for row, paper in enumerate(papers):
                inferred[row] = self._inferred(encoder_text(paper, EncoderForm.TITLE_ABSTRACT, " "))
        return directions(inferred, papers)

    def _inferred(self, text: str) -> Vectors:
        """Infer one vector; gensim's own way begins with a hash that differs from process to process."""
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
        """Make a model of gensim that infers as the one that was trained."""
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
        """Return words and settings, and the arrays."""
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
        """Read what `parts` returned.

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
