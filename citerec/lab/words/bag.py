"""Weighted sums of word vectors: TF-IDF with SVD, fastText-sum, SIF, and the embedding of Citeomatic."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.encode.spec import Similarity
from citerec.lab.words.model import Stated, Tensors, Vectors, directions, unit
from citerec.lab.words.tokens import counted
from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper, Query

Numbers = npt.NDArray[np.float32]


class Tf(StrEnum):
    """The term frequency of a word that occurs n times in a text."""

    PLAIN = "plain"  # n
    SUBLINEAR = "sublinear"  # 1 + ln n
    BINARY = "binary"  # 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bag:
    """Sums the weighted vectors of a paper's words, and scales the sum to unit length.

    With `shares`, title and abstract are summed separately, scaled to unit length, and added with their shares
    (Bhagavatula et al. 2018, section 3.1, https://arxiv.org/abs/1802.08301).
    """

    words: tuple[str, ...]
    word_vectors: Vectors  # shape (words, dim)
    weights: Numbers  # of each word, shape (words,)
    tf: Tf = Tf.PLAIN
    average: bool = False  # divided by the number of known words
    component: Numbers | None = None  # a unit vector that is projected out, shape (dim,)
    shares: tuple[float, float] | None = None  # of title and abstract; None: one text
    _numbers: dict[str, int] = field(init=False, repr=False)
    _weighted: Vectors = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not len(self.words) == len(self.word_vectors) == len(self.weights):
            raise ValueError(
                f"{len(self.words)} words, {len(self.word_vectors)} vectors and {len(self.weights)} weights"
            )
        numbers = {word: number for number, word in enumerate(self.words)}
        weighted = np.ascontiguousarray(self.word_vectors * self.weights[:, None], np.float32)
        object.__setattr__(self, "_numbers", numbers)
        object.__setattr__(self, "_weighted", weighted)

    @property
    def dim(self) -> int:
        """The length of a vector."""
        return self.word_vectors.shape[1]

    @property
    def similarity(self) -> Similarity:
        """Cosine, which is independent of the length of a text."""
        return Similarity.COSINE

    def vectors(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the vector of each paper, shape (len(papers), dim); random if no word is known."""
        if self.shares is None:
            return directions(self.sums(papers), papers)
        title, abstract = self.shares
        titles = unit(self._sums([paper.title for paper in papers]))
        abstracts = unit(self._sums([paper.abstract for paper in papers]))
        return directions((title * titles + abstract * abstracts).astype(np.float32), papers)

    def sums(self, papers: Sequence[Paper | Query]) -> Vectors:
        """Return the sum of each paper, title and abstract as one text, without scaling, shape (len(papers), dim)."""
        return self._sums([encoder_text(p, EncoderForm.TITLE_ABSTRACT, " ") for p in papers])

    def _sums(self, texts: Sequence[str]) -> Vectors:
        counts = counted(texts, self._numbers)
        known = counts.sum(1)
        summed = np.asarray(tf_of(counts, self.tf) @ self._weighted, np.float32)
        if self.average:
            summed /= np.maximum(known, 1)[:, None].astype(np.float32)
        return without(summed, self.component)

    def parts(self) -> tuple[Stated, Tensors]:
        """Return words and settings as JSON values, and the arrays."""
        stated = {
            "words": list(self.words),
            "tf": str(self.tf),
            "average": self.average,
            "shares": None if self.shares is None else list(self.shares),
        }
        arrays = {"vectors": self.word_vectors, "weights": self.weights}
        optional = {} if self.component is None else {"component": self.component}
        return stated, arrays | optional

    @classmethod
    def of_parts(cls, stated: Stated, tensors: Tensors) -> Self:
        """Read the output of `parts`."""
        shares = stated["shares"]
        return cls(
            words=tuple(stated["words"]),
            word_vectors=tensors["vectors"],
            weights=tensors["weights"],
            tf=Tf(stated["tf"]),
            average=bool(stated["average"]),
            component=tensors.get("component"),
            shares=None if shares is None else (float(shares[0]), float(shares[1])),
        )


def tf_of(counts: Any, tf: Tf) -> Any:
    """Return the term frequencies of a sparse matrix of counts, which is not changed."""
    if tf is Tf.PLAIN:
        return counts
    changed = counts.copy()
    changed.data[:] = 1 + np.log(counts.data) if tf is Tf.SUBLINEAR else 1
    return changed


def without(vectors: Vectors, component: Numbers | None) -> Vectors:
    """Subtract from each vector its projection on a unit vector, if there is one.

    Source: Arora et al., ICLR 2017, algorithm 1, https://openreview.net/forum?id=SyK00v5xx.
    """
    if component is None:
        return vectors
    along = (vectors * component).sum(1, keepdims=True)
    return (vectors - along * component).astype(np.float32)
