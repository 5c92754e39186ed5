"""The lexical part of an index: the terms of texts, Lucene's index, and the postings that searches read.

Terms are those of Lucene's English analysis. Python covers texts of the characters in `_KNOWN` (ASCII, Latin-1 and
Greek letters, common punctuation), since starting Java would take longer than a search; other texts go to Lucene. The
slow tests compare both on every title and abstract of five corpora.

`bm25/` is what Anserini writes and Pyserini opens. The build derives `postings/` from it, memory-mapped by searches:

    terms.npy    uint8: the terms, UTF-8, one after the other, rising
    ends.npy     int64, shape (terms + 1,): where each term begins
    indptr.npy   int64, shape (terms + 1,): where the postings of each term begin
    docs.npy     int32, shape (postings,): the Lucene documents of each term, rising
    freqs.npy    uint8, or int32 if a frequency needs it, shape (postings,): how often each holds the term
    norms.npy    uint8, shape (Lucene documents,): the number of tokens of each document, as Lucene rounds it

Source: DefaultEnglishAnalyzer of Anserini: StandardTokenizer (Unicode Annex 29), possessives, lower case, stop words,
PorterStemFilter: Porter 1980, An algorithm for suffix stripping, with the changes of its author's own program
(https://tartarus.org/martin/PorterStemmer/): "bli" and "logi" are suffixes of step 2.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from citerec.errors import OutputError
from citerec.files.arrays import (
    Array,
    Counts,
    Rows,
    batched,
    check_ends,
    offsets,
    open_array,
    save_array,
)
from citerec.files.atomic import link
from citerec.index.folder import BM25, IndexFolder
from citerec.index.java import as_type, is_java_exception, java_class, leave_thread
from citerec.text import contents
from citerec.types import Paper

# --- analysis

STOP_WORDS = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    """.split()
)
MAX_TOKEN = 255  # characters; Lucene splits longer ones

# capital sigma has two lower forms
_LETTER = "A-Za-zªµºÀ-ÖØ-öø-ÿα-ωΓΔΘΛΞΠΦΨΩ"
_JOINS_LETTERS = r"[.:'‘’·]"
_JOINS_DIGITS = r"[.,;'‘’]"
_PART = rf"(?:[0-9](?:(?:_*|{_JOINS_DIGITS})[0-9])*|[{_LETTER}](?:(?:_*|{_JOINS_LETTERS})[{_LETTER}])*)"
# A run of underscores is tried at its beginning alone: at each of them, a long one would take quadratic time.
_TOKEN = re.compile(rf"(?<!_)_*{_PART}+(?:_+{_PART}+)*_*")
_KNOWN = re.compile(
    rf"[\x00-\x7f{_LETTER}\xa0-\xa8\xab\xac\xaf-\xb4\xb6-\xb9\xbb-\xbf×÷‐–—‘’“”•…′→−√∈∼≈≤≥]*"
)
_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {
    "icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": "",
}  # fmt: skip
_STEP_4 = (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
)  # fmt: skip
# pyjnius stores the object of a call in the method, which all threads share
_calls = RLock()


def analyze(text: str) -> list[str]:
    """Return the index terms of a text, in their order; Java is started for rare characters alone."""
    terms = analyze_in_python(text)
    return analyze_by_lucene(text) if terms is None else terms


def analyze_in_python(text: str) -> list[str] | None:
    """Return the index terms of a text; None if it is not covered."""
    if not _KNOWN.fullmatch(text):
        return None
    tokens = _TOKEN.findall(text)
    if any(len(token) > MAX_TOKEN for token in tokens):
        return None
    return [term for token in tokens if (term := _term(token))]


def analyze_by_lucene(text: str) -> list[str]:
    """Return the index terms of a text as Anserini's analyzer gives them."""
    utils = java_class("io.anserini.analysis.AnalyzerUtils")
    with _calls:
        # one text: a call for each term would take longer; no term has a space
        listed = utils.analyze(analyzer(), text).toString()[1:-1]
    return listed.split(", ") if listed else []


@cache
def analyzer() -> Any:
    """Return Anserini's English analyzer."""
    return java_class(
        "io.anserini.analysis.DefaultEnglishAnalyzer"
    ).newDefaultInstance()


