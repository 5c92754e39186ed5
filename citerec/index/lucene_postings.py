"""Reads the postings of a Lucene index, all at once: for each term its documents and how often each holds it.

A call from Python into Java takes a microsecond or more, and an index has millions of postings, so the loops run in
Java. They are composed of method handles, since the packaged Java has no compiler.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.errors import PostingsError
from citerec.index.bm25 import CONTENTS
from citerec.java import as_type, java_class

_TERMS, _DFS, _DOCS, _FREQS = "terms", "dfs", "docs", "freqs"
_LUCENE = "org/apache/lucene/"
_TERM_LIST = f"{_LUCENE}index/TermsEnum"
_POSTINGS = f"{_LUCENE}index/PostingsEnum"
_OUTPUT = f"{_LUCENE}store/DataOutput"
_BYTES = f"{_LUCENE}util/BytesRef"
_STRING = "java/lang/String"
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
        path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
        context = java_class("org.apache.lucene.store.IOContext").DEFAULT
        copy = _loop_over_terms()
        for leaf, terms in self._fields(first):
            names = [f"{leaf.docBase}.{kind}" for kind in (_TERMS, _DFS, _DOCS, _FREQS)]
            outputs = [directory.createOutput(name, context) for name in names]
            try:
                count = java_class("java.lang.Integer")(int(terms.size()))
                copy.invokeWithArguments(count, terms.iterator(), *outputs)
            finally:
                for output in outputs:
                    output.close()
            files = [folder / name for name in names]
            dfs, docs, freqs = (_numbers(file) for file in files[1:])
            documents = int(leaf.reader().maxDoc())
            yield Segment(int(leaf.docBase), documents, _spellings(files[0]), dfs, docs, freqs)

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
    handles = java_class("java.lang.invoke.MethodHandles")
    output, term_list, integer = _type(_OUTPUT), _type(_TERM_LIST), _type("int")
    df = _method(_TERM_LIST, "docFreq", "()I")
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_text = _method(_OUTPUT, "writeString", f"(L{_STRING};)V")
    spelling = handles.filterReturnValue(
        _method(_TERM_LIST, "next", f"()L{_BYTES};"),
        _method(_BYTES, "utf8ToString", f"()L{_STRING};"),
    )
    postings = _method(_TERM_LIST, "postings", f"(L{_POSTINGS};I)L{_POSTINGS};")
    postings = handles.insertArguments(postings, 2, java_class("java.lang.Integer")(_WITH_FREQS))
    postings = handles.insertArguments(postings, 1, None)
    # (terms, spellings), (terms, spellings, dfs), (terms, spellings, dfs, docs, freqs)
    write_term = _swapped(handles.collectArguments(write_text, 1, spelling))
    write_df = _swapped(handles.collectArguments(write_int, 1, df))
    write_df = handles.dropArguments(write_df, 1, output)
    write_postings = handles.collectArguments(_loop_over_documents(), 3, postings)
    write_postings = handles.collectArguments(write_postings, 0, df)
    kind = _signature(f"(L{_TERM_LIST};L{_OUTPUT};L{_OUTPUT};)V")
    write_postings = handles.permuteArguments(write_postings, kind, 0, 1, 2, 0)
    write_postings = handles.dropArguments(write_postings, 1, output, output)
    one_term = handles.foldArguments(handles.foldArguments(write_postings, write_df), write_term)
    body = handles.dropArguments(one_term, 0, integer, integer)  # the number of the term, count
    rest = (term_list, *[output] * 4)
    count = handles.dropArguments(handles.identity(integer), 1, *rest)
    return handles.countedLoop(count, None, body)


def _loop_over_documents() -> Any:
    """Return a method handle that writes the postings of a term: (count, docs, freqs, postings) -> nothing."""
    handles = java_class("java.lang.invoke.MethodHandles")
    output, postings, integer = _type(_OUTPUT), _type(_POSTINGS), _type("int")
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_doc = handles.collectArguments(write_int, 1, _method(_POSTINGS, "nextDoc", "()I"))
    write_freq = handles.collectArguments(write_int, 1, _method(_POSTINGS, "freq", "()I"))
    both = handles.foldArguments(
        handles.dropArguments(write_freq, 0, output), handles.dropArguments(write_doc, 1, output)
    )
    body = handles.dropArguments(both, 0, integer, integer)  # the number of the posting, count
    count = handles.dropArguments(handles.identity(integer), 1, output, output, postings)
    return handles.countedLoop(count, None, body)


def _swapped(handle: Any) -> Any:
    """Return a method handle of an output and a list of terms with its arguments swapped."""
    kind = _signature(f"(L{_TERM_LIST};L{_OUTPUT};)V")
    return java_class("java.lang.invoke.MethodHandles").permuteArguments(handle, kind, 1, 0)


def _method(owner: str, name: str, signature: str) -> Any:
    lookup = java_class("java.lang.invoke.MethodHandles").publicLookup()
    return lookup.findVirtual(_type(owner), name, _signature(signature))


def _signature(text: str) -> Any:
    loader = java_class("java.lang.Class").forName(_OUTPUT.replace("/", ".")).getClassLoader()
    kinds = java_class("java.lang.invoke.MethodType")
    return kinds.fromMethodDescriptorString(text, loader)


def _type(name: str) -> Any:
    if name == "int":
        return java_class("java.lang.Integer").TYPE
    return java_class("java.lang.Class").forName(name.replace("/", "."))


def _numbers(file: Path) -> npt.NDArray[np.int32]:
    return np.memmap(file, "<i4", "r") if file.stat().st_size else np.zeros(0, np.int32)


def _spellings(file: Path) -> list[bytes]:
    """Read texts as Lucene writes them: each after its number of bytes, 7 bits of that in a byte."""
    raw, place = file.read_bytes(), 0
    terms: list[bytes] = []
    while place < len(raw):
        length = shift = 0
        while True:
            byte = raw[place]
            place += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        terms.append(raw[place : place + length])
        place += length
    return terms
