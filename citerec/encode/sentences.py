"""Papers read a sentence at a time: by a model that was made for sentences."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper, Query

Vectors = npt.NDArray[np.float32]

END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
SHORT = re.compile(  # what ends in a full stop and ends no sentence
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|etc|resp|approx|figs?|eqs?|sec|refs?|dr|prof|mr)|\b[A-Z])\.$",
    re.IGNORECASE,
)
LONGEST = 10  # characters that `SHORT` matches, and more


def sentences(text: str) -> list[str]:
    """Cut a text into sentences: at a full stop, question or exclamation mark before a capital or a digit.

    "et al.", "e.g." and single letters end none.
    """
    found: list[str] = []
    first = 0
    for end in END.finditer(text):
        # Its last letters alone: a text of nothing but abbreviations would take quadratic time.
        if not SHORT.search(text, max(first, end.start() - LONGEST), end.start()):
            found.append(text[first : end.end()].strip())
            first = end.end()
    return [sentence for sentence in (*found, text[first:].strip()) if sentence]


def pieces_of(
    papers: Sequence[Paper | Query], form: EncoderForm
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the title and the sentences of each paper as one list, and whose each piece is."""
    pieces: list[str] = []
    owners: list[int] = []
    for number, paper in enumerate(papers):
        after = encoder_text(paper, form, "\0").split("\0")[1:]
        mine = [paper.title, *(sentence for part in after for sentence in sentences(part))]
        pieces.extend(mine)
        owners.extend([number] * len(mine))
    return pieces, np.array(owners, np.int64)


def summed(vectors: Vectors, owners: npt.NDArray[np.int64], papers: int) -> Vectors:
    """Sum the vectors of each paper's pieces and scale the sum to unit length.

    Args:
        vectors: Of the pieces, shape (pieces, dim).
        owners: The paper of each piece, shape (pieces,).
        papers: How many.

    Source: Cohan et al., ACL 2020, appendix A, https://arxiv.org/abs/2004.07180.
    """
    sums = np.zeros((papers, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    return unit(sums)


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to unit length; 0 stays 0.

    Args:
        vectors: Shape (n, dim).
    """
    lengths = np.sqrt(np.square(vectors, dtype=np.float32).sum(1, keepdims=True))
    return (vectors / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
