"""Splits papers into sentences, for encoders that read one sentence at a time."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from citerec.text import EncoderForm, encoder_text
from citerec.types import Paper, Query

Vectors = npt.NDArray[np.float32]

END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
SHORT = re.compile(  # abbreviations, whose full stop does not end a sentence
    r"(?:\b(?:e\.g|i\.e|cf|vs|al|etc|resp|approx|figs?|eqs?|sec|refs?|dr|prof|mr)|\b[A-Z])\.$",
    re.IGNORECASE,
)
LONGEST = 10  # more characters than `SHORT` can match


def sentences(text: str) -> list[str]:
    """Split a text into sentences: at a full stop, question mark or exclamation mark before a capital or a digit.

    "et al.", "e.g." and single letters do not end a sentence.
    """
    complete: list[str] = []
    first = 0
    for end in END.finditer(text):
        # Only the last characters are searched: otherwise a text of abbreviations would take quadratic time.
        if not SHORT.search(text, max(first, end.start() - LONGEST), end.start()):
            complete.append(text[first : end.end()].strip())
            first = end.end()
    return [sentence for sentence in (*complete, text[first:].strip()) if sentence]


def pieces_of(
    papers: Sequence[Paper | Query], form: EncoderForm
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return title and sentences of all papers as one list, and the paper of each piece, shape (pieces,)."""
    pieces: list[str] = []
    owners: list[int] = []
    for number, paper in enumerate(papers):
        abstract_parts = encoder_text(paper, form, "\0").split("\0")[1:]
        paper_pieces = [
            paper.title,
            *(sentence for part in abstract_parts for sentence in sentences(part)),
        ]
        pieces.extend(paper_pieces)
        owners.extend([number] * len(paper_pieces))
    return pieces, np.array(owners, np.int64)


def summed(vectors: Vectors, owners: npt.NDArray[np.int64], papers: int) -> Vectors:
    """Sum the vectors of each paper's pieces and scale the sums to unit length, shape (papers, dim).

    Args:
        vectors: The vectors of the pieces, shape (pieces, dim).
        owners: The paper of each piece, shape (pieces,).
        papers: The number of papers.

    Source: Cohan et al., ACL 2020, appendix A, https://arxiv.org/abs/2004.07180.
    """
    sums = np.zeros((papers, vectors.shape[1]), np.float32)
    np.add.at(sums, owners, vectors)
    return unit(sums)


def unit(vectors: Vectors) -> Vectors:
    """Scale vectors to unit length; a zero vector stays zero.

    Args:
        vectors: Shape (n, dim).
    """
    lengths = np.sqrt(np.square(vectors, dtype=np.float32).sum(1, keepdims=True))
    return (vectors / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
