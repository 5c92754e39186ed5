"""Loops that run in Java: a call from Python into Java takes a microsecond or more, and an index has millions of terms.

They are composed of method handles, since the packaged Java has no compiler.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from citerec.java import java_class

LUCENE = "org/apache/lucene/"
OUTPUT = f"{LUCENE}store/DataOutput"
BYTES = f"{LUCENE}util/BytesRef"
STRING = "java/lang/String"
_MORE = 0x80  # the bit of a byte of a length that another byte follows


def handles() -> Any:
    """Return Java's `MethodHandles`."""
    return java_class("java.lang.invoke.MethodHandles")


def method(owner: str, name: str, descriptor: str) -> Any:
    """Return the handle of a method, such as `method("java/lang/String", "length", "()I")`."""
    lookup = handles().publicLookup()
    return lookup.findVirtual(java_type(owner), name, signature(descriptor))


def signature(text: str) -> Any:
    """Return the type of a method by its descriptor."""
    loader = java_class("java.lang.Class").forName(OUTPUT.replace("/", ".")).getClassLoader()
    kinds = java_class("java.lang.invoke.MethodType")
    return kinds.fromMethodDescriptorString(text, loader)


def java_type(name: str) -> Any:
    """Return the class of a name with slashes, or of "int"."""
    if name == "int":
        return java_class("java.lang.Integer").TYPE
    return java_class("java.lang.Class").forName(name.replace("/", "."))


def text_of(bytes_of: Any) -> Any:
    """Return a handle that returns as text what `bytes_of` returns as bytes in UTF-8."""
    return handles().filterReturnValue(bytes_of, method(BYTES, "utf8ToString", f"()L{STRING};"))


def repeated(body: Any, *kinds: Any) -> Any:
    """Return a handle that calls `body` as often as its first argument states: (count, ...) -> nothing.

    Args:
        body: A handle without a result.
        kinds: The classes of its arguments.
    """
    integer = java_type("int")
    count = handles().dropArguments(handles().identity(integer), 1, *kinds)
    # before its arguments, the body of a loop receives the number of the round and the count
    return handles().countedLoop(count, None, handles().dropArguments(body, 0, integer, integer))


def written(folder: Path, names: list[str], write: Callable[..., None]) -> list[Path]:
    """Create files by Lucene, and return them.

    Args:
        folder: Receives the files.
        names: Their names.
        write: Receives an `IndexOutput` for each.
    """
    path = java_class("java.nio.file.Paths").get(str(folder.absolute()))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    context = java_class("org.apache.lucene.store.IOContext").DEFAULT
    outputs = [directory.createOutput(name, context) for name in names]
    try:
        write(*outputs)
    finally:
        for output in outputs:
            output.close()
    return [folder / name for name in names]


def read_texts(file: Path) -> list[bytes]:
    """Read texts as Lucene writes them: each after its number of bytes, 7 bits of that in a byte."""
    raw, place = file.read_bytes(), 0
    texts: list[bytes] = []
    append, end = texts.append, len(raw)
    while place < end:
        length = raw[place]
        place += 1
        if length >= _MORE:
            length, place = _long_length(raw, place - 1)
        append(raw[place : place + length])
        place += length
    return texts


def _long_length(raw: bytes, place: int) -> tuple[int, int]:
    """Return the length at a place, and the place after it."""
    length = shift = 0
    while True:
        byte = raw[place]
        place += 1
        length |= (byte & (_MORE - 1)) << shift
        shift += 7
        if byte < _MORE:
            return length, place
