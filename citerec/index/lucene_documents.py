"""Adds documents to a Lucene index by loops in Java, with the fields that Anserini's generator of documents writes."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from citerec.index.handles import (
    BYTES,
    LUCENE,
    STRING,
    handles,
    java_type,
    method,
    repeated,
    signature,
)
from citerec.java import as_type, java_class, leave_thread

ID, CONTENTS, YEAR = "id", "contents", "year"
LEAST = 64  # documents that are worth a thread
_INPUT = f"{LUCENE}store/DataInput"
_FIELD = f"{LUCENE}document/Field"
_WRITER = f"{LUCENE}index/IndexWriter"

Document = tuple[str, str, str]  # id, contents, year


class DocumentWriter:
    """Adds documents to an open `IndexWriter`."""

    def __init__(self, writer: Any, threads: int) -> None:
        """Prepare.

        Args:
            writer: The `IndexWriter`.
            threads: The most threads that add documents; with one, they keep their order.
        """
        self._writer = writer
        self._loop = _loop()
        self._slots = [_fields() for _ in range(threads)]  # a document for each thread

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents.

        Raises:
            JavaException: If Lucene cannot write them.
        """
        size = max(LEAST, -(-len(documents) // len(self._slots)))
        parts = [documents[start : start + size] for start in range(0, len(documents), size)]
        if len(parts) < 2:
            for part in parts:
                self._add(part, 0)
            return
        with ThreadPoolExecutor(len(parts)) as pool:
            waiting = [pool.submit(self._in_thread, part, n) for n, part in enumerate(parts)]
        for done in waiting:
            done.result()

    def flush(self) -> None:
        """Write the documents that are in memory; Lucene keeps those of each thread apart and would write them in turn.

        Raises:
            JavaException: If Lucene cannot write them.
        """
        if len(self._slots) < 2:
            return
        with ThreadPoolExecutor(len(self._slots)) as pool:
            waiting = [pool.submit(self._flush_in_thread) for _ in self._slots]
        for done in waiting:
            done.result()

    def _flush_in_thread(self) -> None:
        try:
            self._writer.flushNextBuffer()
        finally:
            leave_thread()

    def _in_thread(self, documents: Sequence[Document], slot: int) -> None:
        try:
            self._add(documents, slot)
        finally:
            leave_thread()

    def _add(self, documents: Sequence[Document], slot: int) -> None:
        stream = java_class("org.apache.lucene.store.ByteArrayDataInput")(encoded(documents))
        count = java_class("java.lang.Integer")(len(documents))
        *fields, document = self._slots[slot]
        self._loop.invokeWithArguments(count, stream, *fields, self._writer, document)


def encoded(documents: Sequence[Document]) -> bytes:
    """Return documents as the loop reads them: of each the id, the id once more, contents and year."""
    pieces: list[bytes] = []
    for docid, contents, year in documents:
        of_id, of_contents, of_year = docid.encode(), contents.encode(), year.encode()
        head = _length(len(of_id))
        pieces += (head, of_id, head, of_id, _length(len(of_contents)), of_contents)
        pieces += (_length(len(of_year)), of_year)
    return b"".join(pieces)


@lru_cache(maxsize=2**14)
def _length(number: int) -> bytes:
    """Return a length as Lucene writes it before a text: 7 bits in a byte, the lowest first."""
    low = bytearray()
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


def _fields() -> tuple[Any, ...]:
    """Return the fields of a document, and the document."""
    kind = java_class("org.apache.lucene.document.FieldType")()
    kind.setIndexOptions(java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS)
    kind = as_type("org.apache.lucene.index.IndexableFieldType", kind)
    empty = as_type("java.lang.CharSequence", java_class("java.lang.String")(""))
    store = java_class("org.apache.lucene.document.Field$Store").YES
    field = java_class("org.apache.lucene.document.Field")
    value = java_class("org.apache.lucene.util.BytesRef")()
    fields = (
        java_class("org.apache.lucene.document.StringField")(ID, "", store),
        java_class("org.apache.lucene.document.BinaryDocValuesField")(ID, value),
        field(CONTENTS, empty, kind),
        field(YEAR, empty, kind),
    )
    document = java_class("org.apache.lucene.document.Document")()
    for one in fields:
        document.add(as_type("org.apache.lucene.index.IndexableField", one))
    return (*fields, document)


def _loop() -> Any:
    """Return a method handle that adds documents: (count, input, 4 fields, writer, document) -> nothing.

    For each of `count` documents, a text is read from the input for each field, in their order.
    """
    stream, field = java_type(_INPUT), java_type(_FIELD)
    writer, document = java_type(_WRITER), java_type(f"{LUCENE}document/Document")
    text = method(_INPUT, "readString", f"()L{STRING};")
    set_text = method(_FIELD, "setStringValue", f"(L{STRING};)V")
    set_text = handles().collectArguments(set_text, 1, text)
    new_bytes = (
        handles()
        .publicLookup()
        .findConstructor(java_type(BYTES), signature("(Ljava/lang/CharSequence;)V"))
    )
    new_bytes = new_bytes.asType(signature(f"(L{STRING};)L{BYTES};"))
    set_bytes = method(_FIELD, "setBytesValue", f"(L{BYTES};)V")
    set_bytes = handles().collectArguments(
        set_bytes, 1, handles().filterReturnValue(text, new_bytes)
    )
    add = method(_WRITER, "addDocument", "(Ljava/lang/Iterable;)J")
    add = add.asType(signature(f"(L{_WRITER};L{LUCENE}document/Document;)V"))
    all_arguments = signature(
        f"(L{_INPUT};{f'L{_FIELD};' * 4}L{_WRITER};L{LUCENE}document/Document;)V"
    )
    steps = handles().permuteArguments(add, all_arguments, 5, 6)
    for place, step in ((4, set_text), (3, set_text), (2, set_bytes), (1, set_text)):
        before = handles().permuteArguments(step, all_arguments, place, 0)
        steps = handles().foldArguments(steps, before)
    return repeated(steps, stream, *[field] * 4, writer, document)
