"""Stores the postings of Lucene's index, memory-mapped, so that queries are scored without Lucene.

A store is a cache, as tokens are: it is not in the manifest's checksums, but has its own. It is in `postings/<key>/`,
where the key identifies the files of Lucene's index:

    hashes.npy   uint32, shape (terms,): crc32 of each term, rising
    terms.npy    uint8: the terms in this order, UTF-8, one after the other
    ends.npy     int64, shape (terms + 1,): where each term begins
    indptr.npy   int64, shape (terms + 1,): where the postings of each term begin
    docs.npy     int32, shape (postings,): the Lucene documents of each term, rising
    freqs.npy    uint8, or int32 if a frequency needs it, shape (postings,): how often each holds the term
    norms.npy    uint8, shape (Lucene documents,): the number of tokens of each document, as Lucene rounds it
    about.json   what Lucene counts
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import orjson

from citerec.arrays import check_ends, open_array
from citerec.entries import read_record
from citerec.folder import BM25
from citerec.index.lucene_postings import Statistics
from citerec.manifest import POSTINGS, model_faults

SPEC = "2"  # to be changed when the files are written in another way
HASHES, TERMS, ENDS, ABOUT = "hashes.npy", "terms.npy", "ends.npy", "about.json"
INDPTR, DOCS, FREQS, NORMS = "indptr.npy", "docs.npy", "freqs.npy", "norms.npy"
NO_TERM = -1
KEPT = 200_000  # terms whose numbers are kept in memory

Ints = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The postings of an index, in memory-mapped files; several threads may read them."""

    statistics: Statistics
    hashes: npt.NDArray[np.uint32]
    terms: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    docs: npt.NDArray[np.int32]
    freqs: Ints
    norms: npt.NDArray[np.uint8]
    numbers: dict[str, int]  # of terms that were looked up

    def number(self, term: str) -> int:
        """Return the number of a term, `NO_TERM` if no document has it."""
        found = self.numbers.get(term)
        if found is None:
            if len(self.numbers) >= KEPT:
                self.numbers.clear()
            found = self.numbers[term] = self._find(term.encode(errors="replace"))
        return found

    def df(self, number: int) -> int:
        """Return how many documents have a term."""
        return int(self.indptr[number + 1] - self.indptr[number])

    def freq(self, number: int, doc: int) -> int:
        """Return how often a document has a term."""
        start, end = int(self.indptr[number]), int(self.indptr[number + 1])
        place = start + int(np.searchsorted(self.docs[start:end], doc))
        return int(self.freqs[place]) if place < end and self.docs[place] == doc else 0

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
        number = int(np.searchsorted(self.hashes, digest))
        while number < len(self.hashes) and self.hashes[number] == digest:
            if self.terms[self.ends[number] : self.ends[number + 1]].tobytes() == term:
                return number
            number += 1
        return NO_TERM


def open_postings(index: Path, sums: Mapping[str, str]) -> Postings | None:
    """Open the postings of an index; None if it has none, or they are damaged or of another Lucene index.

    Args:
        index: The folder of the index.
        sums: The checksums of its manifest.
    """
    folder = postings_folder(index, sums)
    try:
        about = Statistics(**orjson.loads(read_record(folder / ABOUT)))
        if model_faults(folder, whole=False):
            return None
        hashes = np.asarray(open_array(folder / HASHES, np.uint32))
        terms = np.asarray(open_array(folder / TERMS, np.uint8))
        ends = np.asarray(open_array(folder / ENDS, np.int64, length=len(hashes) + 1))
        indptr = np.asarray(open_array(folder / INDPTR, np.int64, length=len(hashes) + 1))
        docs = np.asarray(open_array(folder / DOCS, np.int32, length=about.postings))
        freqs = np.asarray(open_array(folder / FREQS, np.uint8, np.int32, length=about.postings))
        norms = np.asarray(open_array(folder / NORMS, np.uint8, length=about.documents))
        check_ends(ENDS, ends, len(terms))
        check_ends(INDPTR, indptr, len(docs))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return Postings(about, hashes, terms, ends, indptr, docs, freqs, norms, {})


def postings_folder(index: Path, sums: Mapping[str, str]) -> Path:
    """Return the folder of the postings of an index with these checksums, whether it exists or not."""
    lucene = sorted(f"{name} {digest}" for name, digest in sums.items() if name.startswith(BM25))
    key = hashlib.sha256("\n".join([SPEC, *lucene]).encode()).hexdigest()
    return index / POSTINGS / key[:16]


def write_about(folder: Path, statistics: Statistics) -> None:
    """Write what Lucene counts."""
    (folder / ABOUT).write_bytes(orjson.dumps(asdict(statistics)))


def byte_of_length(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Return the byte as which Lucene stores the number of tokens of a document (`SmallFloat.intToByte4`)."""
    return (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)


def _lengths() -> npt.NDArray[np.int64]:
    """Return the length that each byte stands for (`SmallFloat.byte4ToInt`), shape (256,), rising.

    The first 24 bytes are lengths from 0 on; the others have a mantissa of 4 bits.
    """
    exact = 24
    rest = [b if b < 8 else (b & 7 | 8) << ((b >> 3) - 1) for b in range(256 - exact)]
    return np.array([*range(exact), *(exact + value for value in rest)], np.int64)


LENGTHS = _lengths()
