"""Loops that run in Java: adding documents to a Lucene index, and reading all of its postings.

A call from Python into Java takes a microsecond or more, and an index has millions of terms. The loops are composed of
method handles, since the packaged Java has no compiler.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from citerec.java import as_type, java_class

ID, CONTENTS = "id", "contents"
LUCENE = "org/apache/lucene/"
_STRING, _BYTES = "java/lang/String", f"{LUCENE}util/BytesRef"
_INPUT, _OUTPUT = f"{LUCENE}store/DataInput", f"{LUCENE}store/DataOutput"
_FIELD, _DOCUMENT = f"{LUCENE}document/Field", f"{LUCENE}document/Document"
_WRITER = f"{LUCENE}index/IndexWriter"
_TERMS, _POSTINGS = f"{LUCENE}index/TermsEnum", f"{LUCENE}index/PostingsEnum"
_WITH_FREQS = 8  # PostingsEnum.FREQS


@dataclass(frozen=True, slots=True)
class LucenePostings:
    """The postings of an index of one segment, and what Lucene counts in it."""

    documents: int  # with and without text
    with_terms: int
    tokens: int
    terms: list[bytes]  # UTF-8, rising
    dfs: npt.NDArray[np.int32]  # the number of documents of each term
    docs: npt.NDArray[np.int32]  # of all terms, one after the other; a memory map
    freqs: npt.NDArray[np.int32]  # how often each document has the term; a memory map


class DocumentLoop:
    """Adds documents to an open `IndexWriter`, with the fields that Anserini's generator of documents writes."""

    def __init__(self, writer: Any) -> None:
        self._writer, self._loop = writer, _loop_over_documents()
        kind = java_class("org.apache.lucene.document.FieldType")()
        kind.setIndexOptions(java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
        kind = as_type("org.apache.lucene.index.IndexableFieldType", kind)
        empty = as_type("java.lang.CharSequence", java_class("java.lang.String")(""))
        store = java_class("org.apache.lucene.document.Field$Store").YES
        value = java_class("org.apache.lucene.util.BytesRef")()
        self._fields = (
            java_class("org.apache.lucene.document.StringField")(ID, "", store),
            java_class("org.apache.lucene.document.BinaryDocValuesField")(ID, value),
            java_class("org.apache.lucene.document.Field")(CONTENTS, empty, kind),
        )
        self._document = java_class("org.apache.lucene.document.Document")()
        for field in self._fields:
            self._document.add(as_type("org.apache.lucene.index.IndexableField", field))

    def add(self, documents: Sequence[tuple[str, str]]) -> None:
        """Add documents: the id and the text of each.

        Raises:
            JavaException: If Lucene cannot write them.
        """
        pieces: list[bytes] = []
        for texts in documents:
            docid, contents = (text.encode() for text in texts)
            head = _length(len(docid))
            pieces += (head, docid, head, docid, _length(len(contents)), contents)
        stream = java_class("org.apache.lucene.store.ByteArrayDataInput")(b"".join(pieces))
        count = java_class("java.lang.Integer")(len(documents))
        self._loop.invokeWithArguments(count, stream, *self._fields, self._writer, self._document)


def read_postings(reader: Any, folder: Path) -> LucenePostings | None:
    """Read the postings of an open `IndexReader` of at most one segment; None if no document has a term.

    Args:
        reader: The reader.
        folder: Receives temporary files.
    """
    leaves: Any = reader.leaves()
    segment = leaves.size() and as_type(
        "org.apache.lucene.index.LeafReader", leaves.get(0).reader()
    )
    terms = segment.terms(CONTENTS) if segment else None
    if terms is None:
        return None
    outputs = [open_directory(folder).createOutput(name, _context()) for name in "tdpf"]
    try:
        count = java_class("java.lang.Integer")(int(terms.size()))
        _loop_over_terms().invokeWithArguments(count, terms.iterator(), *outputs)
    finally:
        for output in outputs:
            output.close()
    return LucenePostings(
        int(reader.maxDoc()),
        int(terms.getDocCount()),
        int(terms.getSumTotalTermFreq()),
        _read_texts((folder / "t").read_bytes()),
        *(np.memmap(folder / name, "<i4", "r") for name in "dpf"),
    )


def open_directory(folder: Path) -> Any:
    """Open a folder for Lucene."""
    # absolute: the JVM keeps the working directory in which it was started
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    return as_type("org.apache.lucene.store.Directory", directory)


def open_reader(folder: Path) -> Any:
    """Open a Lucene index for reading."""
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(open_directory(folder))
    return as_type("org.apache.lucene.index.IndexReader", reader)


def _context() -> Any:
    return java_class("org.apache.lucene.store.IOContext").DEFAULT


@lru_cache(maxsize=2**14)
def _length(number: int) -> bytes:
    """Return a length as Lucene writes it before a text: 7 bits in a byte, the lowest first."""
    low = bytearray()
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


def _read_texts(raw: bytes) -> list[bytes]:
    """Return texts that Lucene wrote, each after its length."""
    texts: list[bytes] = []
    place = 0
    while place < len(raw):
        length = shift = 0
        while True:
            byte = raw[place]
            place += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        texts.append(raw[place : place + length])
        place += length
    return texts


def _loop_over_documents() -> Any:
    """Return a handle that adds documents: (count, input, 3 fields, writer, document) -> nothing.

    For each document, a text is read from the input for each field, in their order.
    """
    text = _method(_INPUT, "readString", f"()L{_STRING};")
    set_text = _method(_FIELD, "setStringValue", f"(L{_STRING};)V")
    set_text = _handles().collectArguments(set_text, 1, text)
    new_bytes = (
        _handles()
        .publicLookup()
        .findConstructor(_type(_BYTES), _signature("(Ljava/lang/CharSequence;)V"))
    )
    new_bytes = new_bytes.asType(_signature(f"(L{_STRING};)L{_BYTES};"))
    set_bytes = _method(_FIELD, "setBytesValue", f"(L{_BYTES};)V")
    read_bytes = _handles().filterReturnValue(text, new_bytes)
    set_bytes = _handles().collectArguments(set_bytes, 1, read_bytes)
    add = _method(_WRITER, "addDocument", "(Ljava/lang/Iterable;)J")
    add = add.asType(_signature(f"(L{_WRITER};L{_DOCUMENT};)V"))
    kinds = [_INPUT, *[_FIELD] * 3, _WRITER, _DOCUMENT]
    all_arguments = _signature(f"({''.join(f'L{kind};' for kind in kinds)})V")
    steps = _handles().permuteArguments(add, all_arguments, 4, 5)
    for place, step in ((3, set_text), (2, set_bytes), (1, set_text)):
        before = _handles().permuteArguments(step, all_arguments, place, 0)
        steps = _handles().foldArguments(steps, before)
    return _repeated(steps, *map(_type, kinds))


def _loop_over_terms() -> Any:
    """Return a handle that writes the postings of all terms: (count, terms, 4 outputs) -> nothing.

    For each term: its text, its number of documents, and then each document and its frequency.
    """
    output, terms = _type(_OUTPUT), _type(_TERMS)
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_text = _method(_OUTPUT, "writeString", f"(L{_STRING};)V")
    spelling = _handles().filterReturnValue(
        _method(_TERMS, "next", f"()L{_BYTES};"),
        _method(_BYTES, "utf8ToString", f"()L{_STRING};"),
    )
    df = _method(_TERMS, "docFreq", "()I")
    postings = _method(_TERMS, "postings", f"(L{_POSTINGS};I)L{_POSTINGS};")
    postings = _handles().insertArguments(postings, 2, java_class("java.lang.Integer")(_WITH_FREQS))
    postings = _handles().insertArguments(postings, 1, None)
    # (terms, texts), (terms, texts, dfs), (terms, texts, dfs, docs, freqs)
    write_term = _swapped(_handles().collectArguments(write_text, 1, spelling))
    write_df = _swapped(_handles().collectArguments(write_int, 1, df))
    write_df = _handles().dropArguments(write_df, 1, output)
    write_postings = _handles().collectArguments(_loop_over_postings(), 3, postings)
    write_postings = _handles().collectArguments(write_postings, 0, df)
    kind = _signature(f"(L{_TERMS};L{_OUTPUT};L{_OUTPUT};)V")
    write_postings = _handles().permuteArguments(write_postings, kind, 0, 1, 2, 0)
    write_postings = _handles().dropArguments(write_postings, 1, output, output)
    one_term = _handles().foldArguments(
        _handles().foldArguments(write_postings, write_df), write_term
    )
    return _repeated(one_term, terms, *[output] * 4)


def _loop_over_postings() -> Any:
    """Return a handle that writes the postings of a term: (count, docs, freqs, postings) -> nothing."""
    output, postings = _type(_OUTPUT), _type(_POSTINGS)
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_doc = _handles().collectArguments(write_int, 1, _method(_POSTINGS, "nextDoc", "()I"))
    write_freq = _handles().collectArguments(write_int, 1, _method(_POSTINGS, "freq", "()I"))
    both = _handles().foldArguments(
        _handles().dropArguments(write_freq, 0, output),
        _handles().dropArguments(write_doc, 1, output),
    )
    return _repeated(both, output, output, postings)


def _swapped(handle: Any) -> Any:
    """Return a handle of an output and a list of terms with its arguments swapped."""
    kind = _signature(f"(L{_TERMS};L{_OUTPUT};)V")
    return _handles().permuteArguments(handle, kind, 1, 0)


def _repeated(body: Any, *kinds: Any) -> Any:
    """Return a handle that calls `body` as often as its first argument states: (count, ...) -> nothing."""
    integer = java_class("java.lang.Integer").TYPE
    count = _handles().dropArguments(_handles().identity(integer), 1, *kinds)
    # before its arguments, the body of a loop receives the number of the round and the count
    return _handles().countedLoop(count, None, _handles().dropArguments(body, 0, integer, integer))


def _handles() -> Any:
    return java_class("java.lang.invoke.MethodHandles")


def _method(owner: str, name: str, descriptor: str) -> Any:
    """Return the handle of a method, such as `_method("java/lang/String", "length", "()I")`."""
    return _handles().publicLookup().findVirtual(_type(owner), name, _signature(descriptor))


def _signature(descriptor: str) -> Any:
    loader = _type(_OUTPUT).getClassLoader()
    kinds = java_class("java.lang.invoke.MethodType")
    return kinds.fromMethodDescriptorString(descriptor, loader)


def _type(name: str) -> Any:
    return java_class("java.lang.Class").forName(name.replace("/", "."))
