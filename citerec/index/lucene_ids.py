"""Reads the ids of all documents of a Lucene index, in their order."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from citerec.index.handles import (
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
from citerec.java import as_type, java_class

ID = "id"
_VALUES = f"{LUCENE}index/BinaryDocValues"


def segment_ids(reader: Any, folder: Path) -> Iterator[list[str]]:
    """Yield the ids of the documents of each segment, in their order.

    Args:
        reader: An open `IndexReader` of an index without deleted documents.
        folder: Holds a temporary file of all ids of a segment, of about their size.
    """
    loop = _loop_over_documents()
    leaves: Any = reader.leaves()
    for number in range(leaves.size()):
        segment = as_type("org.apache.lucene.index.LeafReader", leaves.get(number).reader())
        values = segment.getBinaryDocValues(ID)
        count = java_class("java.lang.Integer")(int(segment.maxDoc()))
        with TemporaryDirectory(dir=folder, prefix="ids-") as temporary:

            def write(output: Any, count: Any = count, values: Any = values) -> None:
                loop.invokeWithArguments(count, output, values)

            (file,) = written(Path(temporary), ["ids"], write)
            yield [docid.decode() for docid in read_texts(file)]


def _loop_over_documents() -> Any:
    """Return a method handle that writes the ids of the next documents: (count, output, values) -> nothing."""
    output, values = java_type(OUTPUT), java_type(_VALUES)
    write_text = method(OUTPUT, "writeString", f"(L{STRING};)V")
    docid = text_of(method(_VALUES, "binaryValue", f"()L{LUCENE}util/BytesRef;"))
    write_id = handles().collectArguments(write_text, 1, docid)
    step = method(_VALUES, "nextDoc", "()I").asType(signature(f"(L{_VALUES};)V"))
    step = handles().dropArguments(step, 0, output)
    return repeated(handles().foldArguments(write_id, step), output, values)