@lru_cache(200_000)  # words recur: stemming takes ten times as long as the look-up
def _term(token: str) -> str:
    """Return the index term of a token; empty for a stop word."""
    word = token[:-2] if token[-2:] in {"'s", "'S", "’s", "’S"} else token
    word = word.lower()
    return "" if word in STOP_WORDS else _stem(word)


def _stem(word: str) -> str:
    """Return the stem of a word in lower case; any character but a, e, i, o, u and y counts as a consonant."""
    if len(word) < 3:
        return word
    word = _step_1(word)
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    suffix = next((s for s in _STEP_4 if word.endswith(s)), "")
    shorter = word.removesuffix(suffix)
    if _measure(shorter) > 1 and (suffix != "ion" or shorter.endswith(("s", "t"))):
        word = shorter
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_cvc(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _step_1(word: str) -> str:
    """Remove plurals, -ed and -ing, and turn a final y into i."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    suffix = next((s for s in ("eed", "ed", "ing") if word.endswith(s)), "")
    shorter = word.removesuffix(suffix)
    if suffix == "eed":
        word = word[:-1] if _measure(shorter) > 0 else word
    elif suffix and "v" in _shape(shorter):
        word = shorter
        if word.endswith(("at", "bl", "iz")):
            word += "e"
        elif word[-1:] == word[-2:-1] and _shape(word)[-1] == "c":
            word = word if word[-1] in "lsz" else word[:-1]
        elif _measure(word) == 1 and _ends_cvc(word):
            word += "e"
    return word[:-1] + "i" if word.endswith("y") and "v" in _shape(word[:-1]) else word


def _replaced(word: str, suffixes: dict[str, str]) -> str:
    """Replace the longest of some suffixes, if its stem has a measure above 0."""
    for length in range(min(7, len(word) - 1), 2, -1):
        if (suffix := word[-length:]) in suffixes:
            shorter = word[:-length]
            return shorter + suffixes[suffix] if _measure(shorter) > 0 else word
    return word


def _shape(word: str) -> str:
    """Return a "v" for each vowel and a "c" for each consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        shape += (
            "v" if letter in "aeiou" or (letter == "y" and shape[-1:] == "c") else "c"
        )
    return shape


def _measure(word: str) -> int:
    """Return how often a consonant follows a vowel."""
    return _shape(word).count("vc")


def _ends_cvc(word: str) -> bool:
    """Whether a word ends in consonant, vowel, consonant, and the last is not w, x or y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


# --- building

# fields of Anserini's documents
ID = "id"
CONTENTS = "contents"
ROWS = "rows.npy"  # int32, shape (Lucene documents,): the row of each Lucene document
POSTINGS = "postings"
_BUFFER_MB = 1024.0  # memory for documents that are not written yet: half of Java's heap by default
_AT_ONCE = 2**22  # postings that are in memory at once


class Bm25Builder:
    """Adds papers to the lexical part of an index; as a context, it closes Lucene's files at its end.

    Lucene works in a thread of its own, so that the corpus is read and the other parts are written meanwhile. One
    thread adds the papers, and only neighbouring segments are merged: so Lucene's documents are the papers with text,
    in the order of their rows. The files of Lucene are never changed, only replaced by others: so those of an index
    that grows are linked.
    """

    def __init__(self, index: Path, old: IndexFolder | None = None) -> None:
        """Start to open Lucene's writer in the folder of an index; the documents of `old` come first."""
        self._index = index
        self._rows: list[int] = []  # of the papers with text
        self._papers = 0
        if old:
            self._papers = len(old.papers)
            self._rows = open_array(old.bm25 / ROWS, np.int32).tolist()
            for file in old.bm25.iterdir():
                if file.name != ROWS:
                    link(file, index / BM25 / file.name)
        self._pool = ThreadPoolExecutor(1)
        # what Lucene does, or did last
        self._pending = self._pool.submit(self._as_output_error, self._open)

    def _open(self) -> None:
        analysis = as_type("org.apache.lucene.analysis.Analyzer", analyzer())
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(analysis)
        config.setRAMBufferSizeMB(_BUFFER_MB)
        config.setUseCompoundFile(False)
        policy = java_class("org.apache.lucene.index.LogDocMergePolicy")()
        config.setMergePolicy(as_type("org.apache.lucene.index.MergePolicy", policy))
        directory = _directory(self._index / BM25)
        self._writer: Any = java_class("org.apache.lucene.index.IndexWriter")(
            directory, config
        )
        self._add_all = _document_loop(self._writer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._pool.submit(lambda: self._writer.rollback())  # noqa: PLW0108 (there may be none)
        self._pool.submit(leave_thread)
        self._pool.shutdown()

    def remove(self, docids: Sequence[str]) -> None:
        """Remove the documents of papers of the old index, before others of the same ids are added."""

        def delete() -> None:
            for docid in docids:
                term = java_class("org.apache.lucene.index.Term")(ID, docid)
                query = java_class("org.apache.lucene.search.TermQuery")(term)
                query = as_type("org.apache.lucene.search.Query", query)
                self._writer.deleteDocuments(query)

        self._start(delete)

    def add(self, papers: Sequence[Paper]) -> None:
        """Add the papers of the next rows; those without text get no document.

        OutputError if Lucene could not write an earlier batch.
        """
        documents: list[tuple[str, str]] = []
        for row, paper in enumerate(papers, self._papers):
            if (text := contents(paper)).strip():
                documents.append((paper.id, text))
                self._rows.append(row)
        self._papers += len(papers)
        self._start(lambda: self._add_all(documents))

    def finish(self, places: Rows) -> "Future[int]":
        """Start to complete Lucene's index and to store its postings; the result is the number of tokens.

        `places` holds the row of each paper of the old index, -1 if it was removed, and of each that was added.
        """
        rows = places[np.array(self._rows, np.int32)]
        return self._start(lambda: self._finish(rows[rows >= 0]))

    def _start(self, work: Callable[[], Any]) -> "Future[Any]":
        """Start some work of Lucene; OutputError if that before it failed."""
        self._pending.result()
        self._pending = self._pool.submit(self._as_output_error, work)
        return self._pending

    def _finish(self, rows: Rows) -> int:
        folder = self._index / BM25
        self._writer.forceMergeDeletes()
        self._writer.close()
        (folder / "write.lock").unlink(missing_ok=True)
        save_array(folder / ROWS, rows)
        reader = open_reader(folder)
        try:
            with TemporaryDirectory(dir=self._index, prefix="postings.") as temporary:
                lucene = _read_postings(reader, Path(temporary))
                return _write_postings(self._index / POSTINGS, lucene, len(rows))
        finally:
            reader.close()

    def _as_output_error(self, work: Callable[[], Any]) -> Any:
        """Do some work of Lucene; a Java exception becomes an OutputError."""
        try:
            return work()
        except Exception as error:
            if not is_java_exception(error):
                raise
            reason = str(error).strip().splitlines()[0]
            hint = (
                "is there space on the disk?"
                if "space" in reason
                else "see: citerec doctor"
            )
            fault = f"Lucene cannot write {self._index / BM25}: {reason}; {hint}"
            raise OutputError(fault) from error


# terms in UTF-8, rising, and the number of documents of each; the documents of all, and how often each has the term
_Listed = tuple[list[bytes], Rows, Rows, Rows]


def _write_postings(folder: Path, lucene: _Listed, documents: int) -> int:
    """Write the postings of an index; return the number of its tokens."""
    terms, dfs, docs, freqs = lucene
    folder.mkdir()
    kind = np.uint8 if freqs.max(initial=0) <= np.iinfo(np.uint8).max else np.int32
    lengths = np.zeros(documents)
    pairs = zip(batched(docs, _AT_ONCE), batched(freqs, _AT_ONCE), strict=True)
    for part, weights in pairs:
        lengths += np.bincount(part, weights, documents)
    tokens = lengths.astype(np.int64)
    arrays = {
        "terms": np.frombuffer(b"".join(terms), np.uint8),
        "ends": offsets([*map(len, terms)]),
        "indptr": offsets(dfs),
        "docs": docs,
        "freqs": freqs.astype(kind),
        "norms": byte_of_length(tokens),
    }
    for name, array in arrays.items():
        save_array(folder / f"{name}.npy", array)
    return int(tokens.sum())


def open_reader(folder: Path) -> Any:
    """Open a Lucene index for reading."""
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(
        _directory(folder)
    )
    return as_type("org.apache.lucene.index.IndexReader", reader)


def _directory(folder: Path) -> Any:
    directory = java_class("org.apache.lucene.store.FSDirectory").open(_path(folder))
    return as_type("org.apache.lucene.store.Directory", directory)


def _path(path: Path) -> Any:
    return java_class("java.nio.file.Paths").get(str(path.absolute()))


# An index has millions of documents and terms, and a call from Python into Java takes a microsecond or more: so their
# loops run in Java. They are composed of method handles, since the packaged Java has no compiler.


def _document_loop(writer: Any) -> Callable[[Sequence[tuple[str, str]]], None]:
    """Return a function that adds documents (id and text) to an open `IndexWriter`, with the fields of Anserini's.

    Anserini's own `SimpleIndexer` takes JSON, which makes it need a third more processor time.
    """
    kind = java_class("org.apache.lucene.document.FieldType")()
    kind.setIndexOptions(
        java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS
    )
    kind = as_type("org.apache.lucene.index.IndexableFieldType", kind)
    empty = as_type("java.lang.CharSequence", java_class("java.lang.String")(""))
    store = java_class("org.apache.lucene.document.Field$Store").YES
    value = java_class("org.apache.lucene.util.BytesRef")()
    fields = (
        java_class("org.apache.lucene.document.StringField")(ID, "", store),
        java_class("org.apache.lucene.document.BinaryDocValuesField")(ID, value),
        java_class("org.apache.lucene.document.Field")(CONTENTS, empty, kind),
    )
    document = java_class("org.apache.lucene.document.Document")()
    for part in fields:
        document.add(as_type("org.apache.lucene.index.IndexableField", part))
    loop = _loop_over_documents()

    def add(documents: Sequence[tuple[str, str]]) -> None:
        pieces: list[bytes] = []
        for texts in documents:
            docid, text = (text.encode() for text in texts)
            head = _length(len(docid))
            pieces += (head, docid, head, docid, _length(len(text)), text)
        stream = java_class("org.apache.lucene.store.ByteArrayDataInput")(
            b"".join(pieces)
        )
        count = java_class("java.lang.Integer")(len(documents))
        loop.invokeWithArguments(count, stream, *fields, writer, document)

    return add


def _loop_over_documents() -> Any:
    """Return a handle that adds documents: (count, input, 3 fields, writer, document) -> nothing.

    For each document, a text is read from the input for each field, in their order.
    """
    handles = _handles()
    text = _method(_INPUT, "readString", f"()L{_STRING};")
    set_text = _method(_FIELD, "setStringValue", f"(L{_STRING};)V")
    set_text = handles.collectArguments(set_text, 1, text)
    new_bytes = handles.publicLookup().findConstructor(
        _type(_BYTES), _signature("(Ljava/lang/CharSequence;)V")
    )
    new_bytes = new_bytes.asType(_signature(f"(L{_STRING};)L{_BYTES};"))
    set_bytes = _method(_FIELD, "setBytesValue", f"(L{_BYTES};)V")
    set_bytes = handles.collectArguments(
        set_bytes, 1, handles.filterReturnValue(text, new_bytes)
    )
    add = _method(_WRITER, "addDocument", "(Ljava/lang/Iterable;)J")
    add = add.asType(_signature(f"(L{_WRITER};L{_DOCUMENT};)V"))
    kinds = [_INPUT, *[_FIELD] * 3, _WRITER, _DOCUMENT]
    steps = ((set_text, 1, 0), (set_bytes, 2, 0), (set_text, 3, 0), (add, 4, 5))
    return _repeated(_in_turn(kinds, *steps), kinds)


@lru_cache(2**14)
def _length(number: int) -> bytes:
    """Return a length as Lucene writes it before a text: 7 bits in a byte, the lowest first."""
    low = bytearray()
    while number > 0x7F:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


def _read_postings(reader: Any, folder: Path) -> _Listed:
    """Read the postings of all segments of an open `IndexReader`, by way of files in `folder`."""
    terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, CONTENTS)
    if terms is None:
        none = np.zeros(0, np.int32)
        return [], none, none, none
    context = java_class("org.apache.lucene.store.IOContext").DEFAULT
    texts = java_class("java.nio.file.Files").newBufferedWriter(_path(folder / "t"))
    numbers = [_directory(folder).createOutput(name, context) for name in "dpf"]
    outputs = [texts, *numbers]
    try:
        _loop_over_terms().invokeWithArguments(terms.iterator(), *outputs)
    finally:
        for output in outputs:
            output.close()
    dfs, docs, freqs = (np.memmap(folder / name, "<i4", "r") for name in "dpf")
    return (folder / "t").read_bytes().splitlines(), dfs, docs, freqs


_LUCENE = "org/apache/lucene/"
_STRING = "java/lang/String"
_BYTES = f"{_LUCENE}util/BytesRef"
_INPUT = f"{_LUCENE}store/DataInput"
_TEXTS = "java/io/BufferedWriter"
_OUTPUT = f"{_LUCENE}store/DataOutput"
_FIELD = f"{_LUCENE}document/Field"
_DOCUMENT = f"{_LUCENE}document/Document"
_WRITER = f"{_LUCENE}index/IndexWriter"
_TERMS = f"{_LUCENE}index/TermsEnum"
_DOCS = f"{_LUCENE}index/PostingsEnum"
_WITH_FREQS = 8  # PostingsEnum.FREQS


def _loop_over_terms() -> Any:
    """Return a handle that writes the postings of all terms: (terms, texts, 3 outputs) -> the end of the terms.

    For each term: its text as a line, its number of documents, and then each document and its frequency.
    """
    handles = _handles()
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_text = _method(_TEXTS, "write", f"(L{_STRING};)V")
    end_line = _method(_TEXTS, "newLine", "()V")
    next_term = _method(_TERMS, "next", f"()L{_BYTES};")
    spelling = _method(_BYTES, "utf8ToString", f"()L{_STRING};")
    df = _method(_TERMS, "docFreq", "()I")
    postings = _method(_TERMS, "postings", f"(L{_DOCS};I)L{_DOCS};")
    postings = handles.insertArguments(
        postings, 2, java_class("java.lang.Integer")(_WITH_FREQS)
    )
    postings = handles.insertArguments(postings, 1, None)
    write_term = handles.collectArguments(write_text, 1, spelling)
    write_df = handles.collectArguments(write_int, 1, df)
    write_postings = handles.collectArguments(_loop_over_postings(), 3, postings)
    write_postings = handles.collectArguments(write_postings, 0, df)
    body = _in_turn(
        [_BYTES, _TERMS, _TEXTS, *[_OUTPUT] * 3],
        (write_term, 2, 0),
        (end_line, 2),
        (write_df, 3, 1),
        (write_postings, 1, 4, 5, 1),
        (next_term, 1),
    )
    has_term = handles.publicLookup().findStatic(
        _type("java/util/Objects"), "nonNull", _signature("(Ljava/lang/Object;)Z")
    )
    has_term = has_term.asType(_signature(f"(L{_BYTES};)Z"))
    return handles.whileLoop(next_term, has_term, body)


def _loop_over_postings() -> Any:
    """Return a handle that writes the postings of a term: (count, docs, freqs, postings) -> nothing."""
    handles = _handles()
    write_int = _method(_OUTPUT, "writeInt", "(I)V")
    write_doc = handles.collectArguments(write_int, 1, _method(_DOCS, "nextDoc", "()I"))
    write_freq = handles.collectArguments(write_int, 1, _method(_DOCS, "freq", "()I"))
    kinds = [_OUTPUT, _OUTPUT, _DOCS]
    return _repeated(_in_turn(kinds, (write_doc, 0, 2), (write_freq, 1, 2)), kinds)


def _in_turn(kinds: Sequence[str], *steps: tuple[Any, ...]) -> Any:
    """Return a handle with arguments of some kinds that takes steps in turn; it returns what the last one does.

    A step is a handle and the places of its arguments; all but the last return nothing.
    """
    handles = _handles()
    arguments = _signature(f"({''.join(f'L{kind};' for kind in kinds)})V")
    body: Any = None
    for step, *places in reversed(steps):
        kind = arguments.changeReturnType(step.type().returnType())
        kind = as_type("java.lang.invoke.MethodType", kind)
        placed = handles.permuteArguments(step, kind, *places)
        body = placed if body is None else handles.foldArguments(body, placed)
    return body


def _repeated(body: Any, kinds: Sequence[str]) -> Any:
    """Return a handle that calls `body` as often as its first argument states: (count, ...) -> nothing."""
    integer = java_class("java.lang.Integer").TYPE
    handles = _handles()
    count = handles.dropArguments(handles.identity(integer), 1, *map(_type, kinds))
    # before its arguments, the body of a loop receives the number of the round and the count
    return handles.countedLoop(
        count, None, handles.dropArguments(body, 0, integer, integer)
    )


def _handles() -> Any:
    return java_class("java.lang.invoke.MethodHandles")


def _method(owner: str, name: str, descriptor: str) -> Any:
    """Return the handle of a method, such as `_method("java/lang/String", "length", "()I")`."""
    return (
        _handles()
        .publicLookup()
        .findVirtual(_type(owner), name, _signature(descriptor))
    )


def _signature(descriptor: str) -> Any:
    kinds = java_class("java.lang.invoke.MethodType")
    return kinds.fromMethodDescriptorString(descriptor, _type(_OUTPUT).getClassLoader())


def _type(name: str) -> Any:
    return java_class("java.lang.Class").forName(name.replace("/", "."))


# --- reading

NO_TERM = -1
_KEPT = 200_000  # terms whose numbers are kept in memory


class Postings:
    """The postings of an index, memory-mapped; several threads may read them."""

    def __init__(self, folder: Path, documents: int, tokens: int) -> None:
        """Open postings of so many documents and tokens; OSError or ValueError if they do not fit together."""
        self.tokens = tokens  # of all documents
        self.terms = open_array(folder / "terms.npy", np.uint8)
        self.ends: Counts = open_array(folder / "ends.npy", np.int64)
        count = len(self.ends)
        self.indptr: Counts = open_array(folder / "indptr.npy", np.int64, length=count)
        self.docs: Rows = open_array(folder / "docs.npy", np.int32)
        count = len(self.docs)
        self.freqs = open_array(folder / "freqs.npy", np.uint8, np.int32, length=count)
        self.norms = open_array(folder / "norms.npy", np.uint8, length=documents)
        check_ends("ends.npy", self.ends, len(self.terms))
        check_ends("indptr.npy", self.indptr, len(self.docs))
        self.with_terms = int(np.count_nonzero(self.norms))  # documents
        self._numbers: dict[str, int] = {}  # of terms that were looked up

    def number(self, term: str) -> int:
        """Return the number of a term, `NO_TERM` if no document has it."""
        number = self._numbers.get(term)
        if number is None:
            if len(self._numbers) >= _KEPT:
                self._numbers.clear()
            wanted = term.encode(errors="replace")
            count = len(self.ends) - 1
            number = bisect_left(range(count), wanted, key=self._term)
            if number == count or self._term(number) != wanted:
                number = NO_TERM
            self._numbers[term] = number
        return number

    def starting(self, prefix: str, most: int) -> list[str]:
        """Return the most frequent terms that begin with a prefix, at most `most`."""
        wanted = prefix.encode(errors="replace")
        numbers = range(len(self.ends) - 1)
        start = bisect_left(numbers, wanted, key=self._term)
        end = bisect_left(numbers, wanted + b"\xff", key=self._term)
        best = sorted(numbers[start:end], key=lambda number: -self.df(number))[:most]
        return [self._term(number).decode() for number in best]

    def _term(self, number: int) -> bytes:
        return self.terms[self.ends[number] : self.ends[number + 1]].tobytes()

    def df(self, number: int) -> int:
        """Return how many documents have a term."""
        return int(self.indptr[number + 1] - self.indptr[number])

    def freqs_in(self, number: int, docs: Rows) -> tuple[Array, Array]:
        """Return which of some rising documents have a term, by their places, and how often each has it."""
        start = int(self.indptr[number])
        end = int(self.indptr[number + 1])
        of_term = self.docs[start:end]
        in_term = np.searchsorted(of_term, docs)
        places = np.flatnonzero(of_term[np.minimum(in_term, len(of_term) - 1)] == docs)
        return places, self.freqs[start:end][in_term[places]]


def byte_of_length(lengths: Counts) -> npt.NDArray[np.uint8]:
    """Return the byte as which Lucene stores the number of tokens of a document (`SmallFloat.intToByte4`)."""
    return (np.searchsorted(LENGTHS, lengths, "right") - 1).astype(np.uint8)


# the length that each byte stands for (`SmallFloat.byte4ToInt`), rising: the first 24 are exact, the others have a
# mantissa of 4 bits
_REST = [b if b < 8 else (b & 7 | 8) << ((b >> 3) - 1) for b in range(256 - 24)]
LENGTHS: Counts = np.array([*range(24), *(24 + value for value in _REST)], np.int64)
