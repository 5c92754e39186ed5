"""Reads the postings of a Lucene index, all at once: for each term its documents and how often each holds it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import PostingsError
from citerec.index.handles import (
    BYTES,
    LUCENE,
    OUTPUT,
    STRING,
    handles,
    java_type,
    method,
    read_texts,
    repeated,
    signature,
    text_of,
    written,
)
from citerec.index.lucene_documents import CONTENTS
from citerec.java import as_type, java_class

_TERMS, _DFS, _DOCS, _FREQS = "terms", "dfs", "docs", "freqs"
_TERM_LIST = f"{LUCENE}index/TermsEnum"
_POSTINGS = f"{LUCENE}index/PostingsEnum"
_WITH_FREQS = 8  # PostingsEnum.FREQS
_PROBES = 16  # documents of a segment whose stored length is compared


@dataclass(frozen=True, slots=True)
class Segment:
    """The postings of one segment, in memory-mapped files."""

    base: int  # the number of its first document
    documents: int
    terms: list[bytes]  # UTF-8
    dfs: npt.NDArray[np.int32]  # the number of documents of each term
    docs: npt.NDArray[np.int32]  # of all terms, one after the other, less `base`
    freqs: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Statistics:
    """What Lucene counts in an index; all of these enter scores, or check the postings."""

    documents: int  # with and without text
    with_terms: int
    postings: int  # pairs of a term and a document
    tokens: int


class LucenePostings:
    """The postings of an open Lucene index."""

    def __init__(self, reader: Any) -> None:
        """Prepare.

        Args:
            reader: An open `IndexReader`.

        Raises:
            PostingsError: If documents of it are deleted.
        """
        if reader.hasDeletions():
            raise PostingsError("documents of Lucene's index are deleted")
        leaves: Any = reader.leaves()
        self._leaves = [leaves.get(i) for i in range(leaves.size())]
        self.documents = int(reader.maxDoc())

    def statistics(self) -> Statistics:
        """Return what Lucene counts."""
        counts = np.zeros(3, np.int64)
        for _, terms in self._fields(0):
            counts += terms.getDocCount(), terms.getSumDocFreq(), terms.getSumTotalTermFreq()
        return Statistics(self.documents, *counts.tolist())

    def lengths(self) -> dict[int, int]:
        """Return the length that Lucene stores of some documents, as a byte, by document."""
        stored: dict[int, int] = {}
        for leaf, _ in self._fields(0):
            reader = as_type("org.apache.lucene.index.LeafReader", leaf.reader())
            norms = reader.getNormValues(CONTENTS)
            for doc in np.unique(np.linspace(0, reader.maxDoc() - 1, _PROBES, dtype=int)).tolist():
                if norms.advanceExact(doc):
                    stored[int(leaf.docBase) + doc] = int(norms.longValue()) & 0xFF
        return stored

    def segments(self, folder: Path, first: int = 0) -> Iterator[Segment]:
        """Yield the postings of the segments, in the order of their documents.

        Args:
            folder: Holds the files of the segments.
            first: Segments that hold only documents before this one are left out.
        """
        copy = _loop_over_terms()
        for leaf, terms in self._fields(first):
            names = [f"{leaf.docBase}.{kind}" for kind in (_TERMS, _DFS, _DOCS, _FREQS)]

            def write(*outputs: Any, terms: Any = terms) -> None:
                count = java_class("java.lang.Integer")(int(terms.size()))
                copy.invokeWithArguments(count, terms.iterator(), *outputs)

            spellings, *others = written(folder, names, write)
            dfs, docs, freqs = (_numbers(file) for file in others)
            documents = int(leaf.reader().maxDoc())
            yield Segment(int(leaf.docBase), documents, read_texts(spellings), dfs, docs, freqs)

    def _fields(self, first: int) -> Iterator[tuple[Any, Any]]:
        """Yield each segment that has documents from `first` on, with the terms of their texts."""
        for leaf in self._leaves:
            reader = as_type("org.apache.lucene.index.LeafReader", leaf.reader())
            terms = reader.terms(CONTENTS) if leaf.docBase + reader.maxDoc() > first else None
            if terms is not None:
                yield leaf, terms


def _loop_over_terms() -> Any:
    """Return a method handle that writes the postings of all terms: (count, terms, 4 outputs) -> nothing.

    For each of `count` terms: its spelling, its number of documents, and then each document and its frequency.
    """
    output, term_list = java_type(OUTPUT), java_type(_TERM_LIST)
    df = method(_TERM_LIST, "docFreq", "()I")
    write_int = method(OUTPUT, "writeInt", "(I)V")
    write_text = method(OUTPUT, "writeString", f"(L{STRING};)V")
    spelling = text_of(method(_TERM_LIST, "next", f"()L{BYTES};"))
    postings = method(_TERM_LIST, "postings", f"(L{_POSTINGS};I)L{_POSTINGS};")
    postings = handles().insertArguments(postings, 2, java_class("java.lang.Integer")(_WITH_FREQS))
    postings = handles().insertArguments(postings, 1, None)
    # (terms, spellings), (terms, spellings, dfs), (terms, spellings, dfs, docs, freqs)
    write_term = _swapped(handles().collectArguments(write_text, 1, spelling))
    write_df = _swapped(handles().collectArguments(write_int, 1, df))
    write_df = handles().dropArguments(write_df, 1, output)
    write_postings = handles().collectArguments(_loop_over_documents(), 3, postings)
    write_postings = handles().collectArguments(write_postings, 0, df)
    kind = signature(f"(L{_TERM_LIST};L{OUTPUT};L{OUTPUT};)V")
    write_postings = handles().permuteArguments(write_postings, kind, 0, 1, 2, 0)
    write_postings = handles().dropArguments(write_postings, 1, output, output)
    one_term = handles().foldArguments(
        handles().foldArguments(write_postings, write_df), write_term
    )
    return repeated(one_term, term_list, *[output] * 4)


def _loop_over_documents() -> Any:
    """Return a method handle that writes the postings of a term: (count, docs, freqs, postings) -> nothing."""
    output, postings = java_type(OUTPUT), java_type(_POSTINGS)
    write_int = method(OUTPUT, "writeInt", "(I)V")
    write_doc = handles().collectArguments(write_int, 1, method(_POSTINGS, "nextDoc", "()I"))
    write_freq = handles().collectArguments(write_int, 1, method(_POSTINGS, "freq", "()I"))
    both = handles().foldArguments(
        handles().dropArguments(write_freq, 0, output),
        handles().dropArguments(write_doc, 1, output),
    )
    return repeated(both, output, output, postings)


def _swapped(handle: Any) -> Any:
    """Return a method handle of an output and a list of terms with its arguments swapped."""
    kind = signature(f"(L{_TERM_LIST};L{OUTPUT};)V")
    return handles().permuteArguments(handle, kind, 1, 0)


def _numbers(file: Path) -> npt.NDArray[np.int32]:
    return np.memmap(file, "<i4", "r") if file.stat().st_size else np.zeros(0, np.int32)
