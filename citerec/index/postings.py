"""The postings of an index, memory-mapped: searches read them instead of Lucene's index, from which they come.

They are in `postings/`:

    terms.npy    uint8: the terms, UTF-8, one after the other, rising
    ends.npy     int64, shape (terms + 1,): where each term begins
    hashes.npy   uint32, shape (terms,): crc32 of the terms, rising
    order.npy    int32, shape (terms,): the number of the term of each hash
    indptr.npy   int64, shape (terms + 1,): where the postings of each term begin
    docs.npy     int32, shape (postings,): the Lucene documents of each term, rising
    freqs.npy    uint8, or int32 if a frequency needs it, shape (postings,): how often each holds the term
    norms.npy    uint8, shape (Lucene documents,): the number of tokens of each document, as Lucene rounds it
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from citerec.index.lucene import LucenePostings
from citerec.inputs import check_ends, open_array

FOLDER = "postings"
NO_TERM = -1
_KEPT = 200_000  # terms whose numbers are kept in memory
_AT_ONCE = 2**22  # postings that are in memory at once

Ints = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The postings of an index; several threads may read them."""

    tokens: int  # of all documents
    with_terms: int  # documents that have a term
    hashes: npt.NDArray[np.uint32]
    order: npt.NDArray[np.int32]
    terms: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    freqs: Ints
    norms: npt.NDArray[np.uint8]
    numbers: dict[str, int] = field(default_factory=dict[str, int])  # of terms that were looked up

    def number(self, term: str) -> int:
        """Return the number of a term, `NO_TERM` if no document has it."""
        found = self.numbers.get(term)
        if found is None:
            if len(self.numbers) >= _KEPT:
                self.numbers.clear()
            found = self.numbers[term] = self._find(term.encode(errors="replace"))
        return found

    def df(self, number: int) -> int:
        """Return how many documents have a term."""
        return int(self.indptr[number + 1] - self.indptr[number])

    def freqs_in(self, number: int, docs: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return the places of the documents that have a term, and how often each has it.

        Args:
            number: The number of the term.
            docs: Documents, rising.
        """
        start, end = int(self.indptr[number]), int(self.indptr[number + 1])
        of_term = self.docs[start:end]
        few, many = sorted((docs, of_term), key=len)
        in_many = np.searchsorted(many, few)
        in_few = np.flatnonzero(many[np.minimum(in_many, len(many) - 1)] == few)
        in_many = in_many[in_few]
        places, in_term = (in_few, in_many) if few is docs else (in_many, in_few)
        return places, self.freqs[start:end][in_term]

    def _find(self, term: bytes) -> int:
        digest = np.uint32(crc32(term))
        place = int(np.searchsorted(self.hashes, digest))
        while place < len(self.hashes) and self.hashes[place] == digest:
            number = int(self.order[place])
            if self.terms[self.ends[number] : self.ends[number + 1]].tobytes() == term:
                return number
            place += 1
        return NO_TERM


def open_postings(folder: Path, documents: int, tokens: int) -> Postings:
    """Open the postings of an index with so many Lucene documents and tokens.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If the files do not fit together.
    """
    hashes = open_array(folder / "hashes.npy", np.uint32)
    order = open_array(folder / "order.npy", np.int32, length=len(hashes))
    terms = open_array(folder / "terms.npy", np.uint8)
    ends = open_array(folder / "ends.npy", np.int64, length=len(hashes) + 1)
    indptr = open_array(folder / "indptr.npy", np.int64, length=len(hashes) + 1)
    docs = open_array(folder / "docs.npy", np.int32)
    freqs = open_array(folder / "freqs.npy", np.uint8, np.int32, length=len(docs))
    norms = open_array(folder / "norms.npy", np.uint8, length=documents)
    check_ends("ends.npy", ends, len(terms))
    check_ends("indptr.npy", indptr, len(docs))
    return Postings(
        tokens=tokens,
        with_terms=int(np.count_nonzero(norms)),
        # plain arrays: slices of a memory map cost more
        hashes=np.asarray(hashes),
        order=np.asarray(order),
        terms=np.asarray(terms),
        ends=np.asarray(ends),
        indptr=np.asarray(indptr),
        docs=np.asarray(docs),
        freqs=np.asarray(freqs),
        norms=np.asarray(norms),
    )


def write_postings(folder: Path, lucene: LucenePostings | None, documents: int) -> int:
    """Write the postings of an index; return the number of its tokens.

    Args:
        folder: The folder to create.
        lucene: What Lucene holds; None if no document has a term.
        documents: How many documents it should hold.

    Raises:
        ValueError: If Lucene counts other documents or tokens than it holds.
    """
    folder.mkdir()
    none = np.zeros(0, np.int32)
    lucene = lucene or LucenePostings(documents, 0, 0, [], none, none, none)
    terms, total = lucene.terms, len(lucene.docs)
    indptr = np.concatenate([[0], np.cumsum(lucene.dfs, dtype=np.int64)])
    kind = np.uint8 if lucene.freqs.max(initial=0) <= np.iinfo(np.uint8).max else np.int32
    lengths = np.zeros(documents)
    for start in range(0, total, _AT_ONCE):
        chosen = slice(start, start + _AT_ONCE)
        lengths += np.bincount(lucene.docs[chosen], lucene.freqs[chosen], documents)
    tokens = lengths.astype(np.int64)
    counted = lucene.documents, lucene.with_terms, lucene.tokens, int(indptr[-1])
    if counted != (documents, int(np.count_nonzero(tokens)), int(tokens.sum()), total):
        raise ValueError("Lucene counts other documents or tokens than it holds")
    hashes = np.array([*map(crc32, terms)], np.uint32)
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    _save(folder, hashes=hashes[order], order=order)
    _save(folder, terms=np.frombuffer(b"".join(terms), np.uint8), ends=_ends(terms), indptr=indptr)
    _save(folder, docs=lucene.docs, freqs=lucene.freqs.astype(kind), norms=byte_of_length(tokens))
    return lucene.tokens


def byte_of_length(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the byte as which Lucene stores the number of tokens of a document (`SmallFloat.intToByte4`)."""
    return (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)


def _save(folder: Path, **arrays: Ints) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def _ends(terms: Sequence[bytes]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *map(len, terms)], dtype=np.int64)


def _lengths() -> npt.NDArray[np.int64]:
    """Return the length that each byte stands for (`SmallFloat.byte4ToInt`), shape (256,), rising.

    The first 24 bytes are lengths from 0 on; the others have a mantissa of 4 bits.
    """
    exact = 24
    rest = [b if b < 8 else (b & 7 | 8) << ((b >> 3) - 1) for b in range(256 - exact)]
    return np.array([*range(exact), *(exact + value for value in rest)], np.int64)


LENGTHS = _lengths()
