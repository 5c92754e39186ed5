"""Writes the postings of Lucene's index into an index folder (see `postings`).

After an update only the postings of new documents are read from Lucene; the others come from the old store.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from zlib import crc32

import numpy as np
import numpy.typing as npt

from citerec.arrays import open_array
from citerec.atomic import building
from citerec.errors import CiterecError, IndexReplacedError, PostingsError, writing
from citerec.folder import BM25, IndexFolder
from citerec.index.bm25 import ROWS, open_reader
from citerec.index.lucene_postings import LucenePostings, Statistics
from citerec.index.postings import (
    DOCS,
    ENDS,
    FREQS,
    HASHES,
    INDPTR,
    NORMS,
    TERMS,
    Ints,
    Postings,
    byte_of_length,
    open_postings,
    postings_folder,
    write_about,
)
from citerec.java import is_java_exception
from citerec.manifest import POSTINGS, read_manifest, seal_model
from citerec.types import Log

_AT_ONCE = 2**22  # postings that are in memory at once

Docs = npt.NDArray[np.int32]
Old = tuple[Postings, npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Postings of some documents of an index."""

    terms: list[bytes]
    ends: npt.NDArray[np.int64]  # shape (terms + 1,): where the postings of each term begin
    docs: Docs
    freqs: Ints
    renumbered: Docs  # of each document of the part: its number in the index, -1 if it is left out

    def chunks(self) -> Iterator[tuple[slice, Ints, Docs, Ints]]:
        """Yield, for some terms at a time, these terms, the number of postings of each, documents and frequencies."""
        first = 0
        while first < len(self.terms):
            last = int(np.searchsorted(self.ends, self.ends[first] + _AT_ONCE, "right")) - 1
            last = max(last, first + 1)
            start, end = int(self.ends[first]), int(self.ends[last])
            docs, freqs = self.renumbered[self.docs[start:end]], self.freqs[start:end]
            counts = np.diff(self.ends[first : last + 1])
            kept = docs >= 0
            if not kept.all():
                before = np.concatenate([[0], np.cumsum(kept)])
                counts = np.diff(before[self.ends[first : last + 1] - start])
                docs, freqs = docs[kept], freqs[kept]
            yield slice(first, last), counts, docs, freqs
            first = last


def add_postings(
    folder: Path, sums: Mapping[str, str], log: Log | None = None, *, old: Old | None = None
) -> None:
    """Read the postings of an index that is being built from Lucene and store them; without them, Lucene is searched.

    Args:
        folder: The folder of the index.
        sums: The checksums of its manifest.
        log: Receives the reason if they are not stored.
        old: The postings of the index before an update, and which of its documents stay: those are the first of the new
            index, in their order.

    Raises:
        OutputError: If a file cannot be written.
    """
    target = postings_folder(folder, sums)
    try:
        with writing(folder):
            target.mkdir(parents=True)
            _write(target, folder / BM25, old)
    except Exception as error:
        rmtree(folder / POSTINGS, ignore_errors=True)
        if not (isinstance(error, PostingsError) or is_java_exception(error)):
            raise
        if log:
            log(f"the postings are not stored ({error}); Lucene searches them")


def store_postings(index: IndexFolder) -> Postings | None:
    """Store the postings of an index that has none; None if that is not possible: no permission, no space.

    Args:
        index: The index.
    """
    sums = index.manifest.checksums
    with suppress(CiterecError):
        _check_same(index)
        with building(postings_folder(index.path, sums)) as folder:
            try:
                _write(folder, index.bm25, None)
            except Exception as error:
                if is_java_exception(error):
                    raise PostingsError(str(error)) from error
                raise
            _check_same(index)
    return open_postings(index.path, sums)


def old_postings(index: IndexFolder, kept: npt.NDArray[np.bool_]) -> Old | None:
    """Return the postings of an index that is updated, for `add_postings`; None if it has none.

    Args:
        index: The index.
        kept: Whether each paper stays as it is, shape (papers,).
    """
    postings = open_postings(index.path, index.manifest.checksums)
    return (postings, kept[open_array(index.bm25 / ROWS, np.int32)]) if postings else None


def _check_same(index: IndexFolder) -> None:
    """Refuse to write into an index that was replaced since it was opened.

    Raises:
        IndexReplacedError: If it was.
    """
    if read_manifest(index.path) != index.manifest:
        raise IndexReplacedError(index.path)


def _write(target: Path, bm25: Path, old: Old | None) -> None:
    """Write the postings of Lucene's index in the folder `bm25` into the folder `target`.

    Raises:
        PostingsError: If Lucene's postings are not those of a plain text index.
    """
    temporary = target / "lucene.tmp"
    temporary.mkdir()
    reader = open_reader(bm25)
    try:
        lucene = LucenePostings(reader)
        _write_parts(target, lucene, list(_parts(lucene, temporary, old)))
    finally:
        reader.close()
        rmtree(temporary, ignore_errors=True)
    seal_model(target)


def _parts(lucene: LucenePostings, temporary: Path, old: Old | None) -> Iterator[_Part]:
    first = 0
    if old:
        postings, stay = old
        first = int(np.count_nonzero(stay))
        renumbered = np.where(stay, np.cumsum(stay) - 1, -1).astype(np.int32)
        raw, ends = postings.terms.tobytes(), postings.ends.tolist()
        terms = [raw[start:end] for start, end in pairwise(ends)]
        yield _Part(terms, postings.indptr, postings.docs, postings.freqs, renumbered)
    for segment in lucene.segments(temporary, first):
        ends = np.concatenate([[0], np.cumsum(segment.dfs, dtype=np.int64)])
        if ends[-1] != len(segment.docs) or len(segment.dfs) != len(segment.terms):
            raise PostingsError("Lucene's postings changed while they were read")
        renumbered = np.arange(segment.base, segment.base + segment.documents, dtype=np.int32)
        renumbered[renumbered < first] = -1
        yield _Part(segment.terms, ends, segment.docs, segment.freqs, renumbered)


def _write_parts(target: Path, lucene: LucenePostings, parts: Sequence[_Part]) -> None:
    """Write the files of a store, after comparing what they hold with what Lucene counts."""
    numbers, dfs, largest = _union(target, parts)
    indptr = np.concatenate([[0], np.cumsum(dfs, dtype=np.int64)])
    kind = np.uint8 if largest <= np.iinfo(np.uint8).max else np.int32
    total = int(indptr[-1])
    docs = _array(target / DOCS, np.int32, total)
    freqs = _array(target / FREQS, kind, total)
    lengths, next_place = np.zeros(lucene.documents), indptr[:-1].copy()
    for part, of_part in zip(parts, numbers, strict=True):
        for chosen, counts, some_docs, some_freqs in part.chunks():
            terms = of_part[chosen]
            shift = next_place[terms] - (np.cumsum(counts) - counts)
            places = np.arange(len(some_docs)) + np.repeat(shift, counts)
            docs[places], freqs[places] = some_docs, some_freqs
            held = counts > 0  # a term that no document has any more has no number
            next_place[terms[held]] += counts[held]
            lengths += np.bincount(some_docs, some_freqs, lucene.documents)
    tokens = lengths.astype(np.int64)
    norms = byte_of_length(tokens)
    with_terms = int(np.count_nonzero(tokens))
    counted = Statistics(lucene.documents, with_terms, total, int(tokens.sum()))
    stored = lucene.lengths()
    is_complete = np.array_equal(next_place, indptr[1:])
    if (
        not is_complete
        or counted != lucene.statistics()
        or any(norms[doc] != byte for doc, byte in stored.items())
    ):
        raise PostingsError("Lucene counts other postings or lengths than it holds")
    np.save(target / INDPTR, indptr)
    np.save(target / NORMS, norms)
    write_about(target, counted)


def _union(target: Path, parts: Sequence[_Part]) -> tuple[list[Ints], Ints, int]:
    """Write the terms of all parts that documents have, sorted by their hashes.

    Returns:
        The number of each term of each part, the number of documents of each term, and the largest frequency.
    """
    dfs_of_parts: list[Ints] = []
    totals: dict[bytes, int] = {}
    largest = 0
    for part in parts:
        dfs = np.zeros(len(part.terms), np.int64)
        for chosen, counts, _, freqs in part.chunks():
            dfs[chosen] = counts
            largest = max(largest, int(freqs.max(initial=0)))
        dfs_of_parts.append(dfs)
        for term, df in zip(part.terms, dfs.tolist(), strict=True):
            if df:
                totals[term] = totals.get(term, 0) + df
    hashed = sorted((crc32(term), term) for term in totals)
    order = {term: number for number, (_, term) in enumerate(hashed)}
    _save_terms(target, hashed)
    numbers = [np.array([order.get(term, 0) for term in part.terms], np.int64) for part in parts]
    return numbers, np.array([totals[term] for _, term in hashed], np.int64), largest


def _save_terms(target: Path, hashed: Sequence[tuple[int, bytes]]) -> None:
    terms = [term for _, term in hashed]
    np.save(target / HASHES, np.array([digest for digest, _ in hashed], np.uint32))
    np.save(target / TERMS, np.frombuffer(b"".join(terms), np.uint8))
    ends = np.cumsum([0, *map(len, terms)], dtype=np.int64)
    np.save(target / ENDS, ends)


def _array(file: Path, kind: npt.DTypeLike, length: int) -> Ints:
    """Create the file of an array."""
    if not length:
        np.save(file, np.zeros(0, kind))
        return np.zeros(0, kind)
    return np.lib.format.open_memmap(file, "w+", kind, (length,), version=(1, 0))
